/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/explain-report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/stage-name.h"
#include "controller/decide/decide-rows.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/overrides.h"
#include "controller/model/owners.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "policies/policy.h"
#include "util.h"
#include "wire/json-put.h"

/* Maximum number of stages that a sentence lists. */
#define MAX_NAMED 3

/* Lag behind the fastest worker, in iterations, from which on a job counts as
 * waiting for its slowest worker. */
#define LAG_ITERATIONS 2

/* Share of an iteration that the job's own transfers take on its bottleneck
 * port, from which on the job counts as limited by the network. */
#define NETWORK_SHARE 0.7

/* A job of the last order and the data that explains its rank. */
struct explanation {
    const struct decide_rows *rows;
    const struct policy *policy;
    const struct overrides *overrides;
    const struct job *job;
    const struct job_row *row;  /* Row of 'job'. */
    const struct stage_row *stage; /* Row of the job's stage. */
    struct json *why;           /* Array of sentences. */
};

/* The state and the effect of each kind of override. */
static const struct {
    const char *state, *effect;
} override_texts[N_OVERRIDE_KINDS] = {
    [OVERRIDE_PIN] = { "pinned", "it goes before all other jobs" },
    [OVERRIDE_PAUSE] = { "paused", "all other jobs go before it, and it keeps "
                                   "the min share of its level" },
    [OVERRIDE_EXCLUDE] = { "excluded", "its traffic is treated as that of no "
                                       "job" },
    [OVERRIDE_OBSERVE] = { "not ordered", "the controller only observes the "
                                          "cluster" },
};

/* A job that needs less of its stage's time than this has time to spare. */
#define MAX_IDLE_SHARE 0.95

static void OVS_PRINTF_FORMAT(2, 3)
add_sentence(struct explanation *e, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    json_array_add(e->why, json_string_create_nocopy(xvasprintf(format,
                                                                args)));
    va_end(args);
}

static const char *
port_name(const struct explanation *e, int port)
{
    return port < 0 ? "" : e->rows->ports[port];
}

/* Returns the seconds of 'port' that 'stage' still needs. */
static double
seconds_of(const struct stage_row *stage, int port)
{
    for (size_t i = 0; i < stage->n_demands; i++) {
        if (stage->demands[i].port == port) {
            return stage->demands[i].seconds;
        }
    }
    return 0;
}

/* Adds which stages go before the job's stage on its bottleneck port. */
static void
explain_stages_before(struct explanation *e)
{
    const char *port = port_name(e, e->stage->bottleneck);
    struct ds named = DS_EMPTY_INITIALIZER;
    double seconds = 0;
    size_t n = 0;

    for (size_t k = 0; k < e->row->stage; k++) {
        const struct stage_row *other = &e->rows->stages[k];
        double needs = seconds_of(other, e->stage->bottleneck);

        if (needs > 0) {
            if (n < MAX_NAMED) {
                ds_put_format(&named,
                              "%s" STAGE_NAME_FMT " (%.1f s, weight %.3g)",
                              n ? ", " : "", other->cojob, other->rung,
                              needs, other->urgency);
            }
            seconds += needs;
            n++;
        }
    }
    if (!n) {
        add_sentence(e, "no stage that needs %s goes before it", port);
    } else {
        add_sentence(e, "on %s, stages that go before it need %.1f s in all: "
                     "%s%s", port, seconds, ds_cstr(&named),
                     n > MAX_NAMED ? " and others" : "");
    }
    ds_destroy(&named);
}

static void
explain_stage(struct explanation *e)
{
    const struct stage_row *stage = e->stage;

    add_sentence(e, "its stage " STAGE_NAME_FMT " is number %"PRIuSIZE
                 " of %"PRIuSIZE" by \"%s\": %s", stage->cojob, stage->rung,
                 e->row->stage + 1, e->rows->n_stages,
                 order_names[e->rows->kind],
                 order_classes[e->rows->kind].summary);
    if (stage->idle) {
        add_sentence(
            e, "%s: the stages that show more go before it",
            stage->idle == STAGE_NO_PROCESS
                ? "no process of its jobs has joined the stage"
                : "its jobs have neither sent bytes nor made progress in "
                  "the stage");
    }
    if (stage->bottleneck < 0) {
        add_sentence(e, "its traffic has not been measured yet");
        return;
    }
    add_sentence(e, "the stage still needs %.1f s of %s, its bottleneck port, "
                 "and has weight %.3g", stage->remaining,
                 port_name(e, stage->bottleneck), stage->urgency);
    if (stage->urgency > stage->weight * 1.001) {
        add_sentence(e, "the search has weight %.3g; the policy and the "
                     "stage's age of %.0f s raise it", stage->weight,
                     stage->age);
    }
    explain_stages_before(e);
}

