/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/demand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/host-names.h"
#include "controller/model/host-word.h"
#include "controller/model/telemetry-report.h"
#include "controller/model/unannounced.h"
#include "openvswitch/vlog.h"
#include "order/order.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(demand);

/* Fewest iterations of a first measurement.  It begins and ends in the middle
 * of an iteration.  With fewer than DEMAND_AVERAGE_ITERATIONS, it only limits
 * the range of the formula. */
#define FIRST_ITERATIONS 2

/* A job that has moved the bytes of this many iterations before one was
 * counted has an unknown number.  First parameters are one or two. */
#define UNCOUNTED 4

/* A job starts until it has moved this share of the bytes of an iteration.
 * First parameters are half of them; the rest is for headers. */
#define START_SHARE 0.6

/* Time for which agents report where jobs send to, when that may show that a
 * host is one of a job's. */
#define PAIRS_MS 10000

/* Bytes that are reported within this time after the end of a stage belong to
 * the stage. */
#define LATE_MS 400

/* An agent reports the first bytes after a pause within this time. */
#define FRESH_MS 200

/* Returns "HOST:tx" or "HOST:rx"; the caller frees. */
char *
demand_port_name(const struct host *host, enum direction dir)
{
    return xasprintf("%s:%s", host->name, dir == DIR_TX ? "tx" : "rx");
}

/* Returns the names of all demand_n_ports() ports; the caller frees each, and
 * the array. */
char **
demand_port_names(const struct cluster *c)
{
    char **names = xcalloc(demand_n_ports(c) + 1, sizeof *names);
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            names[demand_port(host, dir)] = demand_port_name(host, dir);
        }
    }
    for (int i = 0; c->fabric && i < c->fabric->n_ports; i++) {
        names[demand_link_port(c, i)] = xstrdup(c->fabric->ports[i]);
    }
    return names;
}

/* Returns the bytes per iteration and direction by formula: workers push the
 * model to, and pull it from, all parameter servers; peers pass it around a
 * ring.  Traffic inside the host does not count. */
static double
formula_bytes(const struct job *job, const struct job_traffic *t)
{
    int n_servers = job->workers[ROLE_SERVER];
    int n_workers = job->workers[ROLE_WORKER];
    int n_peers = job->workers[ROLE_PEER];
    double model = job->model_bytes, bytes = 0;

    if (n_servers) {
        int local_servers = t->workers[ROLE_SERVER];
        int local_workers = t->workers[ROLE_WORKER];

        bytes += local_workers * model
                 * (n_servers - local_servers) / n_servers;
        bytes += local_servers * model
                 * (n_workers - local_workers) / n_servers;
    } else {
        bytes += t->workers[ROLE_WORKER] * model;
    }
    if (t->workers[ROLE_PEER] && t->workers[ROLE_PEER] < n_peers) {
        bytes += 2 * model * (n_peers - 1) / n_peers;
    }
    return bytes;
}

/* Returns the bytes that the stage of 'job' announced, 0 if it did not. */
static double
announced_bytes(const struct job *job)
{
    double ratio = job->cojob->bytes_ratio;

    return job->stage ? job->stage->claim.bytes * (ratio > 0 ? ratio : 1) : 0;
}

/* Returns the bytes per iteration and direction that are expected before they
 * are measured, 0 if unknown.  Which host moves how much of what a stage
 * announced is not known. */
static double
expected_bytes(const struct job *job, const struct job_traffic *t)
{
    double announced = announced_bytes(job);

    return announced > 0 ? announced / shash_count(&job->traffic)
                         : formula_bytes(job, t);
}

/* Returns true if the bytes of an iteration were announced. */
static bool
is_announced(const struct job *job)
{
    return job->model_bytes > 0 || announced_bytes(job) > 0;
}

