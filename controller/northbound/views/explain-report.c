/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/explain-report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "controller/model/cluster.h"
#include "controller/decide/decide-rows.h"
#include "controller/model/overrides.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "policies/policy.h"
#include "util.h"

/* Stages that go first and are named. */
#define MAX_NAMED 3

/* A worker that is so many iterations behind is what its job waits for. */
#define LAG_ITERATIONS 2

/* A job whose transfers alone take so much of its iterations waits for
 * them. */
#define NETWORK_SHARE 0.7

/* A job of the last order and what explains it. */
struct explanation {
    const struct decide_rows *rows;
    const struct policy *policy;
    const struct overrides *overrides;
    const struct job *job;
    const struct job_row *row;
    const struct stage_row *stage;
    size_t rank;                /* Of the job. */
    struct json *why;           /* Array of sentences. */
};

static void OVS_PRINTF_FORMAT(2, 3)
say(struct explanation *e, const char *format, ...)
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

/* Seconds that 'stage' needs of 'port'. */
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

/* Whom the job's stage meets on the port that it needs most, and who goes
 * first there. */
static void
say_who_is_before(struct explanation *e)
{
    struct ds named = DS_EMPTY_INITIALIZER;
    double seconds = 0;
    size_t n = 0;

    for (size_t k = 0; k < e->row->stage; k++) {
        const struct stage_row *other = &e->rows->stages[k];
        double needs = seconds_of(other, e->stage->bottleneck);

        if (needs > 0) {
            if (n < MAX_NAMED) {
                ds_put_format(&named, "%s%s/%d (%.1f s, weight %.3g)",
                              n ? ", " : "", other->cojob, other->rung,
                              needs, other->urgency);
            }
            seconds += needs;
            n++;
        }
    }
    if (!n) {
        say(e, "no stage that needs %s goes before it",
            port_name(e, e->stage->bottleneck));
    } else {
        say(e, "on %s go before it, for %.1f s in all: %s%s",
            port_name(e, e->stage->bottleneck), seconds, ds_cstr(&named),
            n > MAX_NAMED ? " and others" : "");
    }
    ds_destroy(&named);
}

static void
say_stage(struct explanation *e)
{
    const struct stage_row *stage = e->stage;

    say(e, "its stage %s/%d is number %"PRIuSIZE" of %"PRIuSIZE
        " by \"%s\": %s", stage->cojob, stage->rung, e->row->stage + 1,
        e->rows->n_stages, order_names[e->rows->kind],
        order_classes[e->rows->kind].summary);
    if (stage->bottleneck < 0) {
        say(e, "its traffic has not been measured yet");
        return;
    }
    say(e, "the stage still needs %.1f s of %s, the port that it needs most, "
        "and has weight %.3g", stage->remaining,
        port_name(e, stage->bottleneck), stage->urgency);
    if (stage->urgency > stage->weight * 1.001) {
        say(e, "the search's weight is %.3g; the rest is the policy's, and "
            "for the %.0f s that the stage has lasted", stage->weight,
            stage->age);
    }
    say_who_is_before(e);
}

static void
say_level(struct explanation *e)
{
    int before = 0;

    for (size_t k = 0; k < e->rank; k++) {
        before += e->rows->jobs[k].level < e->row->level;
    }
    if (e->row->override == OVERRIDE_EXCLUDE) {
        return;                 /* It has none. */
    }
    say(e, "its level is %d of 0 to %d; jobs with a better one: %d, and who "
        "shares no port shares levels", e->row->level,
        e->policy->n_levels - 1, before);
    if (e->row->slack > 0) {
        say(e, "it would be done %.1f s before its stage, so jobs that are "
            "urgent may go before it", e->row->slack);
    }
    if (e->row->early) {
        say(e, "it is early: what it learns now decides whether it lives");
    }
}

/* "pinned", ... */
static const char *
participle(enum override_kind kind)
{
    return (kind == OVERRIDE_PIN ? "pinned: it goes before everything else"
            : kind == OVERRIDE_PAUSE
            ? "paused: everything else goes first, and it keeps its floor"
            : kind == OVERRIDE_EXCLUDE
            ? "excluded: its traffic is as that of no job"
            : "not ordered: the cluster is only observed");
}

static void
say_override(struct explanation *e, const struct override *ov)
{
    char until[32] = "somebody undoes it";
    time_t seconds = ov->until / 1000;
    struct tm tm;
    const char *colon = strchr(participle(ov->kind), ':');

    if (ov->until && localtime_r(&seconds, &tm)) {
        strftime(until, sizeof until, "%F %T", &tm);
    }
    say(e, "it is %.*s by %s until %s%s%s (override %"PRId64")%s",
        (int) (colon - participle(ov->kind)), participle(ov->kind), ov->who,
        until, *ov->reason ? ": " : "", ov->reason, ov->id, colon);
}

static void
say_overrides(struct explanation *e)
{
    const struct override *ov = overrides_observe(e->overrides);

    if (ov) {
        say_override(e, ov);
    }
    ov = e->row->override_id ? overrides_find(e->overrides,
                                              e->row->override_id) : NULL;
    if (ov && !ov->ended) {
        say_override(e, ov);
    }
}