/* Adds how the trials of an asynchronous search go. */
static void
explain_trial(struct explanation *e)
{
    const char *cojob = e->stage->cojob;
    const struct job_row *behind = NULL;

    for (size_t k = 0; e->rows->jobs[k].rank < e->row->rank; k++) {
        const struct job_row *other = &e->rows->jobs[k];

        if (!strcmp(e->rows->stages[other->stage].cojob, cojob)) {
            behind = other;
        }
    }
    if (e->row->equal) {
        add_sentence(e, "its search judges trials one by one, and all that "
                        "run have one rank: the network has no part in which "
                        "is first at a rung");
    } else if (e->row->chance > 0) {
        add_sentence(e,
                     "chance %.0f %% to pass the rung at iteration %" PRId64
                     " by its metric and those of the others, %s%s%s",
                     100 * e->row->chance, e->row->target,
                     behind ? "behind trial " : "first of its search",
                     behind ? strchr(behind->name, '/') + 1 : "",
                     behind ? ", and it keeps the min share of its level"
                            : "");
    }
}

static void
explain_level(struct explanation *e)
{
    int n_better = 0;

    for (size_t k = 0; e->rows->jobs[k].rank < e->row->rank; k++) {
        n_better += e->rows->jobs[k].level < e->row->level;
    }
    if (e->row->override == OVERRIDE_EXCLUDE) {
        return;                 /* An excluded job has no level. */
    }
    add_sentence(e, "its level is %d of 0 to %d; jobs with a better level: "
                 "%d; jobs without a common port may share a level",
                 e->row->level, e->policy->n_levels - 1, n_better);
    if (e->row->slack > 0) {
        add_sentence(e, "it would end %.1f s before its stage does, so urgent "
                     "jobs may go before it", e->row->slack);
    }
    if (e->rows->unit == ORDER_UNIT_ITERATION && e->stage->work > 0) {
        add_sentence(e, "its search still needs %.1f s of all ports until it "
                     "ends; iterations of searches that need less go earlier",
                     e->stage->work);
    }
    if (e->stage->debt > 0) {
        add_sentence(e,
                     "%.1f s of that count for what other searches of its "
                     "owner need or were served lately, beyond the two "
                     "largest (the policy's /owners/memory_s, %.0f s)",
                     e->stage->debt, e->policy->owner_memory_s);
    }
    if (e->row->urgency < MAX_IDLE_SHARE) {
        add_sentence(e, "without competitors it would need %.0f %% of the "
                     "time of its stage's slowest job, so urgent jobs may go "
                     "before it", 100 * e->row->urgency);
    }
    if (e->row->early) {
        add_sentence(e, "it is early in its training: its metric is below the "
                     "policy's share of its final value, or has few samples");
    }
}

static void
explain_override(struct explanation *e, const struct override *ov)
{
    char until[32] = "it is undone";
    time_t seconds = ov->until / 1000;
    struct tm tm;

    if (ov->until && localtime_r(&seconds, &tm)) {
        strftime(until, sizeof until, "%F %T", &tm);
    }
    add_sentence(e, "it is %s by %s until %s%s%s (override %"PRId64"): %s",
                 override_texts[ov->kind].state, ov->actor, until,
                 *ov->reason ? ": " : "", ov->reason, ov->id,
                 override_texts[ov->kind].effect);
}

static void
explain_overrides(struct explanation *e)
{
    const struct override *ov = overrides_observe(e->overrides);

    if (ov) {
        explain_override(e, ov);
    }
    ov = e->row->override_id ? overrides_find(e->overrides,
                                              e->row->override_id) : NULL;
    if (ov && !ov->ended) {
        explain_override(e, ov);
    }
}

