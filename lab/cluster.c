/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/database.h"
#include "controller/rpc-call.h"
#include "lab/cgroup-tree.h"
#include "lab/fabric.h"
#include "lab/interrupt.h"
#include "lab/lock.h"
#include "lab/members.h"
#include "lab/say.h"
#include "lab/spawn.h"
#include "lab/supervisor.h"
#include "lab/switch-buffers.h"
#include "openvswitch/poll-loop.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define READY_MS 20000          /* For each part to answer for the first
                                 * time; the machine may be busy. */
#define WIDEN_MS 300            /* Between two looks at the switch's
                                 * sockets. */
#define ASK_MS 3000             /* For a reply of the controller. */
#define TAIL_LINES 5            /* Of a log that may tell why not. */

struct cluster {
    const struct plan *plan;
    struct supervisor *sv;      /* NULL while down. */
    long long next_widen;       /* When to look at the switch's sockets. */
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
    error = lock_take(plan->lock, &fd, &old_rundir);
    if (error) {
        return error;
    }
    error = cluster_clean(plan, old_rundir ? old_rundir : plan->rundir);
    free(old_rundir);
    if (!error) {
        error = lock_write(fd, plan->rundir);
    }
    if (error) {
        lock_release(plan->lock, fd);
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
        lock_release(c->plan->lock, c->lock_fd);
        free(c);
    }
}

/* Makes 'dir' and what is above it. */
static char *
make_dir(char *dir)
{
    char *error = NULL;

    for (char *p = dir + 1; !error; p++) {
        char c = *p;

        if (c == '/' || !c) {
            *p = '\0';
            if (mkdir(dir, 0755) && errno != EEXIST) {
                error = xasprintf("%s: %s", dir, ovs_strerror(errno));
            }
            *p = c;
        }
        if (!c) {
            break;
        }
    }
    free(dir);
    return error;
}

/* Commands look for all sockets in one directory, where they are on a machine
 * that has a controller and an agent.  So a host's directory leads to those
 * that the hosts of the lab share. */
static char *
link_shared_sockets(const struct plan *plan, int host)
{
    static const char *const names[] = {
        "controller.ctl", "hosts.sock", "intent.sock", "rest.sock",
        "telemetry.sock",
    };
    char *dir = plan_host_dir(plan, host);
    char *error = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(names) && !error; i++) {
        char *socket = xasprintf("%s/%s", plan->rundir, names[i]);
        char *path = xasprintf("%s/%s", dir, names[i]);

        if (symlink(socket, path) && errno != EEXIST) {
            error = xasprintf("%s: %s", path, ovs_strerror(errno));
        }
        free(path);
        free(socket);
    }
    free(dir);
    return error;
}

static char *
make_places(const struct plan *plan)
{
    char *daemons = xasprintf("%s/daemons", plan->cgroup);
    char *error = make_dir(xasprintf("%s/log", plan->rundir));

    if (!error) {
        error = make_dir(xasprintf("%s/ovs", plan->rundir));
    }
    if (!error) {
        error = make_dir(xasprintf("%s/db", plan->rundir));
    }
    if (!error) {
        error = cgroup_tree_create(daemons);
    }
    for (int i = 0; !error && i < plan->n_hosts; i++) {
        char *cgroup = plan_host_cgroup(plan, i);

        error = make_dir(plan_host_dir(plan, i));
        error = error ? error : link_shared_sockets(plan, i);
        if (!error) {
            error = cgroup_tree_create(cgroup);
        }
        free(cgroup);
    }
    free(daemons);
    return error;
}

/* Starts daemon 'name', and frees 'argv' and 'env' with their strings. */
static char *
start(struct cluster *c, const char *name, const char *netns,
      struct svec *env, struct svec *argv)
{
    char *error;

    svec_terminate(env);
    svec_terminate(argv);
    error = supervisor_add(c->sv, name, netns,
                           (const char *const *) env->names,
                           (const char *const *) argv->names);
    svec_destroy(env);
    svec_destroy(argv);
    return error;
}

static void
add(struct svec *svec, char *allocated)
{
    svec_add_nocopy(svec, allocated);
}

/* What libopenvswitch's daemons understand in common: news on standard error
 * only, and a control socket. */
static void
add_ovs_options(struct svec *argv, char *ctl)
{
    svec_add(argv, "-vconsole:info");
    svec_add(argv, "-vsyslog:off");
    add(argv, xasprintf("--unixctl=%s", ctl));
    free(ctl);
}

static void
add_ovs_env(const struct plan *plan, struct svec *env)
{
    add(env, xasprintf("OVS_RUNDIR=%s/ovs", plan->rundir));
    add(env, xasprintf("OVS_LOGDIR=%s/log", plan->rundir));
    add(env, xasprintf("OVS_DBDIR=%s/ovs", plan->rundir));
}

