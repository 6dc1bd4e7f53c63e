/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/cluster.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/ovsdb/database.h"
#include "controller/ovsdb/rpc-call.h"
#include "lab/cluster/cgroup-tree.h"
#include "lab/cluster/daemons.h"
#include "lab/cluster/fabric.h"
#include "lab/cluster/console.h"
#include "lab/cluster/members.h"
#include "lab/cluster/spawn.h"
#include "lab/cluster/switch-buffers.h"
#include "openvswitch/poll-loop.h"
#include "timeval.h"
#include "util.h"

/* Reads "PID RUNDIR" from 'fd'.  Returns the process id, or 0 on failure, and
 * stores NULL in '*rundirp' then. */
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

static char *
take_lock(const char *file, int *fdp, char **old_rundirp)
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
                          "\"stagecoach lab down\" stops it, --name starts "
                          "another one", file, (int) pid);
        free(rundir);
        close(fd);
        return error;
    }
    read_holder(fd, old_rundirp);
    *fdp = fd;
    return NULL;
}

static char *
write_lock(int fd, const char *rundir)
{
    char *text = xasprintf("%d %s\n", (int) getpid(), rundir);
    bool ok = !ftruncate(fd, 0)
              && pwrite(fd, text, strlen(text), 0) == strlen(text);

    free(text);
    return ok ? NULL : xasprintf("lock file: %s", ovs_strerror(errno));
}

/* Also removes the directory if it is empty. */
static void
release_lock(const char *file, int fd)
{
    char *dir = dir_name(file);

    unlink(file);
    rmdir(dir);
    free(dir);
    close(fd);
}

