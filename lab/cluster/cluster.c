/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/cluster.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/directory.h"
#include "controller/ovsdb/database.h"
#include "controller/ovsdb/rpc-call.h"
#include "lab/cluster/cgroup-tree.h"
#include "lab/cluster/console.h"
#include "lab/cluster/fabric.h"
#include "lab/cluster/leaf-spine.h"
#include "lab/cluster/spawn.h"
#include "lab/cluster/switch-buffers.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "policies/policy.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"
#include "wire/shim-client.h"

/* Reads "PID RUNDIR" from 'fd'.  Returns the process id and stores the run
 * directory unless 'rundirp' is null, or returns 0. */
static pid_t
read_holder(int fd, char **rundirp)
{
    char text[4096];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    int pid, at = 0;

    text[MAX(0, n)] = '\0';
    if (sscanf(text, "%d %n", &pid, &at) != 1 || pid <= 0 || text[at] != '/') {
        return 0;
    }
    if (rundirp) {
        *rundirp = xmemdup0(text + at, strcspn(text + at, "\n"));
    }
    return pid;
}

static char *
take_lock(const char *file, int *fdp, char **old_rundirp)
{
    char *dir = dir_name(file);
    struct stat st1, st2;
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
        pid_t pid = read_holder(fd, NULL);

        close(fd);
        return xasprintf("%s: a lab of this name is running (pid %d); "
                         "\"stagecoach lab down\" stops it, --name starts "
                         "another one", file, (int) pid);
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

    if (fd >= 0) {
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            pid = read_holder(fd, rundirp);
        }
        close(fd);
    }
    return pid;
}

#define READY_MS 60000          /* Time in which each part must start to reply;
                                 * the machine may be busy. */
#define WIDEN_MS 300            /* Interval of switch_buffers_widen(). */
#define JOIN_MS 10000
#define ASK_MS 3000             /* Timeout of a call of the controller. */
#define TAIL_LINES 5            /* Lines of a log in a message. */

struct cluster {
    const struct plan *plan;
    struct supervisor *sv;      /* NULL while down. */
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

/* Kills all processes of the lab and removes its BPF objects, namespaces and
 * files.  Requires the lock. */
static char *
clean(const struct plan *plan, const char *rundir)
{
    char *error = cgroup_tree_destroy(plan->cgroup);

    nftw(plan->pins, remove_one, 16, FTW_DEPTH | FTW_PHYS);
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
    error = clean(plan, old_rundir ? old_rundir : plan->rundir);
    free(old_rundir);
    if (!error) {
        error = write_lock(fd, plan->rundir);
    }
    if (error) {
        release_lock(plan->lock, fd);
        return error;
    }
    c = xzalloc(sizeof *c);
    c->plan = plan;
    c->lock_fd = fd;
    *clusterp = c;
    return NULL;
}

void
cluster_unlock(struct cluster *c)
{
    if (c) {
        release_lock(c->plan->lock, c->lock_fd);
        free(c);
    }
}

/* Commands expect all sockets in one directory, as on a machine with a
 * controller and an agent.  So the directory of each host has links to the
 * sockets that all hosts of the lab share. */
static char *
link_shared_sockets(const struct plan *plan, int host)
{
    static const char *const names[] = {
        "controller.ctl", "hosts.sock", "intent.sock", "rest.sock",
        "telemetry.sock",
    };
    char *error = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(names) && !error; i++) {
        char *socket = xasprintf("%s/%s", plan->rundir, names[i]);
        char *path = xasprintf("%s/%s", plan->hosts[host].dir, names[i]);

        if (symlink(socket, path) && errno != EEXIST) {
            error = xasprintf("%s: %s", path, ovs_strerror(errno));
        }
        free(path);
        free(socket);
    }
    return error;
}

/* Mounts a BPF file system where each system has it, unless there is one.  It
 * stays, as other programs may use it from then on. */
