/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/lab/lab-up.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/data-file.h"
#include "cli/lab/lab-options.h"
#include "lab/cluster/cgroup-tree.h"
#include "lab/cluster/cluster.h"
#include "lab/cluster/interrupt.h"
#include "lab/cluster/lock.h"
#include "lab/cluster/plan.h"
#include "scenario/scenario.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/poll-loop.h"
#include "util.h"

/* How long "lab down" waits for the lab to be gone, and "lab up" for it to be
 * there. */
#define UP_DOWN_MS 60000

/* The background half of "lab up": tells 'ready_fd' that the cluster is up by
 * a zero byte, or else why not, and then looks after it. */
static void OVS_NO_RETURN
keep_up(const struct plan *plan, const char *policy_file, int ready_fd)
{
    struct cluster *cluster;
    char *error;

    setsid();
    interrupt_init();
    error = cluster_lock(plan, &cluster);
    if (!error) {
        error = cluster_up(cluster, policy_file);
    }
    if (!error) {
        char *log = plan_log(plan, "lab");
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        ignore(write(ready_fd, "", 1));
        dup2(null, STDIN_FILENO);
        dup2(fd < 0 ? null : fd, STDOUT_FILENO);
        dup2(fd < 0 ? null : fd, STDERR_FILENO);
        free(log);
    } else {
        ignore(write(ready_fd, error, strlen(error)));
    }
    close(ready_fd);
    while (!error && !interrupt_signal()) {
        error = cluster_run(cluster);
        cluster_wait(cluster);
        interrupt_wait();
        poll_block();
    }
    if (cluster) {
        free(cluster_down(cluster));
        cluster_unlock(cluster);
    }
    free(error);
    exit(EXIT_OK);
}

static int
lab_up_wait(int fd)
{
    char text[4096];
    size_t used = 0;
    ssize_t n;

    while (used < sizeof text - 1
           && (n = read(fd, text + used, sizeof text - 1 - used)) > 0) {
        used += n;
        if (!text[0]) {
            return EXIT_OK;
        }
    }
    text[used] = '\0';
    fprintf(stderr, "%s\n", used ? text : "lab: ended before it was up");
    return EXIT_NO;
}

int
lab_up(const struct lab_options *o)
{
    char *file = o->args[0] ? xstrdup(o->args[0])
                            : data_file_find("lab/scenarios", "smoke.json");
    struct lab_setting setting = { .scenario = NULL };
    int fds[2];
    int status;
    char *error = file ? lab_setting_init(&setting, o, file)
                       : xstrdup("smoke.json: not installed");

    if (!error && pipe2(fds, O_CLOEXEC)) {
        error = xstrdup(ovs_strerror(errno));
    }
    if (error) {
        status = lab_fail(error);
    } else {
        const struct lab_policy *policy
            = &setting.policies[setting.n_policies - 1];
        pid_t pid = fork();

        if (!pid) {
            close(fds[0]);
            keep_up(setting.plan, policy->file, fds[1]);
        }
        close(fds[1]);
        status = pid < 0 ? EXIT_NO : lab_up_wait(fds[0]);
        close(fds[0]);
        if (status == EXIT_OK) {
            printf("%d hosts are up, h0 is 10.77.0.1; policy %s; sockets and "
                   "logs are in %s\n", setting.scenario->n_hosts, policy->name,
                   setting.plan->rundir);
        }
    }
    lab_setting_uninit(&setting);
    free(file);
    return status;
}

/* Ends a lab that is up, or removes what one that was killed has left. */
int
lab_down(const struct lab_options *o)
{
    struct cluster *cluster;
    struct plan *plan;
    char *error = lab_plan_create(o, &plan);
    char *rundir;
    pid_t pid;

    if (error) {
        plan_destroy(plan);
        return lab_fail(error);
    }
    interrupt_init();
    pid = lock_holder(plan->lock, &rundir);
    free(rundir);
    if (pid) {
        kill(pid, SIGTERM);
        for (int ms = 0; ms < UP_DOWN_MS && !interrupt_signal(); ms += 50) {
            if (!lock_holder(plan->lock, &rundir)) {
                break;
            }
            free(rundir);
            interrupt_sleep(50);
        }
    }
    error = cluster_lock(plan, &cluster);
    if (!error) {
        cluster_unlock(cluster);
    }
    plan_destroy(plan);
    return error ? lab_fail(error) : EXIT_OK;
}

/* Replaces this process by the command, on the host. */
static char *
exec_on_host(const struct plan *plan, const char *rundir, int host,
             char *argv[])
{
    char *netns = plan_host_ns(plan, host);
    char *cgroup = plan_host_cgroup(plan, host);
    char *dir = xasprintf("%s/hosts/h%d", rundir, host);
    int error;

    setenv("STAGECOACH_RUNDIR", dir, 1);
    setenv("STAGECOACH_CGROUP", cgroup, 1);
    error = cgroup_tree_join(cgroup);
    error = error ? error : netns_enter(netns);
    if (!error) {
        execvp(argv[0], argv);
        error = errno;
    }
    return xasprintf("%s: %s", argv[0], ovs_strerror(error));
}

int
lab_exec(const struct lab_options *o)
{
    struct plan *plan = NULL;
    char *rundir = NULL;
    char *error;
    int host = -1, end = 0;

    if (!o->args[0] || !o->args[1]) {
        fputs("stagecoach lab exec: HOST -- COMMAND is needed\n", stderr);
        return EXIT_USAGE;
    }
    error = lab_plan_create(o, &plan);
    if (!error && !lock_holder(plan->lock, &rundir)) {
        error = xasprintf("no lab \"%s\" is up", o->name);
    }
    if (!error) {
        char *dir = xasprintf("%s/hosts/%s", rundir, o->args[0]);

        if (sscanf(o->args[0], "h%d%n", &host, &end) != 1 || host < 0
            || o->args[0][end] || access(dir, X_OK)) {
            error = xasprintf("HOST: there is no \"%s\" in this lab",
                              o->args[0]);
        }
        free(dir);
    }
    error = error ? error : exec_on_host(plan, rundir, host, o->args + 1);
    fprintf(stderr, "stagecoach lab exec: %s\n", error);
    free(error);
    free(rundir);
    plan_destroy(plan);
    return EXIT_NO;
}
