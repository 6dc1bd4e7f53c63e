/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/demand.h"

#include <stdlib.h>

#include "order/order.h"
#include "controller/model/telemetry-report.h"
#include "timeval.h"
#include "util.h"

/* Iterations after which a measurement has half of the average's weight. */
#define AVERAGE_ITERATIONS 8.0

/* A first measurement needs more iterations than one: it begins and ends
 * somewhere in the middle of one.  As long as it has fewer than
 * AVERAGE_ITERATIONS, it only says what the formula may not be. */
#define FIRST_ITERATIONS 2

/* Bytes that are counted so long after the end of a stage are still its. */
#define LATE_MS 400

/* "HOST:tx"; the caller frees. */
char *
demand_port_name(const struct host *host, enum direction dir)
{
    return xasprintf("%s:%s", host->name, dir == DIR_TX ? "tx" : "rx");
}

/* What the formulas say that an iteration moves through a host's link, in
 * each direction: a parameter server's workers push and pull the model to and
 * from all shards, peers pass it around a ring.  What stays on the host does
 * not count. */
static double
prior(const struct job *job, const struct job_traffic *t)
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

/* Starts the measurement of 't' again from what is known now. */
static void
mark(struct job_traffic *t, int64_t iteration)
{
    t->mark_iteration = iteration;
    t->mark_bytes[DIR_TX] = t->bytes[DIR_TX];
    t->mark_bytes[DIR_RX] = t->bytes[DIR_RX];
}

/* What an iteration moves, 'expected' so far or 0 if nothing was, if 'moved'
 * bytes are those of 'n' iterations, or of one more or less: who counts bytes
 * does not know where in an iteration the job is. */
static double
within(double expected, double moved, int64_t n)
{
    return expected > 0 ? MIN(MAX(expected, moved / (n + 1)), moved / (n - 1))
                        : moved / n;
}

/* Folds what moved since the mark into the moving average, if the job has
 * done enough iterations: a few that were only counted say less than the
 * formula.  What moves before the first one is done is also the parameters
 * that all begin with. */
static void
measure(const struct job *job, struct job_traffic *t)
{
    bool averaged = t->measured >= AVERAGE_ITERATIONS;
    int64_t n = job->iteration - t->mark_iteration;
    bool enough = averaged || n >= AVERAGE_ITERATIONS;
    double share = enough ? n / (n + AVERAGE_ITERATIONS) : 0;

    if (job->iteration < 1) {
        return;
    } else if (t->mark_iteration < 0 || n < 0) {
        mark(t, job->iteration);
        return;
    } else if (n < (averaged ? 1 : FIRST_ITERATIONS)
               || (!enough && job->counted && job->model_bytes)) {
        return;
    }

    for (int dir = 0; dir < N_DIRS; dir++) {
        double moved = t->bytes[dir] - t->mark_bytes[dir];
        double expected = t->measured ? t->per_iteration[dir] : prior(job, t);

        if (!averaged) {
            expected = within(expected, moved, n);
        }
        t->per_iteration[dir] = expected + share * (moved / n - expected);
    }
    if (enough) {
        t->measured += n;
        mark(t, job->iteration);
    } else {
        t->measured = n;
    }
}

static void
add_bytes(struct stage *stage, struct job_traffic *t,
          const uint64_t delta[N_DIRS], double share)
{
    struct stage_bytes *b = stage_get_bytes(stage, t->host);

    for (int dir = 0; dir < N_DIRS; dir++) {
        b->bytes[dir] += delta[dir] * share;
    }
}

/* Counts what 'job' moved since the last telemetry for its stage.  When the
 * stage began meanwhile, what moved before that, by time, is the previous
 * one's. */
static void
attribute(struct job *job, struct job_traffic *t,
          const uint64_t delta[N_DIRS], int64_t now)
{
    struct stage *stage = job->stage;
    double share = 1;

    if (!stage || (stage->ended && now > stage->ended + LATE_MS)) {
        return;
    }
    if (t->known && t->at < stage->began && stage->began < now) {
        share = (double) (now - stage->began) / (now - t->at);
        if (job->previous) {
            add_bytes(job->previous, t, delta, 1 - share);
        }
    }
    add_bytes(stage, t, delta, share);
    job->sent += delta[DIR_TX] * share;
}

