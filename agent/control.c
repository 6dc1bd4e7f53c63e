/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/actuator.h"
#include "agent/actuate/tc.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/registry.h"
#include "agent/identify/tracker.h"
#include "agent/links.h"
#include "agent/progress/log-readers.h"
#include "agent/progress/socket.h"
#include "agent/telemetry.h"
#include "base/name.h"
#include "openvswitch/json.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"
#include "wire/cgroup-path.h"
#include "wire/json-put.h"
#include "wire/membership.h"

/* Replies with 'json' and destroys it. */
static void
reply(struct unixctl_conn *conn, struct json *json)
{
    char *text = json_to_string(json, JSSF_SORT);

    unixctl_command_reply(conn, text);
    free(text);
    json_destroy(json);
}

/* Replies with the message 'error', unless that is NULL, or with 'json'; frees
 * both. */
static void
respond(struct unixctl_conn *conn, char *error, struct json *json)
{
    if (error) {
        unixctl_command_reply_error(conn, error);
        free(error);
        json_destroy(json);
    } else {
        reply(conn, json);
    }
}

/* Stores the name of the job of 'words', COJOB and JOB, in 'name'.  Returns
 * NULL or a malloc()'d message. */
static char *
parse_job(const char *words[], char name[NAME_PAIR_SIZE])
{
    int n = snprintf(name, NAME_PAIR_SIZE, "%s/%s", words[0], words[1]);

    if (n < NAME_PAIR_SIZE && cgroup_job_is_valid(name)) {
        return NULL;
    }
    return xasprintf("\"%s\" is not a job, COJOB and JOB, "
                     "each " NAME_RULE,
                     name);
}

static void
control_status(struct unixctl_conn *conn, int argc OVS_UNUSED,
               const char *argv[] OVS_UNUSED, void *a_)
{
    const struct agent *a = a_;
    const struct registry *registry = tracker_registry(a->tracker);
    long long until = lease_until(&a->lease);
    struct actuator_status status;
    struct json *json = json_object_create();

    actuator_get_status(a->actuator, &status);
    json_object_put_string(json, "host", a->config->host);
    json_object_put_string(json, "agent", STAGECOACH_VERSION);
    json_object_put_string(json, "state", agent_state(a));
    json_put_integer(json, "generation", a->lease.newest);
    json_put_integer(json, "version", a->wanted.version);
    json_put_integer(json, "applied", a->applied);
    json_put_integer(json, "lease_left_ms", MAX(until - time_msec(), 0));
    json_object_put_string(json, "actuator",
                           agent_actuator_names[a->config->actuator]);
    json_object_put_string(json, "shim",
                           a->config->actuator != AGENT_SHIM ? "none"
                           : status.connected                ? "connected"
                                                             : "disconnected");
    json_object_put(json, "tc", tc_to_json(a->tc));
    json_put_boolean(json, "bypass", status.bypass);
    json_put_boolean(json, "database", ovsdb_idl_is_connected(a->loop->idl));
    json_put_integer(json, "capacity_bps", agent_capacity(a));
    json_put_integer(json, "tx_bytes", status.totals->tx_bytes);
    json_put_integer(json, "rx_bytes", status.totals->rx_bytes);
    json_put_integer(json, "ip_bytes", status.totals->ip_bytes);
    json_put_integer(json, "default_bytes", status.totals->default_bytes);
    json_put_integer(json, "jobs", hmap_count(&registry->jobs));
    json_put_integer(json, "jobs_refused", registry->n_refused);
    json_object_put(json, "users", users_to_json(&registry->users));
    json_object_put_string(json, "identity",
                           identity_is_blind(a->identity) ? "none" : "kernel");
    json_object_put(json, "scans", tracker_to_json(a->tracker));
    json_object_put(json, "progress", progress_socket_to_json(a->progress));
    json_object_put(json, "telemetry", telemetry_to_json(a->telemetry));
    reply(conn, json);
}