/* Open vSwitch, with a database and a run directory of its own. */
static char *
start_switch(struct cluster *c)
{
    const struct plan *plan = c->plan;
    char *db = xasprintf("%s/ovs/conf.db", plan->rundir);
    const char *const create[] = {
        "ovsdb-tool", "create", db,
        "/usr/share/openvswitch/vswitch.ovsschema", NULL
    };
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *error = tool_run(NULL, create, NULL, READY_MS, NULL);

    if (!error) {
        svec_add(&argv, "ovsdb-server");
        svec_add(&argv, db);
        add(&argv, xasprintf("--remote=punix:%s/ovs/db.sock", plan->rundir));
        add_ovs_options(&argv, xasprintf("%s/ovs/db.ctl", plan->rundir));
        add_ovs_env(plan, &env);
        error = start(c, "ovsdb-switch", NULL, &env, &argv);
    }
    if (!error) {
        svec_init(&argv);
        svec_init(&env);
        svec_add(&argv, "ovs-vswitchd");
        add(&argv, xasprintf("unix:%s/ovs/db.sock", plan->rundir));
        add_ovs_options(&argv, xasprintf("%s/ovs/vswitchd.ctl",
                                         plan->rundir));
        add_ovs_env(plan, &env);
        error = start(c, "ovs-vswitchd", plan->fabric_ns, &env, &argv);
    }
    free(db);
    return error;
}

