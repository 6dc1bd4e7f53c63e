/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

/* Reads "PID RUNDIR" from 'fd'.  Returns the process id, 0 if there is none;
 * '*rundirp' is then NULL. */
static pid_t
read_holder(int fd, char **rundirp)
{
    char text[4096];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    int pid, at = 0;

    *rundirp = NULL;
    text[MAX(0, n)] = '\0';
    if (sscanf(text, "%d %n", &pid, &at) != 1 || pid <= 0 || text[at] != '/') {
        return 0;
    }
    text[at + strcspn(text + at, "\n")] = '\0';
    *rundirp = xstrdup(text + at);
    return pid;
}

char *
lock_take(const char *file, int *fdp, char **old_rundirp)
{
    char *dir = dir_name(file);
    struct stat st1, st2;
    char *error = NULL;
    int fd;

    *fdp = -1;
    *old_rundirp = NULL;
    mkdir(dir, 0755);
    free(dir);
    fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return xasprintf("%s: %s", file, ovs_strerror(errno));
    }
    if (flock(fd, LOCK_EX | LOCK_NB)
        || fstat(fd, &st1) || stat(file, &st2) || st1.st_ino != st2.st_ino) {
        char *rundir;
        pid_t pid = read_holder(fd, &rundir);

        error = xasprintf("%s: a lab of this name is running (pid %d); "
                          "\"stagecoach lab down\" ends one that is up, "
                          "--name gives another one", file, (int) pid);
        free(rundir);
        close(fd);
        return error;
    }
    read_holder(fd, old_rundirp);
    *fdp = fd;
    return NULL;
}

char *
lock_write(int fd, const char *rundir)
{
    char *text = xasprintf("%d %s\n", (int) getpid(), rundir);
    bool ok = !ftruncate(fd, 0)
              && pwrite(fd, text, strlen(text), 0) == strlen(text);

    free(text);
    return ok ? NULL : xasprintf("lock file: %s", ovs_strerror(errno));
}

/* Also removes the directory, if nothing else is in it. */
void
lock_release(const char *file, int fd)
{
    char *dir = dir_name(file);

    unlink(file);
    rmdir(dir);
    free(dir);
    close(fd);
}

pid_t
lock_holder(const char *file, char **rundirp)
{
    int fd = open(file, O_RDWR | O_CLOEXEC);
    pid_t pid = 0;

    *rundirp = NULL;
    if (fd >= 0) {
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            pid = read_holder(fd, rundirp);
        }
        close(fd);
    }
    return pid;
}
