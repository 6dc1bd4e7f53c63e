/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-controller: start, loop, exit. */

#include <config.h>

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "base/service-notify.h"
#include "command-line.h"
#include "controller/controller.h"
#include "controller/decide/decide.h"
#include "controller/decide/decision-log.h"
#include "controller/decide/policy-file.h"
#include "controller/history-feed.h"
#include "controller/history/history.h"
#include "controller/hosts/hosts-db.h"
#include "controller/hosts/telemetry.h"
#include "controller/intent/controllers.h"
#include "controller/intent/intent-db.h"
#include "controller/model/cluster.h"
#include "controller/model/overrides.h"
#include "controller/northbound/rest/rest.h"
#include "controller/northbound/views/control.h"
#include "controller/options.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database-folder.h"
#include "controller/ovsdb/database.h"
#include "controller/southbound/switches.h"
#include "controller/southbound/topology/topology.h"
#include "daemon.h"
#include "fatal-signal.h"
#include "latch.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovs-built.h"
#include "policies/policy.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"
#include "wire/daemon-options.h"

VLOG_DEFINE_THIS_MODULE(main);

/* A new leader waits this long for the progress reports of hosts that have an
 * order, before it computes an order of its own. */
#define GRACE_MS 2000

/* Size of the decision log: some minutes of a busy cluster. */
#define DECISIONS_KEPT 1000

/* Set by signals, which also wake the loop. */
static volatile sig_atomic_t terminated, hung_up;
static struct latch signalled;

static void
handle_signal(int signr)
{
    if (signr == SIGHUP) {
        hung_up = true;
    } else {
        terminated = true;
    }
    latch_set(&signalled);
}

/* Must be called before libopenvswitch installs handlers for signals without
 * one. */
static void
handle_signals(void)
{
    struct sigaction sa = { .sa_handler = handle_signal };

    latch_init(&signalled);
    sigemptyset(&sa.sa_mask);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
}

/* Prints 'error' and ends the program, unless it is null. */
static void
exit_on(char *error)
{
    if (error) {
        fprintf(stderr, "%s: %s\n", program_name, error);
        free(error);
        exit(EXIT_FAILURE);
    }
}

static size_t
count_named_hosts(const struct cluster *c)
{
    const struct shash_node *node;
    size_t n = 0;

    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        n += host->named;
    }
    return n;
}

/* Returns true once an active controller may decide.  A new leader first
 * restores the order in force; '*since' is time_msec() when it became the
 * leader, 0 before. */
static bool
is_ready(const struct controller *ctl, long long *since)
{
    if (!intent_db_is_active(ctl->intent) || !hosts_db_is_ready(ctl->hosts)) {
        *since = 0;
        return false;
    }
    if (!*since) {
        *since = time_msec();
        hosts_db_restore(ctl->hosts);
    }
    if (time_msec() < *since + GRACE_MS
        && hosts_db_awaits_agents(ctl->hosts,
                                  telemetry_n_agents(ctl->telemetry)
                                  < count_named_hosts(ctl->cluster))) {
        poll_timer_wait_until(*since + GRACE_MS);
        return false;
    }
    return true;
}

static void
apply_policy(struct controller *ctl)
{
    const struct policy *policy = policy_file_get(ctl->policy);

    ctl->cluster->trusts_environment = policy->trust == POLICY_ENVIRONMENT;
    ctl->cluster->owner_memory_s = policy->owner_memory_s;
    decide_set_policy(ctl->decide, policy);
    intent_db_set_policy(ctl->intent, policy);
}

static void
log_expired_override(const struct override *ov, void *ctl_)
{
    struct controller *ctl = ctl_;

    intent_db_event(ctl->intent, DECISION_OPERATOR, NULL,
                    *ov->target ? ov->target : "cluster",
                    override_names[ov->kind], "%"PRId64" has run out",
                    ov->id);
}

/* Applies new overrides and ends expired ones. */
static void
run_overrides(struct controller *ctl)
{
    struct instant now = instant_now();

    if (overrides_run(&ctl->overrides, &now, log_expired_override, ctl)) {
        overrides_apply(&ctl->overrides, ctl->cluster);
        hosts_db_mark(ctl->hosts);
        decide_touch(ctl->decide);
    }
    overrides_wait(&ctl->overrides);
}

