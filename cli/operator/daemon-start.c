/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/daemon-start.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define STOP_MS 5000

extern char **environ;

char *
daemon_start(const char *rundir, const char *name, char *const args[])
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error = NULL;
    int errnum, status;
    mode_t mask;
    pid_t pid;

    for (size_t i = 0; args[i]; i++) {
        svec_add(&argv, args[i]);
    }
    svec_add_nocopy(&argv, xasprintf("--pidfile=%s/%s.pid", rundir, name));
    svec_add_nocopy(&argv, xasprintf("--log-file=%s/%s.log", rundir, name));
    svec_add(&argv, "--detach");
    svec_terminate(&argv);

    /* Its sockets and logs are for its user. */
    mask = umask(077);
    errnum = posix_spawnp(&pid, argv.names[0], NULL, NULL, argv.names,
                          environ);
    umask(mask);
    if (errnum) {
        error = xasprintf("%s: cannot be started (%s)", argv.names[0],
                          ovs_strerror(errnum));
    } else if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)
               || WEXITSTATUS(status)) {
        error = xasprintf("%s: did not start, %s/%s.log says why", name,
                          rundir, name);
    }
    svec_destroy(&argv);
    return error;
}

pid_t
daemon_find(const char *rundir, const char *name)
{
    char *pidfile = xasprintf("%s/%s.pid", rundir, name);
    pid_t pid = 0;

    if (!access(pidfile, F_OK)) {
        pid = MAX(read_pidfile(pidfile), 0);
    }
    free(pidfile);
    return pid;
}

char *
daemon_stop(const char *rundir, const char *name)
{
    long long deadline = time_msec() + STOP_MS;
    pid_t pid = daemon_find(rundir, name);

    if (!pid) {
        return NULL;
    }
    if (kill(pid, SIGTERM) && errno != ESRCH) {
        return xasprintf("%s: process %ld cannot be ended (%s)", name,
                         (long) pid, ovs_strerror(errno));
    }
    while (daemon_find(rundir, name) == pid) {
        if (time_msec() >= deadline) {
            return xasprintf("%s: process %ld has not ended after %d ms",
                             name, (long) pid, STOP_MS);
        }
        xnanosleep(10 * 1000 * 1000);
    }
    return NULL;
}