/* Restarts the measurement of 't'. */
static void
restart_measurement(struct job_traffic *t, int64_t iteration)
{
    t->mark_iteration = iteration;
    t->mark_bytes[DIR_TX] = t->bytes[DIR_TX];
    t->mark_bytes[DIR_RX] = t->bytes[DIR_RX];
}

/* Returns 'expected', limited to what a measurement of 'moved' bytes in 'n'
 * iterations allows; 'n' may be off by one, since the measurement begins and
 * ends in the middle of an iteration.  0 for 'expected' means unknown. */
static double
limit_expected(double expected, double moved, int64_t n)
{
    return expected > 0 ? MIN(MAX(expected, moved / (n + 1)), moved / (n - 1))
                        : moved / n;
}

/* Adds the bytes since the start of the measurement to the moving average, if
 * the job has done enough iterations.  A few estimated ones are less accurate
 * than the formula.  Bytes before the end of the first iteration include the
 * initial parameters. */
static void
update_average(const struct job *job, struct job_traffic *t)
{
    bool averaged = t->measured >= DEMAND_AVERAGE_ITERATIONS;
    int64_t n = job->iteration - t->mark_iteration;
    bool enough = averaged || n >= DEMAND_AVERAGE_ITERATIONS;
    double share = enough ? n / (n + DEMAND_AVERAGE_ITERATIONS) : 0;

    if (job->iteration < 1) {
        return;
    } else if (t->mark_iteration < 0 || n < 0) {
        restart_measurement(t, job->iteration);
        return;
    } else if (n < (averaged ? 1 : FIRST_ITERATIONS)
               || (!enough && job->estimated && is_announced(job))) {
        return;
    }

    for (int dir = 0; dir < N_DIRS; dir++) {
        double moved = t->bytes[dir] - t->mark_bytes[dir];
        double expected =
            (t->measured ? t->per_iteration[dir] : expected_bytes(job, t));

        if (!averaged) {
            expected = limit_expected(expected, moved, n);
        }
        t->per_iteration[dir] = expected + share * (moved / n - expected);
    }
    if (enough) {
        t->measured += n;
        restart_measurement(t, job->iteration);
    } else {
        t->measured = n;
    }
}

static void
add_share(struct shash *moved, const struct stage_bytes *delta, double share)
{
    struct stage_bytes *b = stage_get_bytes(moved, delta->host);

    for (int dir = 0; dir < N_DIRS; dir++) {
        b->bytes[dir] += delta->bytes[dir] * share;
    }
    b->busy += delta->busy * share;
    b->waited += delta->waited * share;
    b->gpus = MAX(b->gpus, delta->gpus);
    b->serves |= delta->serves;
}

static void
add_bytes(struct stage *stage, const struct job *job,
          const struct stage_bytes *delta, double share)
{
    struct stage_part *part = stage_get_part(stage, job->name);

    part->devices = MAX(part->devices, demand_devices(job));
    add_share(&part->moved, delta, share);
    add_share(&stage->moved, delta, share);
}

/* Adds what was counted since the last telemetry to the job's stage.  If the
 * stage began meanwhile, the previous stage gets its part, by time; if it
 * ended, none gets the rest. */
static void
add_to_stage(struct job *job, struct job_traffic *t,
             const struct stage_bytes *delta, long long now)
{
    struct stage *stage = job->stage;
    double share = 1;

    if (!stage) {
        return;
    }
    if (stage->ended && now > stage->end_ms + LATE_MS) {
        if (!t->known || t->at >= stage->end_ms) {
            return;
        }
        share = (double) (stage->end_ms - t->at) / (now - t->at);
    }
    if (t->known && t->at < stage->begin_ms && stage->begin_ms < now) {
        double before = (double) (stage->begin_ms - t->at) / (now - t->at);

        share -= before;
        if (job->previous) {
            add_bytes(job->previous, job, delta, before);
        }
    }
    add_bytes(stage, job, delta, share);
    job->sent += delta->bytes[DIR_TX] * share;
}