static struct json *
job_to_json(const struct agent *a, const struct job *job)
{
    struct json *json = telemetry_compose_job(job);
    struct shim_slot row;
    bool named = agent_wanted(a, job, &row);

    json_put_integer(json, "cgroup", job->cgroup);
    json_put_integer(json, "seconds", (time_msec() - job->since) / 1000);
    json_put_integer(json, "queue", row.level);
    json_put_integer(json, "dscp", row.dscp);
    if (named) {
        json_put_integer(json, "rank", row.rank);
    }
    if (job->rung >= 0) {
        json_put_integer(json, "rung", job->rung);
    }
    return json;
}

static void
control_jobs(struct unixctl_conn *conn, int argc OVS_UNUSED,
             const char *argv[] OVS_UNUSED, void *a_)
{
    const struct agent *a = a_;
    struct json *jobs = json_array_create_empty();
    struct json *dscps = json_array_create_empty();
    struct json *json = json_object_create();
    const struct job *job;

    HMAP_FOR_EACH (job, node, &tracker_registry(a->tracker)->jobs) {
        json_array_add(jobs, job_to_json(a, job));
    }
    json_object_put(json, "jobs", jobs);
    for (int i = 0; i < SHIM_N_LEVELS; i++) {
        json_array_add(dscps, json_integer_create(a->wanted.dscp[i]));
    }
    json_object_put(json, "dscps", dscps);
    reply(conn, json);
}

static void
control_register(struct unixctl_conn *conn, int argc OVS_UNUSED,
                 const char *argv[], void *a_)
{
    struct agent *a = a_;
    struct json *json = json_object_create();
    char name[NAME_PAIR_SIZE];
    char *error = parse_job(&argv[1], name);

    json_object_put_string(json, "job", name);
    json_put_boolean(json, "known",
                     !error && tracker_register(a->tracker, name));
    respond(conn, error, json);
}

static void
control_links(struct unixctl_conn *conn, int argc OVS_UNUSED,
              const char *argv[], void *a_)
{
    const struct agent *a = a_;
    const struct links_facts facts = {
        .registry = tracker_registry(a->tracker),
        .wanted = &a->wanted,
        .ordered = a->ordered,
        .capacity_bps = agent_capacity(a),
    };
    char *name = xasprintf("%s/%s", argv[1], argv[2]);

    reply(conn, links_compose(&facts, name));
    free(name);
}

/* Parses "rung=N", "uid=N", "namespace=NAME" or "gpus=N".  Returns NULL or a
 * malloc()'d message. */
static char *
parse_claim_option(const char *text, struct claim_request *r)
{
    unsigned long long int value;

    if (!strncmp(text, "rung=", 5) && str_to_ullong(text + 5, 10, &value)
        && value <= 1000000) {
        r->rung = value;
    } else if (!strncmp(text, "uid=", 4) && str_to_ullong(text + 4, 10, &value)
               && value <= MEMBERSHIP_MAX_UID) {
        r->has_uid = true;
        r->uid = value;
    } else if (!strncmp(text, "namespace=", 10) && text[10]) {
        r->has_uid = true;
        r->uid = membership_namespace(text + 10);
    } else if (!strncmp(text, "gpus=", 5)
               && str_to_ullong(text + 5, 10, &value) && value <= 1024) {
        r->gpus = value;
    } else {
        return xasprintf(
            "\"%.40s\" is no rung, user or number of GPUs; expected rung=0 to "
            "rung=1000000, uid=0 to uid=%u, namespace=NAME or gpus=0 to "
            "gpus=1024",
            text, MEMBERSHIP_MAX_UID);
    }
    return NULL;
}

/* Parses SOURCE COJOB JOB KIND TEXT, and options.  The caller frees 'r->path'.
 * Returns NULL or a malloc()'d message. */
static char *
parse_claim(const struct agent *a, int argc, const char *argv[],
            struct claim_request *r)
{
    char *error;