static char *
mount_bpf(void)
{
    struct statfs fs;

    if ((!statfs(BPF_ROOT, &fs) && fs.f_type == BPF_FS_MAGIC)
        || !mount("bpf", BPF_ROOT, "bpf", 0, "mode=0700")) {
        return NULL;
    }
    return xasprintf("%s: no BPF file system can be mounted (%s), which "
                     "agents need",
                     BPF_ROOT, ovs_strerror(errno));
}

/* Creates the directories and cgroups that the daemons need. */
static char *
make_directories(const struct plan *plan)
{
    static const char *const names[] = { "log", "ovs", "db" };
    char *error = NULL;

    for (size_t i = 0; !error && i < ARRAY_SIZE(names); i++) {
        char *path = xasprintf("%s/%s", plan->rundir, names[i]);

        error = directory_create(path);
        free(path);
    }
    error = error ? error : cgroup_tree_create(plan->daemons_cgroup);
    for (int i = 0; !error && i < plan->n_hosts; i++) {
        error = directory_create(plan->hosts[i].dir);
        error = error ? error : link_shared_sockets(plan, i);
        error = error ? error : cgroup_tree_create(plan->hosts[i].cgroup);
        if (!error && plan_has_agent(plan, i)) {
            error = mount_bpf();
            error = error ? error : directory_create(plan->hosts[i].pins);
        }
    }
    return error;
}

static void
add(struct svec *svec, char *allocated)
{
    svec_add_nocopy(svec, allocated);
}

/* Starts daemon 'name' with libopenvswitch's folders and 'variable', which may
 * be null, in its environment.  Takes ownership of 'variable' and the strings
 * of 'argv'. */
static char *
start_daemon(const struct cluster *c, const char *name, const char *netns,
             char *variable, struct svec *argv)
{
    struct svec env = SVEC_EMPTY_INITIALIZER;

    add(&env, xasprintf("OVS_RUNDIR=%s/ovs", c->plan->rundir));
    add(&env, xasprintf("OVS_LOGDIR=%s/log", c->plan->rundir));
    add(&env, xasprintf("OVS_DBDIR=%s/ovs", c->plan->rundir));
    if (variable) {
        add(&env, variable);
    }
    return supervisor_add(c->sv, name, netns, &env, argv);
}

/* Adds option 'name' with 'value', which is freed. */
static void
add_option(struct svec *argv, const char *name, char *value)
{
    svec_add(argv, name);
    svec_add_nocopy(argv, value);
}

/* Adds options of libopenvswitch: log to standard error only, and a control
 * socket. */
static void
add_ovs_options(struct svec *argv, char *ctl)
{
    svec_add(argv, "-vconsole:info");
    svec_add(argv, "-vsyslog:off");
    add(argv, xasprintf("--unixctl=%s", ctl));
    free(ctl);
}

/* Starts Open vSwitch with a database and a run directory of its own. */
static char *
start_switch(const struct cluster *c)
{
    const struct plan *plan = c->plan;
    char *db = xasprintf("%s/ovs/conf.db", plan->rundir);
    const char *const create[] = {
        "ovsdb-tool", "create", db,
        "/usr/share/openvswitch/vswitch.ovsschema", NULL
    };
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error = tool_run(NULL, create, NULL, READY_MS, NULL);

    if (!error) {
        svec_add(&argv, "ovsdb-server");
        svec_add(&argv, db);
        add(&argv, xasprintf("--remote=punix:%s/ovs/db.sock", plan->rundir));
        add_ovs_options(&argv, xasprintf("%s/ovs/db.ctl", plan->rundir));
        error = start_daemon(c, "ovsdb-switch", NULL, NULL, &argv);
    }
    if (!error) {
        svec_init(&argv);
        svec_add(&argv, "ovs-vswitchd");
        add(&argv, xasprintf("unix:%s/ovs/db.sock", plan->rundir));
        add_ovs_options(&argv, xasprintf("%s/ovs/vswitchd.ctl", plan->rundir));
        error = start_daemon(c, "ovs-vswitchd", plan->fabric_ns, NULL, &argv);
    }
    free(db);
    return error;
}