int
demand_gpus(const struct job *job)
{
    const struct shash_node *node;
    int gpus = 0;

    SHASH_FOR_EACH (node, &job->traffic) {
        gpus += ((const struct job_traffic *) node->data)->gpus;
    }
    return (gpus                  ? gpus
            : demand_devices(job) ? demand_devices(job)
                                  : shash_count(&job->traffic));
}

/* Counts the time since the last telemetry from host 't', of which 'job' has
 * waited 'waited' seconds, unless another host moves more. */
static void
count_gpus(struct cluster *c, struct job *job, const struct job_traffic *t,
           double waited)
{
    double held = (time_msec() - t->at) / 1000.0;
    const struct shash_node *node;
    int gpus = demand_gpus(job);

    SHASH_FOR_EACH (node, &job->traffic) {
        if (((const struct job_traffic *) node->data)->moved > t->moved) {
            return;
        }
    }
    job->gpu_held += gpus * held;
    job->gpu_waited += gpus * waited;
    c->gpu_held += gpus * held;
    c->gpu_waited += gpus * waited;
}

static void
count_bytes(struct cluster *c, struct job *job, struct job_traffic *t,
            const struct telemetry_job *now, bool base_is_zero)
{
    bool fell =
        now->tx_bytes < t->bytes[DIR_TX] || now->rx_bytes < t->bytes[DIR_RX];
    const struct stage_bytes delta = {
        .host = t->host,
        .bytes = { now->tx_bytes - t->bytes[DIR_TX],
                   now->rx_bytes - t->bytes[DIR_RX] },
        .busy = MAX(0, now->busy - t->busy),
        .waited = MAX(0, now->waited - t->waited),
        .gpus = now->gpus,
        .serves = t->workers[ROLE_SERVER] && !t->workers[ROLE_WORKER]
    };

    t->gpus = MAX(t->gpus, now->gpus);
    if (t->known && !fell && job->live) {
        count_gpus(c, job, t, delta.waited);
    }
    t->at = t->paused ? MAX(t->at, time_msec() - FRESH_MS) : t->at;
    t->paused = t->known && !delta.bytes[DIR_TX] && !delta.bytes[DIR_RX];
    if ((t->known && !fell) || (!t->known && base_is_zero)) {
        add_to_stage(job, t, &delta, time_msec());
        job->moved += delta.bytes[DIR_TX] + delta.bytes[DIR_RX];
        t->moved += delta.bytes[DIR_TX] + delta.bytes[DIR_RX];
        t->host->moved[DIR_TX] += delta.bytes[DIR_TX];
        t->host->moved[DIR_RX] += delta.bytes[DIR_RX];
    } else {
        t->mark_iteration = -1;
    }
    t->known = true;
    t->at = time_msec();
    t->bytes[DIR_TX] = now->tx_bytes;
    t->bytes[DIR_RX] = now->rx_bytes;
    t->busy = now->busy;
    t->waited = now->waited;
}

/* Discards the measurements that were based on estimated iterations, when
 * 'job' begins to report them. */
static void
forget_measurements(struct job *job)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &job->traffic) {
        struct job_traffic *t = node->data;

        t->measured = 0;
        t->mark_iteration = -1;
    }
}

/* Sets the job's iteration to the largest one that was reported.  Without a
 * report, uses the smallest of the hosts' estimates: a host that has mistaken
 * parts of iterations for iterations has counted too many.  A job that was
 * requeued begins again elsewhere, so hosts that have it no more count only if
 * no other one knows. */