    *r = (struct claim_request){ .rung = -1 };
    r->source = strcmp(argv[1], claim_source_names[CLAIM_LAUNCHER])
                    ? CLAIM_REGISTRATION
                    : CLAIM_LAUNCHER;
    if (strcmp(argv[1], claim_source_names[r->source])) {
        return xasprintf(
            "\"%.40s\" does not claim; expected registration or launcher",
            argv[1]);
    }
    error = parse_job(&argv[2], r->job);
    for (int i = 6; !error && i < argc; i++) {
        error = parse_claim_option(argv[i], r);
    }
    return error ? error
                 : claim_what_parse(argv[4], argv[5], a->cgroup_mount,
                                    &r->what, &r->path);
}

static void
control_claim(struct unixctl_conn *conn, int argc, const char *argv[],
              void *a_)
{
    struct agent *a = a_;
    struct json *json = json_object_create();
    struct claim_request r;
    char *error = parse_claim(a, argc, argv, &r);

    if (!error && !strcmp(argv[0], "agent/unclaim")) {
        error = tracker_unclaim(a->tracker, &r)
                    ? NULL
                    : xasprintf("%s: %s does not claim this %s", r.job,
                                argv[1], argv[4]);
    } else if (!error && !tracker_claim(a->tracker, &r)) {
        error = xasprintf(
            "%s: it is another user's, or the host has too many; expected at "
            "most %d registered ones, %d of a user",
            r.job, REGISTRY_MAX_JOBS, REGISTRY_MAX_UID_JOBS);
    }
    free(r.path);
    json_object_put_string(json, "job", r.job);
    respond(conn, error, json);
}

static void
control_claims(struct unixctl_conn *conn, int argc OVS_UNUSED,
               const char *argv[] OVS_UNUSED, void *a_)
{
    const struct agent *a = a_;
    struct json *claims = json_array_create_empty();
    struct json *json = json_object_create();
    const struct claim *claim;

    HMAP_FOR_EACH (claim, node, &tracker_registry(a->tracker)->claims) {
        struct json *c;

        if (claim->source == CLAIM_CGROUP) {
            continue; /* "agent/jobs" has it. */
        }
        c = json_object_create();
        json_object_put_string(c, "job", claim->job->name);
        json_object_put_string(c, "source", claim_source_names[claim->source]);
        json_put_integer(c, claim_kind_names[claim->what.kind],
                         claim->what.id);
        if (claim->path) {
            json_object_put_string(c, "path", claim->path);
        }
        json_array_add(claims, c);
    }
    json_object_put(json, "claims", claims);
    reply(conn, json);
}

static void
control_readers(struct unixctl_conn *conn, int argc OVS_UNUSED,
                const char *argv[], void *a_)
{
    struct agent *a = a_;
    bool reload = !strcmp(argv[0], "agent/reload-readers");
    char *error = reload ? agent_load_readers(a) : NULL;
    struct json *json = json_object_create();

    json_object_put(json, "readers", log_readers_to_json(a->logs));
    respond(conn, error, json);
}

void
agent_control_register(struct agent *a)
{
    unixctl_command_register("agent/status", "", 0, 0, control_status, a);
    unixctl_command_register("agent/jobs", "", 0, 0, control_jobs, a);
    unixctl_command_register("agent/links", "COJOB JOB", 2, 2, control_links,
                             a);
    unixctl_command_register("agent/register", "COJOB JOB", 2, 2,
                             control_register, a);
    unixctl_command_register("agent/readers", "", 0, 0, control_readers, a);
    unixctl_command_register("agent/reload-readers", "", 0, 0, control_readers,
                             a);
    unixctl_command_register("agent/claim",
                             "SOURCE COJOB JOB "
                             "(cgroup PATH|netns PATH|pid N) [rung=N] "
                             "[uid=N|namespace=NAME] [gpus=N]",
                             5, 8, control_claim, a);
    unixctl_command_register("agent/unclaim", "SOURCE COJOB JOB "
                             "(cgroup PATH|netns PATH|pid N)", 5, 5,
                             control_claim, a);
    unixctl_command_register("agent/claims", "", 0, 0, control_claims, a);
}