/* Creates 'file' as the database of member 'i', unless it exists. */
static char *
init_member(const struct plan *plan, const struct database *db, int i,
            const char *file)
{
    char *own, *first, *error;

    if (!i) {
        return database_init(db, file, NULL);
    } else if (!access(file, F_OK)) {
        return NULL;
    }
    own = xasprintf("unix:%s.raft", file);
    first = xasprintf("unix:%s/db/%s.db.raft", plan->rundir, db->name);

    const char *const argv[] = { "ovsdb-tool", "join-cluster", file,
                                 db->schema, own, first, NULL };
    error = tool_run(NULL, argv, NULL, JOIN_MS, NULL);
    free(own);
    free(first);
    return error;
}

static char *
start_member(const struct cluster *c, const struct database *database, int i)
{
    const struct plan *plan = c->plan;
    char *rundir = plan_member_rundir(plan, i);
    char *dir = xasprintf("%s/db", rundir);
    char *file = xasprintf("%s/%s.db", dir, database->name);
    char *name = plan_member_daemon(database, i);
    char *error = directory_create(dir);

    error = error ? error : init_member(plan, database, i, file);
    if (!error) {
        struct database_site site = { .rundir = rundir };
        struct svec argv = SVEC_EMPTY_INITIALIZER;

        database_argv(database, file, &site, &argv);
        error = start_daemon(c, name, NULL, NULL, &argv);
    }
    if (!error) {
        char *remote = database_remote(database, rundir);

        error = database_wait(database, remote, READY_MS);
        free(remote);
    }
    free(name);
    free(file);
    free(dir);
    free(rundir);
    return error;
}

/* Starts all members of a database, and waits until they reply. */
static char *
start_database(const struct cluster *c, const struct database *database)
{
    char *error = NULL;

    for (int i = 0; !error && i < plan_n_members(c->plan); i++) {
        error = start_member(c, database, i);
    }
    return error;
}

static char *
start_controller(const struct cluster *c, int i, const char *policy_file)
{
    const struct plan *plan = c->plan;
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *telemetry = plan_controller_file(plan, i, "telemetry", "sock");
    char *rest = plan_controller_file(plan, i, "rest", "sock");
    char *name = plan_controller_daemon(i);
    char *error;

    add(&argv, plan_program(plan, "stagecoach-controller"));
    add_option(&argv, "--intent", plan_remote(plan, &database_intent));
    add_option(&argv, "--hosts", plan_remote(plan, &database_hosts));
    add_option(&argv, "--telemetry", xasprintf("punix:%s", telemetry));
    add_option(&argv, "--rest", xasprintf("unix:%s", rest));
    add_option(&argv, "--policy", xstrdup(policy_file));
    add_option(&argv, "--history",
               xasprintf("%s/log/%s.db", plan->rundir, name));
    if (plan_has_topology(plan)) {
        add_option(&argv, "--topology", leaf_spine_topology(plan));
    } else if (plan_uses_ovs(plan)) {
        add_option(&argv, "--switch", xstrdup(plan->bridge));
    }
    add_ovs_options(&argv, plan_controller_file(plan, i, "controller", "ctl"));
    error = start_daemon(c, name, NULL, NULL, &argv);
    free(name);
    free(rest);
    free(telemetry);
    return error;
}

static char *
start_controllers(const struct cluster *c, const char *policy_file)
{
    char *error = NULL;

    for (int i = 0; !error && i < plan_n_controllers(c->plan); i++) {
        error = start_controller(c, i, policy_file);
    }
    return error;
}

/* Rate of the hosts' links, as an option. */
static char *
get_rate(const struct plan *plan)
{
    return xasprintf("%" PRId64 "kbit", plan->rate_bps / 1000);
}