static void
find_iteration(struct job *job)
{
    const struct shash_node *node;
    int64_t reported = job->rest.iteration, estimated = -1;
    long long now = time_msec();

    for (int all = 0; !all || (all < 2 && reported < 0 && estimated < 0);
         all++) {
        SHASH_FOR_EACH (node, &job->traffic) {
            const struct job_traffic *t = node->data;
            int64_t n = t->estimated_before + MAX(0, t->estimated);

            if (!all && now > t->at + HOST_WORD_STALE_MS) {
                continue;
            }
            reported = MAX(reported, t->progress.iteration);
            if ((t->estimated >= 0 || n > 0)
                && (estimated < 0 || n < estimated)) {
                estimated = n;
            }
        }
    }
    if (job->estimated && reported >= 0) {
        forget_measurements(job);
    }
    job->estimated = reported < 0 && estimated >= 0;
    job->iteration = job->estimated ? estimated : reported;
}

/* Stores the number of iterations that the host's agent has counted in the
 * traffic.  Returns true if it has changed.
 *
 * An agent counts bytes and iterations from when it first saw the job.  If a
 * connection begins with fewer bytes than the previous one ended with, the
 * agent has restarted, and the count of its predecessor is kept. */
static bool
update_estimated(struct job_traffic *t, const struct telemetry_job *tj,
                 bool first)
{
    bool changed = t->estimated != tj->estimated;

    if (first && t->estimated > 0 && (tj->tx_bytes < t->bytes[DIR_TX]
                                    || tj->rx_bytes < t->bytes[DIR_RX])) {
        t->estimated_before = MIN(t->estimated_before + t->estimated,
                                  TELEMETRY_MAX_ITERATION);
        changed = true;
    }
    t->estimated = tj->estimated;
    return changed;
}

/* Returns the bytes that the host of 't' sends and receives in one iteration
 * of 'job', by measurement or formula, 0 if both are unknown. */
static double
known_of_host(const struct job *job, const struct job_traffic *t)
{
    return (t->measured ? t->per_iteration[DIR_TX] + t->per_iteration[DIR_RX]
                        : N_DIRS * expected_bytes(job, t));
}

/* The same of all hosts. */
static double
known_per_iteration(const struct job *job)
{
    const struct shash_node *node;
    double bytes = 0;

    SHASH_FOR_EACH (node, &job->traffic) {
        bytes += known_of_host(job, node->data);
    }
    return bytes;
}

/* Returns what is known of the hosts of 'job' other than the host of 'source',
 * which is stored in '*hostp', NULL for a REST client.  A host without an
 * agent now has moved bytes, but they do not count any more. */
static struct progress_bound_facts
know_others(const struct job *job, struct progress_source *source,
            const struct host **hostp)
{
    struct progress_bound_facts facts = {
        .target = job->stage ? job->stage->iterations : -1
    };
    const struct shash_node *node;
    double others = 0;

    *hostp = NULL;
    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        if (&t->progress == source) {
            *hostp = t->host;
            continue;
        }
        others += t->moved;
        if (t->host->connected) {
            facts.seen = facts.seen || t->moved > 0;
            facts.per_iteration += known_of_host(job, t);
        }
    }
    if (source->base_iteration != job->bound.iteration) {
        source->base_iteration = job->bound.iteration;
        source->base = source->others > 0 ? source->others : others;
    }
    source->others = others;
    facts.bytes = facts.seen ? others - source->base : 0;
    return facts;
}

static bool
may_have_done(struct job *job, struct progress_source *source,
              int64_t iteration, int64_t now)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);
    const struct host *host;
    const struct progress_bound_facts facts = know_others(job, source, &host);

    if (progress_bound_admits(&job->bound, iteration, &facts, now)) {
        return true;
    }
    job->refused_host = host;
    VLOG_WARN_RL(&rl,
                 "%s: progress of %s refused: iteration %" PRId64 " after "
                 "%" PRId64
                 " is more than the traffic of other hosts can have "
                 "carried",
                 job->full_name, host ? host->name : "a client", iteration,
                 job->iteration);
    return false;
}

/* Returns the iteration of 'source' that counts if it reports 'iteration', or
 * -1 if it has jumped further than the job can have come.  Then what it
 * skipped counts neither now nor later. */