/* Has the order regard the links of the topology, by its present routes. */
static void
update_fabric(struct controller *ctl)
{
    struct fabric *fabric = switches_take_fabric(ctl->switches);

    if (fabric) {
        cluster_set_fabric(ctl->cluster, fabric);
    }
}

/* Does the work of an active controller. */
static void
run_leader(struct controller *ctl, long long *leading_since)
{
    const struct policy *policy = policy_file_get(ctl->policy);
    bool pushes = intent_db_may_push(ctl->intent);
    struct stage_rows rows;

    if (!*leading_since) {
        stage_starts_forget(&ctl->cluster->starting);
    }
    if (is_ready(ctl, leading_since)) {
        run_overrides(ctl);
        if (decide_run(ctl->decide, time_msec())) {
            hosts_db_mark(ctl->hosts);
        }
        hosts_db_compare(ctl->hosts, policy, intent_db_generation(ctl->intent),
                         control_observes(ctl), pushes);
        rows = hosts_db_rows(ctl->hosts);
        if (pushes) {
            rows.stored =
                MAX(rows.stored, telemetry_push(ctl->telemetry,
                                                hosts_db_version(ctl->hosts)));
        }
        hosts_db_write(ctl->hosts);
        switches_set(ctl->switches, policy, intent_db_generation(ctl->intent));
        update_fabric(ctl);
        stage_starts_run(&ctl->starts, &ctl->cluster->starting, &rows,
                         time_msec());
        decide_wait(ctl->decide);
    }
    if (!intent_db_is_active(ctl->intent)) {
        switches_leave(ctl->switches);
    }
    if (*leading_since) {
        telemetry_send_leases(ctl->telemetry,
                              intent_db_generation(ctl->intent),
                              hosts_db_version(ctl->hosts), policy->lease_ms);
    }
}

/* Updates the remotes of the databases after their members have changed. */
static void
run_members(struct controller *ctl, struct rest *rest)
{
    char *remote;

    if (!ctl->intent_members) {
        return;
    }
    remote = database_members_run(ctl->intent_members);
    if (remote) {
        intent_db_set_remote(ctl->intent, remote);
        controllers_set_remote(ctl->controllers, remote);
        rest_set_intent(rest, remote);
        free(remote);
    }
    remote = database_members_run(ctl->hosts_members);
    if (remote) {
        hosts_db_set_remote(ctl->hosts, remote);
        free(remote);
    }
    database_members_wait(ctl->intent_members);
    database_members_wait(ctl->hosts_members);
}

/* Deletes old rows of the history if there is little space: the databases need
 * it more.  Continues with what a damaged database still has. */
static void
run_folder(struct controller *ctl)
{
    if (database_folder_run(ctl->folder) && ctl->history) {
        history_shrink(ctl->history);
    }
    if (database_folder_take_damage(ctl->folder)) {
        intent_db_accept_older(ctl->intent);
        hosts_db_accept_older(ctl->hosts);
    }
}

static void
run_loop(struct controller *ctl, struct unixctl_server *unixctl,
         struct rest *rest, struct history_feed *feed)
{
    long long leading_since = 0;

    while (!terminated && !ctl->exiting) {
        bool reread;

        latch_poll(&signalled);
        tls_run();
        run_members(ctl, rest);
        intent_db_run(ctl->intent, policy_file_get(ctl->policy)->lease_ms,
                      hosts_db_generation(ctl->hosts));
        controllers_run(ctl->controllers, policy_file_get(ctl->policy));
        hosts_db_run(ctl->hosts);
        telemetry_run(ctl->telemetry, intent_db_is_active(ctl->intent));
        switches_run(ctl->switches);
        run_folder(ctl);
        unixctl_server_run(unixctl);
        rest_run(rest);

        reread = hung_up;
        hung_up = false;
        if ((reread && policy_file_reload(ctl->policy))
            || policy_file_run(ctl->policy) || ctl->policy_changed) {
            ctl->policy_changed = false;
            apply_policy(ctl);
            intent_db_event(ctl->intent, DECISION_POLICY, NULL,
                            policy_file_get(ctl->policy)->name, "policy",
                            "in force (%s)",
                            policy_file_get(ctl->policy)->hash);
        }
        run_leader(ctl, &leading_since);
        history_feed_run(feed);

        hosts_db_commit(ctl->hosts);
        intent_db_commit(ctl->intent);
        controllers_wait(ctl->controllers);
        telemetry_wait(ctl->telemetry);
        switches_wait(ctl->switches);
        database_folder_wait(ctl->folder);
        policy_file_wait(ctl->policy);
        unixctl_server_wait(unixctl);
        rest_wait(rest);
        history_feed_wait(feed);
        latch_wait(&signalled);
        poll_timer_wait_until(service_alive(time_msec()));
        if (ctl->exiting || terminated) {
            poll_immediate_wake();
        }
        poll_block();
    }
}