static char *
start_shim(const struct cluster *c, int i)
{
    const struct plan *plan = c->plan;
    const struct plan_host *host = &plan->hosts[i];
    char *name = xasprintf("shim-h%d", i);
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error;

    add(&argv, plan_program(plan, "stagecoach-shim"));
    add_option(&argv, "--name", xasprintf("%s-h%d", plan->name, i));
    add_option(&argv, "--host-port", xstrdup("af_packet:host"));
    svec_add(&argv, "--host-tags=yes");
    add_option(&argv, "--uplink", xstrdup("af_packet:uplink"));
    add_option(&argv, "--rate", get_rate(plan));
    add_option(&argv, "--mtu", xasprintf("%d", plan->mtu));
    svec_add(&argv, plan->cc ? "--cc=on" : "--cc=off");
    add_option(&argv, "--switch-queues",
               xstrdup(plan->queues == QUEUES_STRICT ? "strict" : "one"));
    add_option(&argv, "--control", xstrdup(host->shim));

    /* DPDK puts its files into RUNTIME_DIRECTORY, which systemd sets. */
    error = start_daemon(c, name, host->node_ns,
                         xasprintf("RUNTIME_DIRECTORY=%s", host->dir), &argv);
    free(name);
    return error;
}

/* Remote for agents: all controllers. */
static char *
get_telemetry(const struct plan *plan)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    for (int i = 0; i < plan_n_controllers(plan); i++) {
        char *file = plan_controller_file(plan, i, "telemetry", "sock");

        ds_put_format(&ds, "%sunix:%s", i ? "," : "", file);
        free(file);
    }
    return ds_steal_cstr(&ds);
}

/* Adds the options of an agent for what it orders with. */
static void
add_actuator(struct svec *argv, const struct plan *plan,
             const struct plan_host *host)
{
    static const char *const names[] = { [ACTUATOR_SHIM] = "shim",
                                         [ACTUATOR_BPF] = "bpf",
                                         [ACTUATOR_OBSERVE] = "observe" };

    add_option(argv, "--actuator", xstrdup(names[host->actuator]));
    add_option(argv, "--uplink", xstrdup("eth0"));
    add_option(argv, "--pins", xstrdup(host->pins));
    add_option(argv, "--kernel-cgroup", xstrdup(host->cgroup));
    if (host->actuator == ACTUATOR_SHIM) {
        add_option(argv, "--shim", xstrdup(host->shim));
        add_option(argv, "--bypass",
                   xasprintf("%s:host,uplink", host->node_ns));
    } else {
        add_option(argv, "--rate", get_rate(plan));
    }
    if (host->actuator == ACTUATOR_BPF) {
        char *rate = get_rate(plan);

        add_option(argv, "--tc", xasprintf("eth0:%s", rate));
        free(rate);
    }
}

static char *
start_agent(const struct cluster *c, int i)
{
    const struct plan *plan = c->plan;
    const struct plan_host *host = &plan->hosts[i];
    char *name = xasprintf("agent-h%d", i);
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    char *error;

    add(&argv, plan_program(plan, "stagecoach-agent"));
    add_option(&argv, "--host", xstrdup(host->name));
    add_option(&argv, "--db", plan_remote(plan, &database_hosts));
    add_option(&argv, "--controller", get_telemetry(plan));
    add_actuator(&argv, plan, host);
    add_option(&argv, "--rundir", xstrdup(host->dir));
    add_option(&argv, "--cgroup", xstrdup(host->cgroup));
    svec_add(&argv, "-vconsole:info");
    svec_add(&argv, "-vsyslog:off");
    error = start_daemon(c, name, host->ns, NULL, &argv);
    free(name);
    return error;
}

static bool
shims_ready(const struct plan *plan)
{
    bool ready = true;

    for (int i = 0; ready && i < plan->n_hosts; i++) {
        struct shim_client *client;

        if (plan_orders_with(plan, i, ACTUATOR_SHIM)) {
            ready = !shim_client_open(plan->hosts[i].shim, &client);
            shim_client_close(client);
        }
    }
    return ready;
}