static void
count_bytes(struct job *job, struct job_traffic *t, const uint64_t now[N_DIRS],
            bool base_is_zero)
{
    bool fell = now[DIR_TX] < t->bytes[DIR_TX]
                || now[DIR_RX] < t->bytes[DIR_RX];
    uint64_t delta[N_DIRS] = { now[DIR_TX] - t->bytes[DIR_TX],
                               now[DIR_RX] - t->bytes[DIR_RX] };

    if ((t->known && !fell) || (!t->known && base_is_zero)) {
        attribute(job, t, delta, time_wall_msec());
        t->host->moved[DIR_TX] += delta[DIR_TX];
        t->host->moved[DIR_RX] += delta[DIR_RX];
    } else {
        t->mark_iteration = -1;
    }
    t->known = true;
    t->at = time_wall_msec();
    t->bytes[DIR_TX] = now[DIR_TX];
    t->bytes[DIR_RX] = now[DIR_RX];
}

/* What was counted were no iterations of 'job', which now tells them: its
 * first bytes come in pieces. */
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
 * parts of iterations for iterations has counted too many. */
static void
find_iteration(struct job *job)
{
    const struct shash_node *node;
    int64_t reported = job->rest.iteration, counted = -1;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;
        int64_t n = t->counted_before + MAX(0, t->counted);

        reported = MAX(reported, t->progress.iteration);
        if ((t->counted >= 0 || n > 0) && (counted < 0 || n < counted)) {
            counted = n;
        }
    }
    if (job->counted && reported >= 0) {
        forget_measurements(job);
    }
    job->counted = reported < 0 && counted >= 0;
    job->iteration = job->counted ? counted : reported;
}

/* Stores the number of iterations that the host's agent has counted in the
 * traffic.  Returns true if it has changed.
 *
 * An agent counts bytes and iterations from when it first saw the job.  If a
 * connection begins with fewer bytes than the previous one ended with, the
 * agent has restarted, and the count of its predecessor is kept. */
static bool
update_counted(struct job_traffic *t, const struct telemetry_job *tj,
               bool first)
{
    bool changed = t->counted != tj->counted;

    if (first && t->counted > 0 && (tj->tx_bytes < t->bytes[DIR_TX]
                                    || tj->rx_bytes < t->bytes[DIR_RX])) {
        t->counted_before += t->counted;
        changed = true;
    }
    t->counted = tj->counted;
    return changed;
}

/* Handles a progress report of 'job' from 'source': the job has done
 * 'iteration' iterations (-1 if the report contains none), and 'metric' had
 * 'value' then, unless 'metric' is NULL.  'now' is time_msec(). */
void
demand_progress(struct cluster *c, struct job *job,
                struct progress_source *source, int64_t iteration,
                const char *metric, double value, int64_t now)
{
    if (iteration >= 0 && iteration != source->iteration) {
        source->iteration = iteration;
        find_iteration(job);
    }
    job_progress_pace(&job->progress, job->iteration, now);
    if (metric && job_progress_sample(&job->progress, &source->sampled, metric,
                                      iteration, value, now)) {
        c->samples++;
    }
}

static void
learn_job(struct cluster *c, struct host *host,
          const struct telemetry_job *tj, bool first)
{
    struct job *job = shash_find_data(&c->jobs, tj->name);
    uint64_t now[N_DIRS] = { tj->tx_bytes, tj->rx_bytes };
    struct job_traffic *t;
    bool recounted;

    if (!job) {
        return;
    }
    if (!shash_find(&job->traffic, host->name)) {
        c->changes++;
    }
    t = job_get_traffic(job, host);
    recounted = update_counted(t, tj, first);
    if (first) {
        t->known = false;
        t->mark_iteration = -1;
    }
    if (!t->known) {
        t->bytes[DIR_TX] = t->bytes[DIR_RX] = 0;
    }
    count_bytes(job, t, now, !first);
    t->burst_period = tj->period;
    t->burst_bytes = tj->burst_bytes;
    t->burst_duty = tj->duty;
    if (recounted && tj->iteration < 0) {
        find_iteration(job);    /* Visits all hosts of the job. */
    }
    demand_progress(c, job, &t->progress, tj->iteration, tj->metric,
                    tj->value, time_msec());
    measure(job, t);
}