static int64_t
without_jumps(struct job *job, struct progress_source *source,
              int64_t iteration, int64_t now)
{
    int64_t n = iteration - source->skipped;

    if (n < 0) { /* It began again. */
        source->skipped = 0;
        n = iteration;
    }
    if (may_have_done(job, source, n, now)) {
        return n;
    }
    if (source->iteration >= 0) {
        source->skipped += n - source->iteration;
    }
    return -1;
}

/* Handles a progress report of 'job' from 'source': the job has done
 * 'iteration' iterations (-1 if the report contains none), and 'metric' had
 * 'value' then, unless 'metric' is NULL.  'now' is time_msec().  Returns false
 * if the job cannot have done that (progress-bound.h): the report does not
 * count. */
bool
demand_progress(struct cluster *c, struct job *job,
                struct progress_source *source, int64_t iteration,
                const char *metric, double value, int64_t now)
{
    if (iteration >= 0) {
        iteration = without_jumps(job, source, iteration, now);
        if (iteration < 0) {
            return false;
        }
    }
    if (iteration >= 0 && iteration != source->iteration) {
        source->iteration = iteration;
        find_iteration(job);
    }
    job_progress_pace(&job->progress, job->iteration, now);
    if (metric && job_progress_sample(&job->progress, &source->sampled, metric,
                                      iteration, value, now)) {
        c->samples++;
    }
    if (metric && !strcmp(metric, job->progress.metric)) {
        stage_trials_note(job, iteration);
    }
    return true;
}

/* Counts the progress reports that the agent of a host has refused. */
static void
count_refused(struct job *job, struct job_traffic *t, uint64_t n, bool first)
{
    if (!first && n > t->reports_refused) {
        job->reports_refused += n - t->reports_refused;
        job->reports_refused_at = time_msec();
    }
    t->reports_refused = n;
}

/* Decides whether the processes of 'host' that claim 'job' are its members.
 * Sets '*first' if they become it: counters may include traffic of others. */
static bool
admit(struct cluster *c, struct host *host, struct job *job,
      const struct membership_claim *claim, bool *first)
{
    const struct membership_owner owner = {
        .trusts_environment = c->trusts_environment,
        .has_uid = job->cojob->uid != 0, .uid = job->cojob->uid,
    };
    enum membership reason = membership_check(&owner, claim);
    bool was_refused = shash_find(&job->refused, host->name) != NULL;

    if (reason == MEMBERSHIP_ADMITTED
        && !host_word_counts(job, host, time_msec())) {
        reason = MEMBERSHIP_ELSEWHERE;
        c->pairs_until = time_msec() + PAIRS_MS;
    }
    if (reason != MEMBERSHIP_ADMITTED) {
        job_refuse(job, host, reason, claim);
        c->changes += !was_refused;
        return false;
    }
    if (was_refused) {
        job_admit(job, host);
        c->changes++;
        *first = true;
    }
    return true;
}

/* Stores the bytes that the host has sent to others.  Unknown addresses are
 * left out. */
static void
learn_remotes(const struct cluster *c, const struct telemetry_job *tj,
              struct job_traffic *t)
{
    if (tj->n_remotes) {
        shash_clear_free_data(&t->sent_to);
        t->sent = 0;
    }
    for (size_t i = 0; i < tj->n_remotes; i++) {
        const char *name = cluster_find_address(c, tj->remotes[i].ip);

        t->sent += tj->remotes[i].bytes;
        if (name && !shash_find(&t->sent_to, name)) {
            shash_add(&t->sent_to, name,
                      xmemdup(&tj->remotes[i].bytes,
                              sizeof tj->remotes[i].bytes));
        }
    }
}