/* Names what was refused to the owner of the job, and on its hosts. */
static void
explain_owner(struct explanation *e)
{
    const struct owner *owner = e->job->cojob->account;
    const char *why = owner_refusal(owner);
    const struct shash_node *node;

    if (why) {
        add_sentence(e,
                     "%" PRIu64 " requests of its owner were refused, the "
                     "last one: %s",
                     owner->refused, why);
    }
    SHASH_FOR_EACH (node, &e->job->traffic) {
        const struct host *host = ((struct job_traffic *) node->data)->host;

        for (size_t i = 0; i < host->n_users; i++) {
            const struct telemetry_user *user = &host->users[i];

            if (!*user->pod && user->uid && user->uid == e->job->cojob->uid) {
                add_sentence(
                    e,
                    "on %s its owner has %" PRIu64 " entries of tables, "
                    "more than its share, and %" PRIu64 " were refused: "
                    "shares are of all users alike, and no member of the "
                    "policy changes them",
                    node->name, user->entries, user->refused);
            }
        }
    }
}

/* Names the hosts with processes that claim the job and are not admitted. */
static void
explain_refusals(struct explanation *e)
{
    static const char *const remedies[] = {
        [MEMBERSHIP_UNREGISTERED] = "",
        [MEMBERSHIP_OTHER_USER] = "; no member of the policy changes that: "
                                  "an operator can announce the search for "
                                  "them",
        [MEMBERSHIP_ELSEWHERE] = "; no member of the policy changes that: "
                                 "announce the job's places",
    };
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &e->job->refused) {
        const struct job_refusal *r = node->data;
        char *why = job_refusal_to_string(e->job, r);

        add_sentence(e, "processes on %s claim it, or did, %s: they are %s%s",
                     node->name,
                     r->reason == MEMBERSHIP_ELSEWHERE ? "and do not count"
                                                       : "without priority",
                     why, remedies[r->reason]);
        free(why);
    }
}

/* Names the hosts of the job with refused reports. */
static void
explain_revocations(struct explanation *e)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &e->job->traffic) {
        const struct job_traffic *t = node->data;

        if (t->host->revoked) {
            add_sentence(e,
                         "what %s reports of it does not count: an "
                         "operator has revoked the host, see \"stagecoach "
                         "overrides\"",
                         node->name);
        }
    }
}

/* Adds where the job is by its own reports, if jumps of them do not count. */
static void
explain_jumps(struct explanation *e)
{
    const struct progress_source *most = &e->job->rest;
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &e->job->traffic) {
        const struct job_traffic *t = node->data;

        if (t->progress.skipped > most->skipped) {
            most = &t->progress;
        }
    }
    if (most->skipped) {
        add_sentence(e,
                     "it reports iteration %" PRId64 ": its jumps by %" PRId64
                     " iterations do not count",
                     most->iteration + most->skipped, most->skipped);
    }
}

/* Names the numbers of progress reports that did not count. */
static void
explain_progress_refusals(struct explanation *e)
{
    const struct progress_bound *b = &e->job->bound;

    explain_jumps(e);
    if (e->job->reports_refused) {
        add_sentence(e,
                     "hosts have refused %" PRIu64 " progress reports of "
                     "processes that may not report for it: its owner and "
                     "the policy's /trust decide which may",
                     e->job->reports_refused);
    }
    if (b->n_refused) {
        add_sentence(e,
                     "%" PRIu64 " progress reports did not count, the last "
                     "one of iteration %" PRId64 " from %s: more than the "
                     "traffic of other hosts can have carried, whatever the "
                     "policy",
                     b->n_refused, b->refused,
                     e->job->refused_host ? e->job->refused_host->name
                                          : "a client");
    }
}

/* Returns how many iterations the slowest worker of 'job' is behind the
 * fastest and stores its host in '*hostp', or returns 0 if it is less than
 * LAG_ITERATIONS. */
static int64_t
find_slowest(const struct job *job, const char **hostp)
{
    const struct shash_node *node;
    int64_t least = INT64_MAX, most = -1;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;
        int64_t at = MAX(t->progress.iteration, t->estimated);

        if (at >= 0 && at < least) {
            least = at;
            *hostp = node->name;
        }
        most = MAX(most, at);
    }
    return most >= 0 && most - least >= LAG_ITERATIONS ? most - least : 0;
}

/* Returns true if the port 'name' is of a host that has servers of 'job' and
 * none of its workers. */
static bool
is_server_port(const struct job *job, const char *name)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            char *own = demand_port_name(t->host, dir);
            bool found = !strcmp(own, name);

            free(own);
            if (found) {
                return t->workers[ROLE_SERVER] && !t->workers[ROLE_WORKER];
            }
        }
    }
    return false;
}