static char *
open_rest(const struct controller_options *o, struct controller *ctl,
          struct rest **restp)
{
    const struct rest_options options = {
        .remotes = &o->rest,
        .intent = o->intent,
        .users = o->rest_users,
        .api_server = o->api_server,
        .api_account = o->api_account,
        .tls = { tls_file('p'), tls_file('c'), o->rest_ca_cert },
    };

    return rest_create(&options, ctl, restp);
}

int
main(int argc, char *argv[])
{
    struct controller_options o;
    struct unixctl_server *unixctl;
    struct controller ctl = { .exiting = false };
    struct topology *topology = NULL;
    struct history_feed *feed;
    struct rest *rest;
    char *error;

    ovs_cmdl_proctitle_init(argc, argv);
    set_program_name(argv[0]);
    service_start(&argc, &argv);
    handle_signals();
    fatal_ignore_sigpipe();
    controller_options_parse(argc, argv, &o);

    error = policy_file_open(o.policy, &ctl.policy);
    if (!error && o.topology) {
        error = topology_read(o.topology, &topology);
    }
    exit_on(error);
    DAEMONIZE_START();

    if (unixctl_server_create(o.unixctl, &unixctl)) {
        exit_on(xasprintf("%s: cannot listen there", o.unixctl));
    }
    ctl.cluster = cluster_create();
    ctl.log = decision_log_create(DECISIONS_KEPT);
    error = telemetry_create(o.telemetry, o.max_agents, ctl.cluster,
                             &ctl.telemetry);
    exit_on(error);
    ctl.switches = switches_create();
    if (topology) {
        switches_set_topology(ctl.switches, topology);
    }
    update_fabric(&ctl);
    for (size_t i = 0; i < o.switches.n; i++) {
        switches_add(ctl.switches, o.switches.names[i]);
    }
    for (size_t i = 0; i < o.switch_identities.n && !error; i++) {
        error = switches_add_identity(ctl.switches,
                                      o.switch_identities.names[i]);
    }
    exit_on(error);
    ctl.decide = decide_create(ctl.cluster, ctl.log);
    ctl.folder = database_folder_create(o.dbdir);
    overrides_init(&ctl.overrides);
    ctl.intent = intent_db_create(o.intent, o.telemetry, ctl.cluster,
                                  &ctl.overrides, ctl.log);
    ctl.controllers = controllers_create(o.intent, o.telemetry);
    ctl.hosts = hosts_db_create(o.hosts, ctl.cluster);
    apply_policy(&ctl);
    control_register(&ctl);
    error = open_rest(&o, &ctl, &rest);
    if (!error && o.history) {
        error = history_open(o.history, o.history_mib << 20, &ctl.history);
    }
    exit_on(error);
    feed = history_feed_create(&ctl);
    if (o.members) {
        ctl.intent_members = database_members_create(&database_intent,
                                                     o.members);
        ctl.hosts_members = database_members_create(&database_hosts,
                                                    o.members);
    }
    controller_options_uninit(&o);

    daemonize_complete();
    service_notify("READY=1");
    VLOG_INFO("stagecoach-controller " STAGECOACH_VERSION);
    run_loop(&ctl, unixctl, rest, feed);

    service_notify("STOPPING=1");
    database_members_destroy(ctl.intent_members);
    database_members_destroy(ctl.hosts_members);
    history_feed_destroy(feed);
    history_close(ctl.history);
    rest_destroy(rest);
    unixctl_server_destroy(unixctl);
    switches_destroy(ctl.switches);
    telemetry_destroy(ctl.telemetry);
    hosts_db_destroy(ctl.hosts);
    intent_db_destroy(ctl.intent);
    controllers_destroy(ctl.controllers);
    database_folder_destroy(ctl.folder);
    overrides_uninit(&ctl.overrides);
    decide_destroy(ctl.decide);
    cluster_destroy(ctl.cluster);
    decision_log_destroy(ctl.log);
    policy_file_close(ctl.policy);
    service_stop();
    return 0;
}