static void
learn_job(struct cluster *c, struct host *host,
          const struct telemetry_job *tj, bool first)
{
    struct job *job = shash_find_data(&c->jobs, tj->name);
    struct job_traffic *t;
    bool recounted;

    if (!job) {
        unannounced_learn(c->unannounced, host, tj, first, time_msec());
        return;
    } else if (job->cojob->uid && !tj->claim.has_uid && !tj->tx_bytes
               && !tj->rx_bytes) {
        return; /* A cgroup before its first process. */
    } else if (!admit(c, host, job, &tj->claim, &first)) {
        return;
    }
    t = job_get_traffic(job, host);
    if (!t->at
        || (job->stage && job->stage->idle
            && (tj->tx_bytes > t->bytes[DIR_TX]
                || tj->rx_bytes > t->bytes[DIR_RX]))) {
        c->changes++; /* The stage is no longer idle. */
    }
    recounted = update_estimated(t, tj, first);
    count_refused(job, t, tj->reports_refused, first);
    if (first) {
        progress_bound_gap(&job->bound, job->progress.period, time_msec());
        t->known = false;
        t->mark_iteration = -1;
    }
    if (!t->known) {
        t->bytes[DIR_TX] = t->bytes[DIR_RX] = 0;
        t->busy = t->waited = 0;
    }
    count_bytes(c, job, t, tj, !first);
    learn_remotes(c, tj, t);
    t->burst_period = tj->period;
    t->burst_bytes = tj->burst_bytes;
    t->burst_duty = tj->duty;
    if (recounted && tj->iteration < 0) {
        find_iteration(job);    /* Visits all hosts of the job. */
    }
    demand_progress(c, job, &t->progress, tj->iteration, tj->metric,
                    tj->value, time_msec());
    update_average(job, t);
}

/* Counts what the host's cards have carried since its last message. */
static void
count_ports(struct host *host, const uint64_t now[N_DIRS], bool first)
{
    for (int dir = 0; dir < N_DIRS; dir++) {
        if (!first && now[dir] > host->counted[dir]) {
            host->carried[dir] += now[dir] - host->counted[dir];
        }
        host->counted[dir] = now[dir];
    }
}

/* Handles the counters of a host, which not every message has. */
static void
learn_counters(struct cluster *c, struct host *host,
               const struct telemetry_report *r, bool first)
{
    host_set_ports(c, host, &r->ports);
    count_ports(host, r->port_bytes, first);
    host->ip_bytes = r->ip_bytes;
    host->default_bytes = r->default_bytes;
    host->queued_bytes = r->queued_bytes;
    host->shim = r->shim;
}

/* Handles a telemetry message of an agent.  'first' is true for the first
 * message of a connection.  Its counters are only a base for differences: they
 * include traffic before the running stages, or start from 0 if the agent has
 * restarted.  The counters of a job that first appears in a later message
 * started from 0. */
void
demand_learn(struct cluster *c, const struct telemetry_report *r, bool first)
{
    struct host *host = cluster_get_host(c, r->host);

    if (r->has_counters) {
        learn_counters(c, host, r, first);
    }
    host->applied_generation = r->applied_generation;
    host_set_applied(host, r->applied);
    host->generation = r->generation;
    host->silent_at = first ? host->silent_at : 0;
    if (!first && r->jobs_refused > host->jobs_refused) {
        host->refused_at = time_msec();
    }
    host->jobs_refused = r->jobs_refused;
    memcpy(host->users, r->users, sizeof host->users);
    host->n_users = r->n_users;
    host->bypass = r->bypass;
    host->reported_at = time_msec();
    host->clock_ms = r->time < 0 ? 0 : r->time - time_wall_msec();
    if (!host->connected) {
        host->connected = true;
        host->synced_at = time_msec();
        c->changes++;
    }
    free(host->state);
    host->state = xstrdup(r->state);
    for (size_t i = 0; i < r->n_jobs; i++) {
        learn_job(c, host, &r->jobs[i], first);
    }
}

