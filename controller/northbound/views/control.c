/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/control.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/decide/decide.h"
#include "controller/decide/decision-log.h"
#include "controller/decide/policy-file.h"
#include "controller/history/history.h"
#include "controller/hosts/hosts-db.h"
#include "controller/hosts/telemetry.h"
#include "controller/intent/intent-db.h"
#include "controller/model/cluster.h"
#include "controller/northbound/views/cojobs-report.h"
#include "controller/northbound/views/explain-report.h"
#include "controller/northbound/views/status-report.h"
#include "controller/northbound/views/users-report.h"
#include "controller/southbound/switches.h"
#include "openvswitch/json.h"
#include "policies/policy.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"
#include "wire/certificate.h"
#include "wire/daemon-options.h"
#include "wire/json-put.h"

/* Number of decisions in a reply; "controller/decisions-after" has more. */
#define DECISIONS_SHOWN 100

static void
put_version(const struct controller *ctl, struct json *json)
{
    json_put_integer(json, "version", hosts_db_version(ctl->hosts));
    json_object_put_string(json, "policy", policy_file_get(ctl->policy)->name);
}

/* Adds the version and the certificate of this program. */
static void
put_program(struct json *json)
{
    const char *file = tls_file('c');
    struct certificate cert;

    json_object_put_string(json, "program", STAGECOACH_VERSION);
    if (file) {
        char *error = certificate_read(file, &cert);

        if (!error) {
            struct json *certificate = json_object_create();

            json_object_put_string(certificate, "name", cert.name);
            json_put_integer(certificate, "expires", cert.expires * 1000);
            json_object_put(json, "certificate", certificate);
        }
        free(error);
        free(cert.name);
    }
}

static size_t
count_known_hosts(const struct cluster *c)
{
    size_t n;

    free(cluster_known_hosts(c, &n));
    return n;
}

static struct json *
status_to_json(const struct controller *ctl)
{
    struct json *json = json_object_create();
    size_t n_stages, n_cojobs = 0, n_jobs = 0;
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &ctl->cluster->cojobs) {
        n_cojobs += ((const struct cojob *) node->data)->running;
    }
    SHASH_FOR_EACH (node, &ctl->cluster->jobs) {
        n_jobs += ((const struct job *) node->data)->live;
    }
    free(cluster_running_stages(ctl->cluster, &n_stages));
    put_program(json);
    json_object_put_string(json, "state", intent_db_state(ctl->intent));
    json_put_integer(json, "generation", intent_db_generation(ctl->intent));
    put_version(ctl, json);
    json_put_integer(json, "cojobs", n_cojobs);
    json_put_integer(json, "jobs", n_jobs);
    json_put_integer(json, "stages", n_stages);
    json_put_integer(json, "hosts", count_known_hosts(ctl->cluster));
    json_put_integer(json, "agents", telemetry_n_agents(ctl->telemetry));
    json_put_boolean(json, "intent_connected", intent_db_answers(ctl->intent));
    json_put_boolean(json, "hosts_connected", hosts_db_answers(ctl->hosts));
    decide_status(ctl->decide, json);
    status_report_put(
        json, &(struct status_facts){
                  .cluster = ctl->cluster,
                  .switches = ctl->switches,
                  .keys = telemetry_keys(ctl->telemetry),
                  .overrides = &ctl->overrides,
                  .rows = decide_last(ctl->decide),
                  .folder = ctl->folder,
                  .members = { ctl->intent_members, ctl->hosts_members },
                  .controllers = ctl->controllers,
                  .intent_connected = intent_db_answers(ctl->intent),
                  .hosts_connected = hosts_db_answers(ctl->hosts),
                  .order_age = hosts_db_order_age(ctl->hosts),
                  .policy_error = policy_file_error(ctl->policy),
                  .observes = control_observes(ctl) });
    return json;
}

/* Returns the last decisions, oldest first. */
static struct json *
decisions_to_json(const struct controller *ctl)
{
    return decision_log_to_json(ctl->log, 0, DECISIONS_SHOWN);
}

static struct json *
switches_to_json(const struct controller *ctl)
{
    return switches_status(ctl->switches);
}

static struct json *
order_to_json(const struct controller *ctl)
{
    struct json *json = decide_order_to_json(ctl->decide);

    put_version(ctl, json);
    return json;
}