/* Takes in what an agent says.  'first' is true for the first message of a
 * connection, whose counters are only a base to count from: they may have
 * begun before the stages that run now, and another agent may have begun at
 * 0.  A job that a later message is the first to name began at 0. */
void
demand_learn(struct cluster *c, const struct telemetry_report *r, bool first)
{
    struct host *host = cluster_get_host(c, r->host);

    host_set_ports(c, host, &r->ports);
    host_set_applied(host, r->applied);
    host->bypass = r->bypass;
    host->ip_bytes = r->ip_bytes;
    host->default_bytes = r->default_bytes;
    host->queued_bytes = r->queued_bytes;
    host->shim = r->shim;
    if (!host->connected) {
        host->connected = true;
        host->in_step = time_msec();
        c->changes++;
    }
    free(host->state);
    host->state = xstrdup(r->state);
    for (size_t i = 0; i < r->n_jobs; i++) {
        learn_job(c, host, &r->jobs[i], first);
    }
}

/* Does anything tell how many iterations 'job' has done, or of what size? */
static bool
is_known(const struct job *job)
{
    return job->iteration >= 0 || job->model_bytes > 0;
}

/* Bytes that an iteration of 'job' moves through the link of 't''s host.  Of a
 * job that is not known, what it has moved counts as one: without any demand
 * it would be in nobody's way and thus before everybody. */
double
demand_per_iteration(const struct job *job, const struct job_traffic *t,
                     enum direction dir)
{
    double bytes = t->measured ? t->per_iteration[dir] : prior(job, t);

    return bytes > 0 || t->measured
           ? bytes : (double) t->bytes[dir] / MAX(1, job->iteration);
}

/* Iterations that 'job' still has to do in 'stage': 0 once it is there, or has
 * ended.
 *
 * A job that is not known has as much left as it has moved, one "iteration".
 * So it goes early when it begins, and undisturbed its iterations can soon be
 * counted; if they cannot, it falls back.  One whose iterations are counted is
 * not there before its stage ends, for the count may be off by one. */
int64_t
demand_iterations_left(const struct stage *stage, const struct job *job)
{
    int64_t left = stage->iterations - MAX(0, job->iteration);

    if (!job->live) {
        return 0;
    } else if (!is_known(job)) {
        return MIN(left, 1);
    }
    return MAX(left, job->counted ? 1 : 0);
}

static int
compare_ports(const void *a_, const void *b_)
{
    const struct order_demand *a = a_, *b = b_;

    return a->port < b->port ? -1 : a->port > b->port;
}

/* Stores what an iteration of 'job' takes of each port in '*demandsp', by
 * port; the caller frees.  Returns how many ports that are. */
size_t
demand_of_iteration(const struct job *job, struct order_demand **demandsp)
{
    struct order_demand *demands = xcalloc(
        MAX(1, shash_count(&job->traffic) * N_DIRS), sizeof *demands);
    const struct shash_node *node;
    size_t n = 0;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            double seconds = demand_per_iteration(job, t, dir) * 8
                             / host_capacity(t->host);

            if (seconds > 0) {
                demands[n++] = (struct order_demand) {
                    .port = demand_port(t->host, dir), .seconds = seconds,
                };
            }
        }
    }
    qsort(demands, n, sizeof *demands, compare_ports);
    *demandsp = demands;
    return n;
}

/* Bytes that all hosts together send in an iteration of 'job'. */
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

/* Processes of 'job' that compute: all but servers. */
int
demand_devices(const struct job *job)
{
    return job->workers[ROLE_WORKER] + job->workers[ROLE_PEER];
}

/* Adds 'stage' to 'problem' with what it has taken by measurement, for a
 * bound after the fact: it was released at 'release' seconds.  Returns the
 * seconds of its busiest port. */
double
demand_add_ended(const struct stage *stage, struct order_problem *problem,
                 double release, uint64_t id)
{
    int index = order_problem_add_stage(problem, 1, id);
    const struct shash_node *node;
    double busiest = 0;

    SHASH_FOR_EACH (node, &stage->moved) {
        const struct stage_bytes *b = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            double seconds = b->bytes[dir] * 8 / host_capacity(b->host);

            if (seconds > 0) {
                order_problem_add_demand(problem, index,
                                         demand_port(b->host, dir), seconds);
                busiest = MAX(busiest, seconds);
            }
        }
    }
    order_problem_set_release(problem, index, release, busiest);
    return busiest;
}