/* Returns the bytes that 't' has moved beyond 'bytes' for each iteration that
 * 'job' has done since the last measurement, and for one more: before the
 * first iteration the initial parameters, later the running iteration. */
static double
unexpected_bytes(const struct job *job, const struct job_traffic *t,
                 enum direction dir, double bytes)
{
    bool marked = t->mark_iteration >= 0;
    int64_t done = MAX(0, job->iteration - MAX(0, t->mark_iteration));

    return (t->bytes[dir] - (marked ? t->mark_bytes[dir] : 0.0)
            - (done + 1) * bytes);
}

/* Returns the bytes per iteration of 'job' through the uplink of 't''s host.
 * Without a measurement or a formula, returns the bytes moved so far divided
 * by the iterations (at least 1).  A job with zero demand would delay no other
 * job and would be ranked first.
 *
 * A job that moves more than expected without reporting iterations, such as
 * one that stays before its first one, still needs as much in total as it has
 * moved too much: it gains nothing by a small model or silence. */
double
demand_per_iteration(const struct job *job, const struct job_traffic *t,
                     enum direction dir)
{
    double bytes =
        t->measured ? t->per_iteration[dir] : expected_bytes(job, t);
    int64_t target = job->stage ? stage_target(job->stage, job) : 0;

    if (bytes <= 0 && !t->measured) {
        return (double) t->bytes[dir] / MAX(1, job->iteration);
    }
    return MAX(bytes, unexpected_bytes(job, t, dir, bytes)
                          / MAX(1, target - MAX(0, job->iteration)));
}

/* Returns the iterations that 'job' has to do until the end of 'stage': 0 if
 * it has done them or has ended.
 *
 * A job of unknown size has one, of as many bytes as it has moved.  So it has
 * a good rank when it begins, and its iterations can soon be estimated; if
 * they cannot, its rank falls.  A job with estimated iterations has at least 1
 * until the stage ends, because the estimate may be off by one. */
int64_t
demand_remaining_iterations(const struct stage *stage, const struct job *job)
{
    int64_t remaining = stage_target(stage, job) - MAX(0, job->iteration);

    if (!job->live) {
        return 0;
    } else if (job->iteration < 0 && !is_announced(job)) {
        return MIN(remaining, 1);
    }
    return MAX(remaining, job->estimated ? 1 : 0);
}

/* Returns false if 'job' does iterations that are not counted: it has moved
 * the bytes of several, or bytes of an unknown number, without a report or an
 * estimate. */
bool
demand_counts_iterations(const struct job *job)
{
    return (job->iteration >= 0 || !(job->moved > 0)
            || (is_announced(job)
                && job->moved <= UNCOUNTED * known_per_iteration(job)));
}

/* Returns true if 'job' still moves its first parameters: it has done no
 * iteration, and has moved no more than they have by the announced model. */
bool
demand_is_starting(const struct job *job)
{
    return (job->iteration < 1 && is_announced(job)
            && job->moved <= START_SHARE * known_per_iteration(job));
}

/* Returns the bytes that all hosts send in one iteration of 'job'. */
double
demand_bytes_of_iteration(const struct job *job)
{
    const struct shash_node *node;
    double bytes = 0;

    SHASH_FOR_EACH (node, &job->traffic) {
        bytes += demand_per_iteration(job, node->data, DIR_TX);
    }
    return bytes;
}

/* Returns the bytes that all hosts were counted to send in one iteration of
 * 'job', 0 until that is known as well as it can be. */
double
demand_counted_bytes(const struct job *job)
{
    const struct shash_node *node;
    double bytes = 0;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        if (t->measured < DEMAND_AVERAGE_ITERATIONS) {
            return 0;
        }
        bytes += t->per_iteration[DIR_TX];
    }
    return bytes;
}

/* Returns the number of processes of 'job' that compute: all but servers. */
int
demand_devices(const struct job *job)
{
    return job->workers[ROLE_WORKER] + job->workers[ROLE_PEER];
}