static struct json *
bursts_to_json(const struct job *job)
{
    struct json *hosts = json_array_create_empty();
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        if (t->burst_period > 0) {
            struct json *json = json_object_create();

            json_object_put_string(json, "host", node->name);
            json_put_real(json, "period_s", t->burst_period);
            json_put_integer(json, "burst_bytes", t->burst_bytes);
            json_put_real(json, "duty", t->burst_duty);
            json_array_add(hosts, json);
        }
    }
    return hosts;
}

char *
control_explain(const struct controller *ctl, const char *job,
                struct json **json)
{
    const struct job *found = shash_find_data(&ctl->cluster->jobs, job);

    *json = decide_explain(ctl->decide, job);
    if (*json) {
        put_version(ctl, *json);
        json_object_put(*json, "bursts", found ? bursts_to_json(found)
                        : json_array_create_empty());
        if (found) {
            if (found->iteration >= 0) {
                json_put_integer(*json, "iteration", found->iteration);
                json_put_boolean(*json, "counted", found->estimated);
            }
            explain_report_put(*json, decide_last(ctl->decide),
                               policy_file_get(ctl->policy), &ctl->overrides,
                               found);
        }
        return NULL;
    }
    return xasprintf(
        "%.64s: %s; expected COJOB/JOB of a job with iterations left in a "
        "running stage",
        job, found ? "not in the last order" : "no such job");
}

static struct json *
stages_to_json(const struct controller *ctl)
{
    return decide_stages_to_json(ctl->decide);
}

static struct json *
policy_to_json(const struct controller *ctl)
{
    const struct policy *policy = policy_file_get(ctl->policy);
    const char *error = policy_file_error(ctl->policy);
    struct json *json = json_object_create();

    json_object_put_string(json, "name", policy->name);
    json_object_put_string(json, "hash", policy->hash);
    json_object_put_string(json, "text", policy->text);
    json_object_put_string(json, "error", error ? error : "");
    return json;
}

static struct json *
facts_to_json(const struct controller *ctl)
{
    return hosts_db_facts_to_json(ctl->hosts);
}

static struct json *
overrides_view(const struct controller *ctl)
{
    return overrides_to_json(&ctl->overrides);
}

const struct control_view control_views[] = {
    { "cojobs", "controller/cojobs", .of_cluster = cojobs_report },
    { "decisions", "controller/decisions", decisions_to_json },
    { "facts", "controller/facts", facts_to_json },
    { "hosts", "controller/hosts", .of_cluster = cojobs_report_hosts },
    { "jobs", "controller/jobs", .of_cluster = cojobs_report_jobs },
    { "order", "controller/order", order_to_json },
    { "overrides", "controller/overrides", overrides_view },
    { "policy", "policy/show", policy_to_json },
    { "ports", "controller/ports", .of_cluster = ports_report },
    { "stages", "controller/stages", stages_to_json },
    { "status", "controller/status", status_to_json },
    { "switches", "controller/switches", switches_to_json },
    { "users", "controller/users", .of_cluster = users_report },
};
const size_t n_control_views = ARRAY_SIZE(control_views);

const struct control_view *
control_find_view(const char *name)
{
    for (size_t i = 0; i < n_control_views; i++) {
        if (!strcmp(name, control_views[i].name)
            || !strcmp(name, control_views[i].command)) {
            return &control_views[i];
        }
    }
    return NULL;
}

struct json *
control_build_view(const struct control_view *view,
                   const struct controller *ctl)
{
    return (view->of_cluster ? view->of_cluster(ctl->cluster)
                             : view->build(ctl));
}

/* Replies with 'json', which may be null, and destroys it. */
static void
reply(struct unixctl_conn *conn, struct json *json)
{
    char *text = json ? json_to_string(json, JSSF_SORT) : NULL;

    unixctl_command_reply(conn, text);
    free(text);
    json_destroy(json);
}

/* Replies with the view of the command 'argv[0]'. */
static void
show_view(struct unixctl_conn *conn, int argc OVS_UNUSED, const char *argv[],
          void *ctl)
{
    reply(conn, control_build_view(control_find_view(argv[0]), ctl));
}

bool
control_observes(const struct controller *ctl)
{
    return overrides_observe(&ctl->overrides);
}