/* Finds the worker that is behind the others and by how much, 0 if nobody
 * is. */
static int64_t
find_slowest(const struct job *job, const char **hostp)
{
    const struct shash_node *node;
    int64_t least = INT64_MAX, most = -1;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;
        int64_t at = MAX(t->progress.iteration, t->counted);

        if (at >= 0 && at < least) {
            least = at;
            *hostp = node->name;
        }
        most = MAX(most, at);
    }
    return most >= 0 && most - least >= LAG_ITERATIONS ? most - least : 0;
}

/* True if the host of 'port' has servers of the job and none of its
 * workers. */
static bool
is_server_port(const struct explanation *e, int port)
{
    const char *name = port_name(e, port);
    const char *colon = strchr(name, ':');
    char *host = xmemdup0(name, colon ? colon - name : 0);
    const struct job_traffic *t = shash_find_data(&e->job->traffic, host);

    free(host);
    return t && t->workers[ROLE_SERVER] && !t->workers[ROLE_WORKER];
}

static bool
has_to_wait(const struct explanation *e)
{
    for (size_t k = 0; k < e->rank; k++) {
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
put_waits(struct json *json, const char *what, const char *where,
          char *words)
{
    struct json *waits = json_object_create();

    json_object_put_string(waits, "what", what);
    json_object_put_string(waits, "where", where);
    json_object_put_nocopy(waits, xstrdup("words"),
                           json_string_create_nocopy(words));
    json_object_put(json, "waits_for", waits);
}

/* What a job waits for shows in how its iterations divide. */
static void
put_waits_for(const struct explanation *e, struct json *json)
{
    const char *port = port_name(e, e->row->bottleneck);
    double own = e->row->remaining / e->row->left;
    double period = e->row->period;
    const char *host = "";
    int64_t lag = find_slowest(e->job, &host);

    if (lag) {
        put_waits(json, "worker", host,
                  xasprintf("its worker on %s, %"PRId64" iterations behind "
                            "the first", host, lag));
    } else if (e->row->bottleneck < 0 || !(period > 0)) {
        put_waits(json, "unknown", "",
                  xstrdup("nobody knows yet: no iteration is measured"));
    } else if (own >= NETWORK_SHARE * period) {
        put_waits(json, is_server_port(e, e->row->bottleneck)
                  ? "server" : "network", port,
                  xasprintf("%s %s, which is busy with it for %.3f s of each "
                            "iteration's %.3f s",
                            is_server_port(e, e->row->bottleneck)
                            ? "its server's link" : "the network at", port,
                            own, period));
    } else if (has_to_wait(e)) {
        put_waits(json, "network", port,
                  xasprintf("the network at %s, where others go first: it "
                            "needs %.3f s of it for each iteration's %.3f s",
                            port, own, period));
    } else {
        put_waits(json, "worker", "",
                  xasprintf("its workers: of each iteration's %.3f s they "
                            "compute, or wait for each other, %.3f s",
                            period, period - own));
    }
}

/* When the stage would end if all that needs its ports went first. */
static double
find_latest(const struct explanation *e)
{
    double latest = e->stage->completion;

    for (size_t i = 0; i < e->stage->n_demands; i++) {
        double sum = 0;

        for (size_t k = 0; k < e->rows->n_stages; k++) {
            sum += seconds_of(&e->rows->stages[k],
                              e->stage->demands[i].port);
        }
        latest = MAX(latest, sum);
    }
    return latest;
}

/* When it would end if nothing were in its way. */
static double
find_earliest(const struct explanation *e)
{
    double earliest = e->stage->remaining;

    for (size_t k = 0; k < e->rows->n_jobs; k++) {
        if (e->rows->jobs[k].stage == e->row->stage) {
            earliest = MAX(earliest, e->rows->jobs[k].alone);
        }
    }
    return MIN(earliest, e->stage->completion);
}

static void
put_ends(const struct explanation *e, struct json *json)
{
    struct json *ends = json_object_create();

    json_object_put(ends, "earliest_s", json_real_create(find_earliest(e)));
    json_object_put(ends, "estimate_s",
                    json_real_create(e->stage->completion));
    json_object_put(ends, "latest_s", json_real_create(find_latest(e)));
    json_object_put(json, "ends", ends);
}

void
explain_report_put(struct json *json, const struct decide_rows *rows,
                   const struct policy *policy,
                   const struct overrides *overrides, const struct job *job)
{
    struct explanation e = {
        .rows = rows, .policy = policy, .overrides = overrides, .job = job,
    };

    while (e.rank < rows->n_jobs
           && strcmp(rows->jobs[e.rank].name, job->full_name)) {
        e.rank++;
    }
    if (e.rank >= rows->n_jobs) {
        return;
    }
    e.row = &rows->jobs[e.rank];
    e.stage = &rows->stages[e.row->stage];
    e.why = json_array_create_empty();
    say_overrides(&e);
    say_stage(&e);
    say_level(&e);
    json_object_put(json, "why", e.why);
    put_waits_for(&e, json);
    put_ends(&e, json);
}
