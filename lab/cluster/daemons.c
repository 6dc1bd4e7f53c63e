/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/daemons.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "controller/ovsdb/database.h"
#include "lab/cluster/cgroup-tree.h"
#include "lab/cluster/members.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "svec.h"
#include "util.h"

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

char *
daemons_make_directories(const struct plan *plan)
{
    static const char *const names[] = { "log", "ovs", "db" };
    char *daemons = xasprintf("%s/daemons", plan->cgroup);
    char *error = NULL;

    for (size_t i = 0; !error && i < ARRAY_SIZE(names); i++) {
        char *path = xasprintf("%s/%s", plan->rundir, names[i]);

        error = directory_create(path);
        free(path);
    }
    if (!error) {
        error = cgroup_tree_create(daemons);
    }
    for (int i = 0; !error && i < plan->n_hosts; i++) {
        char *cgroup = plan_host_cgroup(plan, i);
        char *dir = plan_host_dir(plan, i);

        error = directory_create(dir);
        free(dir);
        error = error ? error : link_shared_sockets(plan, i);
        if (!error) {
            error = cgroup_tree_create(cgroup);
        }
        free(cgroup);
    }
    free(daemons);
    return error;
}

#define READY_MS 20000          /* Time in which a database must start to
                                 * reply; the machine may be busy. */

/* Starts daemon 'name'.  Frees 'argv' and 'env' with their strings. */
static char *
start(const struct daemons *d, const char *name, const char *netns,
      struct svec *env, struct svec *argv)
{
    char *error;

    svec_terminate(env);
    svec_terminate(argv);
    error = supervisor_add(d->sv, name, netns,
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

static void
add_ovs_env(const struct plan *plan, struct svec *env)
{
    add(env, xasprintf("OVS_RUNDIR=%s/ovs", plan->rundir));
    add(env, xasprintf("OVS_LOGDIR=%s/log", plan->rundir));
    add(env, xasprintf("OVS_DBDIR=%s/ovs", plan->rundir));
}

char *
daemons_switch(const struct daemons *d)
{
    const struct plan *plan = d->plan;
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
        error = start(d, "ovsdb-switch", NULL, &env, &argv);
    }
    if (!error) {
        svec_init(&argv);
        svec_init(&env);
        svec_add(&argv, "ovs-vswitchd");
        add(&argv, xasprintf("unix:%s/ovs/db.sock", plan->rundir));
        add_ovs_options(&argv, xasprintf("%s/ovs/vswitchd.ctl",
                                         plan->rundir));
        add_ovs_env(plan, &env);
        error = start(d, "ovs-vswitchd", plan->fabric_ns, &env, &argv);
    }
    free(db);
    return error;
}

static char *
start_member(const struct daemons *d, const struct database *database, int i)
{
    const struct plan *plan = d->plan;
    char *rundir = members_rundir(plan, i);
    char *dir = xasprintf("%s/db", rundir);
    char *file = xasprintf("%s/%s.db", dir, database->name);
    char *name = members_daemon(database, i);
    char *error = directory_create(dir);

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
        error = start(d, name, NULL, &env, &argv);
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

char *
daemons_database(const struct daemons *d, const struct database *database)
{
    char *error = NULL;

    for (int i = 0; !error && i < members_n(d->plan); i++) {
        error = start_member(d, database, i);
    }
    return error;
}

static char *
start_controller(const struct daemons *d, int i, const char *policy_file)
{
    const struct plan *plan = d->plan;
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *telemetry = members_controller_file(plan, i, "telemetry", "sock");
    char *rest = members_controller_file(plan, i, "rest", "sock");
    char *name = members_controller_daemon(i);
    char *error;

    add(&argv, plan_program(plan, "stagecoach-controller"));
    add_option(&argv, "--intent", members_remote(plan, &database_intent));
    add_option(&argv, "--hosts", members_remote(plan, &database_hosts));
    add_option(&argv, "--telemetry", xasprintf("punix:%s", telemetry));
    add_option(&argv, "--rest", xasprintf("unix:%s", rest));
    add_option(&argv, "--policy", xstrdup(policy_file));
    if (plan->fabric == FABRIC_OVS) {
        add_option(&argv, "--switch",
                   xasprintf("unix:%s/ovs/br0.mgmt", plan->rundir));
    }
    add_ovs_options(&argv, members_controller_file(plan, i, "controller",
                                                   "ctl"));
    add_ovs_env(plan, &env);
    error = start(d, name, NULL, &env, &argv);
    free(name);
    free(rest);
    free(telemetry);
    return error;
}

char *
daemons_controllers(const struct daemons *d, const char *policy_file)
{
    char *error = NULL;

    for (int i = 0; !error && i < members_n_controllers(d->plan); i++) {
        error = start_controller(d, i, policy_file);
    }
    return error;
}

char *
daemons_shim(const struct daemons *d, int i)
{
    const struct plan *plan = d->plan;
    char *name = xasprintf("shim-h%d", i);
    char *netns = plan_node_ns(plan, i);
    char *dir = plan_host_dir(plan, i);
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *error;

    add(&argv, plan_program(plan, "stagecoach-shim"));
    add_option(&argv, "--name", xasprintf("%s-h%d", plan->name, i));
    add_option(&argv, "--host-port", xstrdup("af_packet:host"));
    add_option(&argv, "--uplink", xstrdup("af_packet:uplink"));
    add_option(&argv, "--rate",
               xasprintf("%"PRId64"kbit", plan->rate_bps / 1000));
    add_option(&argv, "--mtu", xasprintf("%d", plan->mtu));
    svec_add(&argv, plan->cc ? "--cc=on" : "--cc=off");
    add_option(&argv, "--control", xasprintf("%s/shim.sock", dir));

    /* DPDK puts its files into RUNTIME_DIRECTORY, which systemd sets. */
    add(&env, xasprintf("RUNTIME_DIRECTORY=%s", dir));
    error = start(d, name, netns, &env, &argv);
    free(dir);
    free(netns);
    free(name);
    return error;
}

char *
daemons_agent(const struct daemons *d, int i)
{
    const struct plan *plan = d->plan;
    char *name = xasprintf("agent-h%d", i);
    char *netns = plan_host_ns(plan, i);
    char *node = plan_node_ns(plan, i);
    char *dir = plan_host_dir(plan, i);
    struct svec argv = SVEC_EMPTY_INITIALIZER, env = SVEC_EMPTY_INITIALIZER;
    char *error;

    add(&argv, plan_program(plan, "stagecoach-agent"));
    add_option(&argv, "--host", xasprintf("h%d", i));
    add_option(&argv, "--db", members_remote(plan, &database_hosts));
    add_option(&argv, "--controller", members_telemetry(plan));
    add_option(&argv, "--shim", xasprintf("%s/shim.sock", dir));
    add_option(&argv, "--bypass", xasprintf("%s:host,uplink", node));
    add_option(&argv, "--rundir", xstrdup(dir));
    add_option(&argv, "--cgroup", plan_host_cgroup(plan, i));
    svec_add(&argv, "-vconsole:info");
    svec_add(&argv, "-vsyslog:off");
    add_ovs_env(plan, &env);
    error = start(d, name, netns, &env, &argv);
    free(dir);
    free(node);
    free(netns);
    free(name);
    return error;
}