/* Returns NULL, or an error if this controller is not the leader and thus does
 * not write to the database. */
static char *
check_leader(const struct controller *ctl)
{
    return (
        intent_db_is_active(ctl->intent)
            ? NULL
            : xasprintf("this controller is \"%s\"; expected the one that is "
                        "\"active\"",
                        intent_db_state(ctl->intent)));
}

char *
control_history(const struct controller *ctl, const char *kind,
                const char *since, const char *limit, struct json **json)
{
    unsigned int rows = HISTORY_MAX_ROWS;
    long long at;

    if (!ctl->history) {
        return xstrdup("no history is kept, --history=FILE is missing");
    } else if (!str_to_llong(since, 10, &at)
               || (limit && !str_to_uint(limit, 10, &rows))) {
        return xstrdup(
            "SINCE or LIMIT: not a number; expected epoch ms and rows");
    }
    *json = history_to_json(ctl->history, kind, at, rows);
    return *json ? NULL
                 : xstrdup("not a kind of history; expected stages, others "
                           "or ports");
}

/* Appends the names of connected hosts that have not applied their order to
 * 'behind'.  Returns the number of connected hosts. */
static size_t
find_behind(const struct cluster *c, struct json *behind)
{
    size_t n_known, n = 0;
    const struct host **hosts = cluster_known_hosts(c, &n_known);

    for (size_t i = 0; i < n_known; i++) {
        n += hosts[i]->connected;
        if (hosts[i]->connected && host_behind(hosts[i])) {
            json_array_add(behind, json_string_create(hosts[i]->name));
        }
    }
    free(hosts);
    return n;
}

struct json *
rollout_to_json(const struct cluster *c, bool settled, int64_t version,
                double switches)
{
    struct json *behind = json_array_create_empty();
    size_t n = find_behind(c, behind);
    size_t n_behind = behind->array.n;
    struct json *json = json_object_create();

    json_put_boolean(json, "done", settled && !n_behind && switches >= 1);
    json_put_integer(json, "version", version);
    json_put_integer(json, "hosts", n);
    json_put_integer(json, "hosts_applied", n - n_behind);
    json_put_real(json, "applied", n ? (n - n_behind) / (double) n : 1);
    json_put_real(json, "switches_applied", switches);
    json_object_put(json, "behind", behind);
    return json;
}

struct json *
rollout_report(const struct controller *ctl)
{
    bool settled = (intent_db_is_active(ctl->intent) && !ctl->policy_changed
                    && decide_is_settled(ctl->decide)
                    && hosts_db_is_settled(ctl->hosts));

    return rollout_to_json(ctl->cluster, settled, hosts_db_version(ctl->hosts),
                           switches_applied(ctl->switches));
}

bool
rollout_stage_runs(const struct cluster *c, const char *cojob, int rung)
{
    const struct cojob *found = shash_find_data(&c->cojobs, cojob);
    const struct stage *stage;

    if (found) {
        LIST_FOR_EACH (stage, node, &found->stages) {
            if (stage->rung == rung && stage_is_running(stage)) {
                return true;
            }
        }
    }
    return false;
}

/* Commands of the control socket.  They return NULL and store the reply in
 * '*json', or return an error. */

static char *
decisions_after(struct controller *ctl, int argc OVS_UNUSED,
                const char *argv[], struct json **json)
{
    long long id;

    if (!str_to_llong(argv[1], 10, &id) || id < 0) {
        return xstrdup("ID: not a number; expected the number of a decision");
    }
    *json = decision_log_to_json(ctl->log, id, SIZE_MAX);
    return NULL;
}

static char *
explain(struct controller *ctl, int argc OVS_UNUSED, const char *argv[],
        struct json **json)
{
    return control_explain(ctl, argv[1], json);
}