pid_t
cluster_holder(const struct plan *plan, char **rundirp)
{
    int fd = open(plan->lock, O_RDWR | O_CLOEXEC);
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

#define READY_MS 20000          /* Time in which each part must start to reply;
                                 * the machine may be busy. */
#define WIDEN_MS 300            /* Interval of switch_buffers_widen(). */
#define ASK_MS 3000             /* Timeout of a call of the controller. */
#define TAIL_LINES 5            /* Lines of a log in a message. */

struct cluster {
    struct daemons daemons;     /* 'sv' is NULL while down. */
    long long next_widen;       /* time_msec() of the next
                                 * switch_buffers_widen(). */
    int lock_fd;
};

static const char interrupted[] = "interrupted";

static int
remove_one(const char *path, const struct stat *st OVS_UNUSED,
           int type OVS_UNUSED, struct FTW *ftw OVS_UNUSED)
{
    remove(path);
    return 0;
}

char *
cluster_clean(const struct plan *plan, const char *rundir)
{
    char *error = cgroup_tree_destroy(plan->cgroup);

    fabric_destroy(plan);
    nftw(rundir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return error;
}

char *
cluster_lock(const struct plan *plan, struct cluster **clusterp)
{
    struct cluster *c;
    char *old_rundir, *error;
    int fd;

    *clusterp = NULL;
    error = take_lock(plan->lock, &fd, &old_rundir);
    if (error) {
        return error;
    }
    error = cluster_clean(plan, old_rundir ? old_rundir : plan->rundir);
    free(old_rundir);
    if (!error) {
        error = write_lock(fd, plan->rundir);
    }
    if (error) {
        release_lock(plan->lock, fd);
        return error;
    }
    c = xzalloc(sizeof *c);
    c->daemons.plan = plan;
    c->lock_fd = fd;
    *clusterp = c;
    return NULL;
}

void
cluster_unlock(struct cluster *c)
{
    if (c) {
        release_lock(c->daemons.plan->lock, c->lock_fd);
        free(c);
    }
}

static bool
shims_ready(const struct plan *plan)
{
    bool ready = true;

    for (int i = 0; ready && i < plan->n_hosts; i++) {
        struct sockaddr_un sun = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                        0);
        char *dir = plan_host_dir(plan, i);

        snprintf(sun.sun_path, sizeof sun.sun_path, "%s/shim.sock", dir);
        ready = fd >= 0 && !connect(fd, (struct sockaddr *) &sun, sizeof sun);
        if (fd >= 0) {
            close(fd);
        }
        free(dir);
    }
    return ready;
}

static bool
agents_ready(const struct plan *plan)
{
    char *reply;
    char *error = cluster_ask(plan, "controller/status", &reply);
    cJSON *status = error ? NULL : cJSON_Parse(reply);
    const cJSON *agents = cJSON_GetObjectItem(status, "agents");
    bool ready = cJSON_IsNumber(agents) && agents->valueint >= plan->n_hosts;

    cJSON_Delete(status);
    free(reply);
    free(error);
    return ready;
}

static char *
not_ready(const struct plan *plan, const char *what, const char *daemon)
{
    char *log = plan_log(plan, daemon);
    char *tail = say_tail(log, TAIL_LINES);
    char *error = xasprintf("%s: not ready within %d s; the end of %s:\n%s",
                            what, READY_MS / 1000, log, tail);

    free(tail);
    free(log);
    return error;
}

/* Waits until 'ready' returns true, and keeps the daemons running meanwhile.
 * 'daemon' is the daemon whose log a message quotes. */
static char *
wait_until(struct cluster *c, const char *what, const char *daemon,
           bool (*ready)(const struct plan *))
{
    long long deadline = time_msec() + READY_MS;

    while (!ready(c->daemons.plan)) {
        char *error = supervisor_run(c->daemons.sv);

        if (error) {
            return error;
        }
        if (interrupt_signal()) {
            return xstrdup(interrupted);
        }
        if (time_msec() > deadline) {
            return not_ready(c->daemons.plan, what, daemon);
        }
        interrupt_sleep(50);
    }
    return NULL;
}

static char *
make_supervisor(struct cluster *c)
{
    char *log_dir = xasprintf("%s/log", c->daemons.plan->rundir);
    char *cgroup = xasprintf("%s/daemons", c->daemons.plan->cgroup);

    c->daemons.sv = supervisor_create(log_dir, cgroup);
    free(log_dir);
    free(cgroup);
    return daemons_make_directories(c->daemons.plan);
}

static char *
start_host_daemons(struct cluster *c)
{
    char *error = NULL;

    for (int i = 0; !error && i < c->daemons.plan->n_hosts; i++) {
        error = daemons_shim(&c->daemons, i);
    }
    for (int i = 0; !error && i < c->daemons.plan->n_hosts; i++) {
        error = daemons_agent(&c->daemons, i);
    }
    return error;
}

static char *
wait_until_ready(struct cluster *c)
{
    char *error = wait_until(c, "shims", "shim-h0", shims_ready);

    return error ? error : wait_until(c, "agents", "controller",
                                      agents_ready);
}

#define N_STEPS 9

/* Runs a step of cluster_up(), which can be interrupted between steps. */
static char *
run_step(struct cluster *c, int step, const char *policy_file)
{
    struct daemons *d = &c->daemons;

    switch (step) {
    case 0: return make_supervisor(c);
    case 1: return fabric_create(d->plan);
    case 2: return d->plan->fabric == FABRIC_OVS ? daemons_switch(d) : NULL;
    case 3: return daemons_database(d, &database_intent);
    case 4: return daemons_database(d, &database_hosts);
    case 5: return daemons_controllers(d, policy_file);
    case 6: return fabric_join(d->plan);
    case 7: return start_host_daemons(c);
    case 8: return wait_until_ready(c);
    default: OVS_NOT_REACHED();
    }
}

char *
cluster_up(struct cluster *c, const char *policy_file)
{
    char *error = NULL;

    for (int step = 0; !error && step < N_STEPS; step++) {
        error = interrupt_signal() ? xstrdup(interrupted)
                                   : run_step(c, step, policy_file);
    }
    return error;
}

char *
cluster_run(struct cluster *c)
{
    pid_t vswitchd = supervisor_pid(c->daemons.sv, "ovs-vswitchd");

    if (vswitchd && time_msec() >= c->next_widen) {
        switch_buffers_widen(vswitchd);
        c->next_widen = time_msec() + WIDEN_MS;
    }
    return supervisor_run(c->daemons.sv);
}

void
cluster_wait(struct cluster *c)
{
    supervisor_wait(c->daemons.sv);
    if (c->daemons.plan->fabric == FABRIC_OVS) {
        poll_timer_wait_until(c->next_widen);
    }
}

/* Returns NULL or a message about what could not be removed. */
char *
cluster_down(struct cluster *c)
{
    if (c->daemons.sv) {
        supervisor_stop(c->daemons.sv);
        supervisor_destroy(c->daemons.sv);
        c->daemons.sv = NULL;
    }
    return cluster_clean(c->daemons.plan, c->daemons.plan->rundir);
}

unsigned int
cluster_restarts(const struct cluster *c)
{
    return c->daemons.sv ? supervisor_restarts(c->daemons.sv) : 0;
}

pid_t
cluster_pid(const struct cluster *c, const char *name)
{
    return c->daemons.sv ? supervisor_pid(c->daemons.sv, name) : 0;
}

/* Returns NULL and stores the reply, to be freed, in '*replyp', or a message
 * and stores NULL. */
char *
cluster_ask_one(const struct plan *plan, int i, const char *command,
                char **replyp)
{
    char *ctl = members_controller_file(plan, i, "controller", "ctl");
    int errnum;
    char *error = rpc_unixctl(ctl, command, 0, NULL, ASK_MS, replyp, &errnum);

    free(ctl);
    return error;
}

static bool
is_active(const struct plan *plan, int i)
{
    char *reply;
    char *error = cluster_ask_one(plan, i, "controller/status", &reply);
    bool active = !error && strstr(reply, "\"state\":\"active\"");

    free(error);
    free(reply);
    return active;
}

char *
cluster_ask(const struct plan *plan, const char *command, char **replyp)
{
    int i = members_n_controllers(plan) - 1;

    while (i > 0 && !is_active(plan, i)) {
        i--;
    }
    return cluster_ask_one(plan, i, command, replyp);
}