/* Returns true if each agent without a shim limits the rate of its uplink. */
static bool
uplinks_ready(const struct plan *plan)
{
    static const char *const argv[] = { "tc",   "qdisc", "show", "dev",
                                        "eth0", "root",  NULL };
    bool ready = true;

    for (int i = 0; ready && i < plan->n_hosts; i++) {
        char *text;

        if (plan_orders_with(plan, i, ACTUATOR_BPF)) {
            free(tool_run(plan->hosts[i].ns, argv, NULL, ASK_MS, &text));
            ready = text && !strncmp(text, "qdisc htb ", 10);
            free(text);
        }
    }
    return ready;
}

static bool
agents_ready(const struct plan *plan)
{
    cJSON *status = cluster_ask(plan, "controller/status", NULL);
    const cJSON *agents = cJSON_GetObjectItem(status, "agents");
    bool ready =
        (cJSON_IsNumber(agents) && agents->valueint >= plan_n_agents(plan));

    cJSON_Delete(status);
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
 * A message quotes the log of 'daemon'. */
static char *
wait_until(struct cluster *c, const char *what, const char *daemon,
           bool (*ready)(const struct plan *))
{
    long long deadline = time_msec() + READY_MS;

    while (!ready(c->plan)) {
        char *error = supervisor_run(c->sv);

        if (error) {
            return error;
        }
        if (interrupt_signal()) {
            return xstrdup(interrupted);
        }
        if (time_msec() > deadline) {
            return not_ready(c->plan, what, daemon);
        }
        interrupt_sleep(50);
    }
    return NULL;
}

static char *
make_supervisor(struct cluster *c)
{
    c->sv = supervisor_create(c->plan);
    return make_directories(c->plan);
}

static char *
start_host_daemons(struct cluster *c)
{
    int n = c->plan->n_hosts;
    char *error = NULL;

    for (int i = 0; !error && i < n; i++) {
        if (plan_orders_with(c->plan, i, ACTUATOR_SHIM)) {
            error = start_shim(c, i);
        }
    }
    for (int i = 0; !error && i < n; i++) {
        error = plan_has_agent(c->plan, i) ? start_agent(c, i) : NULL;
    }
    return error;
}

bool
cluster_switches_in_sync(const struct plan *plan)
{
    cJSON *status = cluster_ask(plan, "controller/switches", NULL);
    const cJSON *switches = cJSON_GetObjectItem(status, "switches");
    const cJSON *sw;
    bool ready = cJSON_GetArraySize(switches) > 0;

    cJSON_ArrayForEach (sw, switches) {
        const char *state = cJSON_GetStringValue(
            cJSON_GetObjectItem(sw, "state"));

        ready = ready && state && !strcmp(state, "in sync");
    }
    cJSON_Delete(status);
    return ready;
}

/* Waits for 'what' of the hosts that order with 'actuator'.  A message quotes
 * 'daemon' of the first one. */
static char *
wait_for_hosts(struct cluster *c, enum host_actuator actuator,
               const char *what, const char *daemon,
               bool (*ready)(const struct plan *))
{
    char *name, *error;
    int i = 0;

    while (i < c->plan->n_hosts && !plan_orders_with(c->plan, i, actuator)) {
        i++;
    }
    if (i == c->plan->n_hosts) {
        return NULL;
    }
    name = xasprintf("%s-h%d", daemon, i);
    error = wait_until(c, what, name, ready);
    free(name);
    return error;
}

static char *
wait_until_ready(struct cluster *c)
{
    char *error =
        wait_for_hosts(c, ACTUATOR_SHIM, "shims", "shim", shims_ready);

    error = (error ? error
                   : wait_for_hosts(c, ACTUATOR_BPF, "uplinks", "agent",
                                    uplinks_ready));
    if (!error && plan_n_agents(c->plan)) {
        error = wait_until(c, "agents", "controller", agents_ready);
    }
    if (!error && plan_has_topology(c->plan)) {
        error = wait_until(c, "switches", "controller",
                           cluster_switches_in_sync);
    }
    return error;
}

#define N_STEPS 9

static char *
create_fabric(const struct plan *plan, const char *policy_file)
{
    struct policy *policy;
    char *error = policy_from_file(policy_file, &policy);

    error = error ? error : fabric_create(plan, policy);
    policy_destroy(policy);
    return error;
}

/* Runs a step of cluster_up(), which can be interrupted between steps. */
static char *
run_step(struct cluster *c, int step, const char *policy_file)
{
    switch (step) {
    case 0: return make_supervisor(c);
    case 1:
        return create_fabric(c->plan, policy_file);
    case 2: return plan_uses_ovs(c->plan) ? start_switch(c) : NULL;
    case 3: return start_database(c, &database_intent);
    case 4: return start_database(c, &database_hosts);
    case 5: return fabric_join(c->plan);
    case 6: return start_controllers(c, policy_file);
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
    pid_t vswitchd = supervisor_pid(c->sv, "ovs-vswitchd");

    if (vswitchd && time_msec() >= c->next_widen) {
        switch_buffers_widen(vswitchd);
        c->next_widen = time_msec() + WIDEN_MS;
    }
    return supervisor_run(c->sv);
}

void
cluster_wait(struct cluster *c)
{
    supervisor_wait(c->sv);
    if (plan_uses_ovs(c->plan)) {
        poll_timer_wait_until(c->next_widen);
    }
}

/* Stops the daemons; their files stay until cluster_down(). */
void
cluster_stop(struct cluster *c)
{
    if (c->sv) {
        supervisor_stop(c->sv);
        supervisor_destroy(c->sv);
        c->sv = NULL;
    }
}

/* Returns NULL or a message about what could not be removed. */
char *
cluster_down(struct cluster *c)
{
    cluster_stop(c);
    return clean(c->plan, c->plan->rundir);
}

unsigned int
cluster_restarts(const struct cluster *c)
{
    return c->sv ? supervisor_restarts(c->sv) : 0;
}

pid_t
cluster_pid(const struct cluster *c, const char *name)
{
    return c->sv ? supervisor_pid(c->sv, name) : 0;
}

/* Calls a unixctl command at socket 'ctl', which it frees. */
static cJSON *
ask(char *ctl, const char *command, int timeout_ms, char **errorp)
{
    char *reply;
    int errnum;
    char *error =
        rpc_unixctl(ctl, command, 0, NULL, timeout_ms, &reply, &errnum);
    cJSON *json = error ? NULL : cJSON_Parse(reply);

    free(ctl);
    free(reply);
    if (errorp) {
        *errorp = error;
    } else {
        free(error);
    }
    return json;
}

struct cJSON *
cluster_ask_one(const struct plan *plan, int i, const char *command,
                char **errorp)
{
    return ask(plan_controller_file(plan, i, "controller", "ctl"), command,
               ASK_MS, errorp);
}

struct cJSON *
cluster_ask_agent(const struct plan *plan, int host, const char *command,
                  int timeout_ms)
{
    if (!plan_has_agent(plan, host)) {
        return NULL;
    }
    return ask(xasprintf("%s/agent.ctl", plan->hosts[host].dir), command,
               timeout_ms, NULL);
}

static bool
is_active(const struct plan *plan, int i)
{
    cJSON *status = cluster_ask_one(plan, i, "controller/status", NULL);
    const char *state = cJSON_GetStringValue(cJSON_GetObjectItem(status,
                                                                 "state"));
    bool active = state && !strcmp(state, "active");

    cJSON_Delete(status);
    return active;
}

struct cJSON *
cluster_ask(const struct plan *plan, const char *command, char **errorp)
{
    int i = plan_n_controllers(plan) - 1;

    while (i > 0 && !is_active(plan, i)) {
        i--;
    }
    return cluster_ask_one(plan, i, command, errorp);
}