/* Adds an override.  The target is "" for OVERRIDE_OBSERVE. */
static char *
add_override(struct controller *ctl, enum override_kind kind,
             const char *target, int64_t for_ms, const char *actor,
             const char *reason, struct json **json)
{
    struct instant now = instant_now();
    char *duration, *error = check_leader(ctl);
    int64_t id;

    if (!error) {
        error = override_check(kind, target, reason, for_ms, ctl->cluster);
    }
    if (error) {
        return error;
    }
    id = overrides_add(&ctl->overrides, kind, target, actor, reason, for_ms,
                       &now);
    if (!id) {
        return xasprintf("%.64s: too many overrides; expected up to %d, "
                         "undo some",
                         target, OVERRIDES_MAX);
    }
    duration = (for_ms ? xasprintf("for %" PRId64 " s", (for_ms + 999) / 1000)
                       : xstrdup("until undone"));
    intent_db_event(ctl->intent, DECISION_OPERATOR, actor,
                    *target ? target : "cluster", override_names[kind],
                    "%"PRId64", %s%s%s", id, duration, *reason ? ": " : "",
                    reason);
    free(duration);
    *json = override_to_json(overrides_find(&ctl->overrides, id));
    return NULL;
}

static char *
override(struct controller *ctl, int argc OVS_UNUSED, const char *argv[],
         struct json **json)
{
    enum override_kind kind = OVERRIDE_PIN;
    long long for_ms;

    while (kind < OVERRIDE_REVOKE && strcmp(argv[1], override_names[kind])) {
        kind++;
    }
    if (kind == OVERRIDE_REVOKE || !str_to_llong(argv[3], 10, &for_ms)) {
        return xstrdup("KIND or MS: not one; expected pin, pause, exclude and "
                       "observe, or a number");
    }
    return add_override(ctl, kind, argv[2], for_ms, argv[4], argv[5], json);
}

static char *
host_revoke(struct controller *ctl, int argc OVS_UNUSED, const char *argv[],
            struct json **json)
{
    char *error =
        add_override(ctl, OVERRIDE_REVOKE, argv[1], 0, argv[2], argv[3], json);

    if (!error) {
        telemetry_forget(ctl->telemetry, argv[1]);
    }
    return error;
}

static char *
undo(struct controller *ctl, int argc OVS_UNUSED, const char *argv[],
     struct json **json)
{
    const struct override *ov;
    const char *actor = argv[2];
    struct instant now;
    long long id;
    char *error;

    if (!str_to_llong(argv[1], 10, &id)) {
        return xasprintf(
            "%.32s: not the number of an override; expected 0 for the "
            "last",
            argv[1]);
    }
    error = check_leader(ctl);
    if (error) {
        return error;
    }
    now = instant_now();
    ov = overrides_find(&ctl->overrides, id);
    if (!ov) {
        return (id ? xasprintf("%lld: no such override; expected one that "
                               "\"overrides\" lists",
                               id)
                   : xstrdup("nothing is in force that could be undone"));
    }
    if (!overrides_undo(&ctl->overrides, ov->id, &now)) {
        return xasprintf("%" PRId64
                         ": is not in force any more; expected one that is",
                         ov->id);
    }
    intent_db_event(ctl->intent, DECISION_OPERATOR, actor,
                    *ov->target ? ov->target : "cluster", "undo",
                    "%s %"PRId64" by %s", override_names[ov->kind], ov->id,
                    ov->actor);
    *json = override_to_json(ov);
    return NULL;
}

static char *
host_remove(struct controller *ctl, int argc OVS_UNUSED, const char *argv[],
            struct json **json)
{
    const char *name = argv[1], *actor = argv[2], *reason = argv[3];
    char *error = check_leader(ctl);

    error = error ? error : override_check_reason(reason);
    error = error ? error : cluster_check_remove(ctl->cluster, name);
    if (error) {
        return error;
    }
    hosts_db_remove(ctl->hosts, cluster_get_host(ctl->cluster, name));
    telemetry_forget(ctl->telemetry, name);
    intent_db_event(ctl->intent, DECISION_OPERATOR, actor, name, "remove",
                    "rows deleted%s%s", *reason ? ": " : "", reason);
    *json = json_object_create();
    json_object_put_string(*json, "host", name);
    return NULL;
}

/* Goes above the generations that hosts and switches refuse this leader's
 * for. */