/* Returns true if a job with a better rank needs the job's bottleneck port. */
static bool
has_to_wait(const struct explanation *e)
{
    for (size_t k = 0; e->rows->jobs[k].rank < e->row->rank; k++) {
        const struct job_row *other = &e->rows->jobs[k];

        for (size_t i = 0; i < other->n_demands; i++) {
            if (other->demands[i].port == e->row->bottleneck) {
                return true;
            }
        }
    }
    return false;
}

static void
put_waits(struct json *json, const char *what, const char *where, char *words)
{
    struct json *waits = json_object_create();

    json_object_put_string(waits, "what", what);
    json_object_put_string(waits, "where", where);
    json_object_put_nocopy(waits, xstrdup("words"),
                           json_string_create_nocopy(words));
    json_object_put(json, "waits_for", waits);
}

/* Adds "waits_for", by the parts of the job's iterations: a lagging worker,
 * its own transfers, transfers of jobs with a better rank, or computation. */
static void
put_waits_for(const struct explanation *e, struct json *json)
{
    const char *port = port_name(e, e->row->bottleneck);
    double own = e->row->remaining / e->row->iterations;
    double period = e->row->period;
    const char *host = "";
    int64_t lag = find_slowest(e->job, &host);

    if (lag) {
        put_waits(json, "worker", host,
                  xasprintf("its worker on %s, %"PRId64" iterations behind "
                            "the fastest", host, lag));
    } else if (e->row->bottleneck < 0 || !(period > 0)) {
        put_waits(json, "unknown", "",
                  xstrdup("an unknown cause: no iteration has been "
                          "measured yet"));
    } else if (own >= NETWORK_SHARE * period) {
        bool server = is_server_port(e->job, port);

        put_waits(json, server ? "server" : "network", port,
                  xasprintf("%s %s, which the job uses for %.3f s of each "
                            "iteration of %.3f s",
                            server ? "its server's link" : "the network at",
                            port, own, period));
    } else if (has_to_wait(e)) {
        put_waits(json, "network", port,
                  xasprintf("the network at %s, where other jobs go first: "
                            "it needs the port for %.3f s of each iteration "
                            "of %.3f s", port, own, period));
    } else {
        put_waits(json, "worker", "",
                  xasprintf("its workers: they compute, or wait for each "
                            "other, for %.3f s of each iteration of %.3f s",
                            period - own, period));
    }
}

/* Returns the completion time of the stage, in seconds, if all stages that
 * need its ports went first. */
static double
find_latest(const struct explanation *e)
{
    double latest = e->stage->completion;

    for (size_t i = 0; i < e->stage->n_demands; i++) {
        double sum = 0;

        for (size_t k = 0; k < e->rows->n_stages; k++) {
            sum += seconds_of(&e->rows->stages[k], e->stage->demands[i].port);
        }
        latest = MAX(latest, sum);
    }
    return latest;
}

/* Returns the completion time of the stage, in seconds, without any competing
 * stage. */
static double
find_earliest(const struct explanation *e)
{
    double earliest = e->stage->remaining;

    for (size_t k = 0; k < e->rows->n_jobs; k++) {
        if (e->rows->jobs[k].stage == e->row->stage) {
            earliest = MAX(earliest, e->rows->jobs[k].isolated);
        }
    }
    return MIN(earliest, e->stage->completion);
}

void
explain_report_put(struct json *json, const struct decide_rows *rows,
                   const struct policy *policy,
                   const struct overrides *overrides, const struct job *job)
{
    struct explanation e = {
        .rows = rows, .policy = policy, .overrides = overrides, .job = job,
    };
    struct json *ends;

    for (size_t k = 0; !e.row && k < rows->n_jobs; k++) {
        if (!strcmp(rows->jobs[k].name, job->full_name)) {
            e.row = &rows->jobs[k];
        }
    }
    if (!e.row) {
        return;
    }
    e.stage = &rows->stages[e.row->stage];
    e.why = json_array_create_empty();
    ends = json_object_create();
    explain_overrides(&e);
    explain_owner(&e);
    explain_refusals(&e);
    explain_revocations(&e);
    explain_progress_refusals(&e);
    explain_stage(&e);
    explain_level(&e);
    explain_trial(&e);
    json_object_put(json, "why", e.why);
    put_waits_for(&e, json);
    if (e.stage->counted) {
        json_put_real(ends, "earliest_s", find_earliest(&e));
        json_put_real(ends, "estimate_s", e.stage->completion);
        json_put_real(ends, "latest_s", find_latest(&e));
    }
    json_object_put(json, "ends", ends);
}