static char *
start_member(struct cluster *c, const struct database *database, int i)
{
    const struct plan *plan = c->plan;
    char *rundir = members_rundir(plan, i);
    char *dir = xasprintf("%s/db", rundir);
    char *file = xasprintf("%s/%s.db", dir, database->name);
    char *name = members_daemon(database, i);
    char *error = make_dir(xstrdup(dir));

    error = error ? error : members_init(plan, database, i, file);
    if (!error) {
        struct database_site site = { .rundir = rundir };
        char **args = database_argv(database, file, &site);
        struct svec argv = SVEC_EMPTY_INITIALIZER;
        struct svec env = SVEC_EMPTY_INITIALIZER;

        for (size_t j = 0; args[j]; j++) {
            svec_add(&argv, args[j]);
        }
        database_argv_free(args);
        add_ovs_env(plan, &env);
        error = start(c, name, NULL, &env, &argv);
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

static char *
start_database(struct cluster *c, const struct database *database)
{
    char *error = NULL;

    for (int i = 0; !error && i < members_n(c->plan); i++) {
        error = start_member(c, database, i);
    }
    return error;
}

static char *
start_controller(struct cluster *c, int i, const char *policy_file)
{
    const struct plan *plan = c->plan;
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *telemetry = members_controller_file(plan, i, "telemetry", "sock");
    char *rest = members_controller_file(plan, i, "rest", "sock");
    char *name = members_controller_daemon(i);
    char *error;

    add(&argv, plan_program(plan, "stagecoach-controller"));
    svec_add(&argv, "--intent");
    add(&argv, members_remote(plan, &database_intent));
    svec_add(&argv, "--hosts");
    add(&argv, members_remote(plan, &database_hosts));
    svec_add(&argv, "--telemetry");
    add(&argv, xasprintf("punix:%s", telemetry));
    svec_add(&argv, "--rest");
    add(&argv, xasprintf("unix:%s", rest));
    svec_add(&argv, "--policy");
    svec_add(&argv, policy_file);
    if (plan->fabric == FABRIC_OVS) {
        svec_add(&argv, "--switch");
        add(&argv, xasprintf("unix:%s/ovs/br0.mgmt", plan->rundir));
    }
    add_ovs_options(&argv, members_controller_file(plan, i, "controller",
                                                   "ctl"));
    add_ovs_env(plan, &env);
    error = start(c, name, NULL, &env, &argv);
    free(name);
    free(rest);
    free(telemetry);
    return error;
}

static char *
up_controllers(struct cluster *c, const char *policy_file)
{
    char *error = NULL;

    for (int i = 0; !error && i < members_n_controllers(c->plan); i++) {
        error = start_controller(c, i, policy_file);
    }
    return error;
}

static char *
start_shim(struct cluster *c, int i)
{
    const struct plan *plan = c->plan;
    char *name = xasprintf("shim-h%d", i);
    char *netns = plan_node_ns(plan, i);
    char *dir = plan_host_dir(plan, i);
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *error;

    add(&argv, plan_program(plan, "stagecoach-shim"));
    svec_add(&argv, "--name");
    add(&argv, xasprintf("%s-h%d", plan->name, i));
    svec_add(&argv, "--host-port");
    svec_add(&argv, "af_packet:host");
    svec_add(&argv, "--uplink");
    svec_add(&argv, "af_packet:uplink");
    svec_add(&argv, "--rate");
    add(&argv, xasprintf("%"PRId64"kbit", plan->rate_bps / 1000));
    svec_add(&argv, "--mtu");
    add(&argv, xasprintf("%d", plan->mtu));
    svec_add(&argv, plan->cc ? "--cc=on" : "--cc=off");
    svec_add(&argv, "--control");
    add(&argv, xasprintf("%s/shim.sock", dir));

    /* DPDK keeps its files where systemd would tell it to. */
    add(&env, xasprintf("RUNTIME_DIRECTORY=%s", dir));
    error = start(c, name, netns, &env, &argv);
    free(dir);
    free(netns);
    free(name);
    return error;
}

static char *
start_agent(struct cluster *c, int i)
{
    const struct plan *plan = c->plan;
    char *name = xasprintf("agent-h%d", i);
    char *netns = plan_host_ns(plan, i);
    char *node = plan_node_ns(plan, i);
    char *dir = plan_host_dir(plan, i);
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *error;

    add(&argv, plan_program(plan, "stagecoach-agent"));
    svec_add(&argv, "--host");
    add(&argv, xasprintf("h%d", i));
    svec_add(&argv, "--db");
    add(&argv, members_remote(plan, &database_hosts));
    svec_add(&argv, "--controller");
    add(&argv, members_telemetry(plan));
    svec_add(&argv, "--shim");
    add(&argv, xasprintf("%s/shim.sock", dir));
    svec_add(&argv, "--bypass");
    add(&argv, xasprintf("%s:host,uplink", node));
    svec_add(&argv, "--rundir");
    svec_add(&argv, dir);
    svec_add(&argv, "--cgroup");
    add(&argv, plan_host_cgroup(plan, i));
    svec_add(&argv, "-vconsole:info");
    svec_add(&argv, "-vsyslog:off");
    add_ovs_env(plan, &env);
    error = start(c, name, netns, &env, &argv);
    free(dir);
    free(node);
    free(netns);
    free(name);
    return error;
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

/* Waits until 'ready' says so, while daemons are watched.  'daemon' is whose
 * log may tell why it does not. */
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

/* The steps of cluster_up() are between points where it may be interrupted. */
static char *
up_switch(struct cluster *c, const char *policy_file OVS_UNUSED)
{
    return c->plan->fabric == FABRIC_OVS ? start_switch(c) : NULL;
}

static char *
up_places(struct cluster *c, const char *policy_file OVS_UNUSED)
{
    char *log_dir = xasprintf("%s/log", c->plan->rundir);
    char *cgroup = xasprintf("%s/daemons", c->plan->cgroup);
    char *error = make_places(c->plan);

    c->sv = supervisor_create(log_dir, cgroup);
    free(log_dir);
    free(cgroup);
    return error;
}

static char *
up_links(struct cluster *c, const char *policy_file OVS_UNUSED)
{
    return fabric_create(c->plan);
}

static char *
up_intent(struct cluster *c, const char *policy_file OVS_UNUSED)
{
    return start_database(c, &database_intent);
}

static char *
up_hosts(struct cluster *c, const char *policy_file OVS_UNUSED)
{
    return start_database(c, &database_hosts);
}

static char *
up_ports(struct cluster *c, const char *policy_file OVS_UNUSED)
{
    return fabric_join(c->plan);
}

static char *
up_daemons(struct cluster *c, const char *policy_file OVS_UNUSED)
{
    char *error = NULL;

    for (int i = 0; !error && i < c->plan->n_hosts; i++) {
        error = start_shim(c, i);
    }
    for (int i = 0; !error && i < c->plan->n_hosts; i++) {
        error = start_agent(c, i);
    }
    return error;
}

static char *
up_ready(struct cluster *c, const char *policy_file OVS_UNUSED)
{
    char *error = wait_until(c, "shims", "shim-h0", shims_ready);

    return error ? error : wait_until(c, "agents", "controller",
                                      agents_ready);
}

char *
cluster_up(struct cluster *c, const char *policy_file)
{
    static char *(*const steps[])(struct cluster *, const char *) = {
        up_places, up_links, up_switch, up_intent, up_hosts, up_controllers,
        up_ports, up_daemons, up_ready,
    };
    char *error = NULL;

    for (size_t i = 0; !error && i < ARRAY_SIZE(steps); i++) {
        error = interrupt_signal() ? xstrdup(interrupted)
                                   : steps[i](c, policy_file);
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
    if (c->plan->fabric == FABRIC_OVS) {
        poll_timer_wait_until(c->next_widen);
    }
}

/* Returns NULL or a message about what could not be removed. */
char *
cluster_down(struct cluster *c)
{
    if (c->sv) {
        supervisor_stop(c->sv);
        supervisor_destroy(c->sv);
        c->sv = NULL;
    }
    return cluster_clean(c->plan, c->plan->rundir);
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