static char *
raise_generation(struct controller *ctl, int argc OVS_UNUSED,
                 const char *argv[], struct json **json)
{
    const char *actor = argv[1], *reason = argv[2];
    int64_t generation = ctl->cluster->generation, raised;
    struct json *beyond = json_array_create_empty();
    char *error = check_leader(ctl);
    struct newer *newer;
    size_t n;

    newer = newer_find(ctl->cluster, ctl->switches, &n);
    raised = newer_to_raise(newer, n, generation);
    for (size_t i = 0; i < n; i++) {
        if (newer[i].generation > raised) {
            json_array_add(beyond, json_string_create(newer[i].name));
        }
    }
    free(newer);
    error = error ? error : override_check_reason(reason);
    if (!error && raised == generation) {
        error = xasprintf("%" PRId64 ": no host or switch has seen a newer "
                          "generation within a century; one that refuses this "
                          "one is expected",
                          generation);
    }
    if (error) {
        json_destroy(beyond);
        return error;
    }
    intent_db_event(ctl->intent, DECISION_OPERATOR, actor, "cluster",
                    "raise-generation", "above %" PRId64 "%s%s", raised,
                    *reason ? ": " : "", reason);
    intent_db_raise(ctl->intent, raised);
    *json = json_object_create();
    json_put_integer(*json, "above", raised);
    json_object_put(*json, "beyond", beyond);
    return NULL;
}

static char *
history(struct controller *ctl, int argc, const char *argv[],
        struct json **json)
{
    return control_history(ctl, argv[1], argv[2], argc > 3 ? argv[3] : NULL,
                           json);
}

static char *
rollout(struct controller *ctl, int argc, const char *argv[],
        struct json **json)
{
    bool begun = argc > 3 && !strcmp(argv[3], "begun");
    int rung;

    if (argc > 1 && (argc < 4 || !str_to_int(argv[2], 10, &rung)
                     || (!begun && strcmp(argv[3], "ended")))) {
        return xstrdup("COJOB RUNG begun|ended: expected all three or none");
    }
    *json = rollout_report(ctl);
    if (argc > 1 && rollout_stage_runs(ctl->cluster, argv[1], rung) != begun) {
        json_put_boolean(*json, "done", false);
    }
    return NULL;
}

static char *
policy_reload(struct controller *ctl, int argc OVS_UNUSED,
              const char *argv[] OVS_UNUSED, struct json **json)
{
    if (policy_file_reload(ctl->policy)) {
        ctl->policy_changed = true;
    }
    if (policy_file_error(ctl->policy)) {
        return xstrdup(policy_file_error(ctl->policy));
    }
    *json = policy_to_json(ctl);
    return NULL;
}

static char *
control_exit(struct controller *ctl, int argc OVS_UNUSED,
             const char *argv[] OVS_UNUSED, struct json **json OVS_UNUSED)
{
    ctl->exiting = true;
    return NULL;
}

static const struct command {
    const char *name, *usage;
    int min_args, max_args;
    char *(*run)(struct controller *, int argc, const char *argv[],
                 struct json **json);
} commands[] = {
    { "controller/decisions-after", "ID", 1, 1, decisions_after },
    { "controller/explain", "COJOB/JOB", 1, 1, explain },
    { "controller/override", "KIND TARGET MS ACTOR REASON", 5, 5, override },
    { "controller/undo", "ID ACTOR", 2, 2, undo },
    { "controller/host-remove", "HOST ACTOR REASON", 3, 3, host_remove },
    { "controller/host-revoke", "HOST ACTOR REASON", 3, 3, host_revoke },
    { "controller/raise-generation", "ACTOR REASON", 2, 2, raise_generation },
    { "controller/history", "stages|others|ports SINCE [LIMIT]", 2, 3,
      history },
    { "controller/rollout", "[COJOB RUNG begun|ended]", 0, 3, rollout },
    { "policy/reload", "", 0, 0, policy_reload },
    { "exit", "", 0, 0, control_exit },
};

static void
run_command(struct unixctl_conn *conn, int argc, const char *argv[], void *ctl)
{
    const struct command *command = commands;
    struct json *json = NULL;
    char *error;

    while (strcmp(command->name, argv[0])) {
        command++;
    }
    error = command->run(ctl, argc, argv, &json);
    if (error) {
        unixctl_command_reply_error(conn, error);
        free(error);
    } else {
        reply(conn, json);
    }
}

void
control_register(struct controller *ctl)
{
    for (size_t i = 0; i < n_control_views; i++) {
        unixctl_command_register(control_views[i].command, "", 0, 0,
                                 show_view, ctl);
    }
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        unixctl_command_register(commands[i].name, commands[i].usage,
                                 commands[i].min_args, commands[i].max_args,
                                 run_command, ctl);
    }
}
