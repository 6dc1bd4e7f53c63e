/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/trainer/schemes/sync-cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit-test.h"
#include "trainer/backend/backend.h"
#include "trainer/balance/batch-size-manager.h"

const double mixed[N] = { 800, 800, 800, 800, 800, 800, 1600, 400 };

static void
add_quadratic(struct cluster *c, const float *weights, uint64_t first,
              uint32_t n, float *sum, double *loss)
{
    *sum += n * (*weights - 1);
    *loss += n * (*weights - 1) * (*weights - 1) / 2;
}

static double
seconds_by_speed(struct cluster *c, int worker, uint32_t n)
{
    return n / c->speeds[worker];
}

void
cluster_init(struct cluster *c, const char *scheme, int n_workers,
             const double *speeds)
{
    static const struct cluster_job job = {
        .n_parameters = 1,
        .batch = BATCH,
        .optimiser = "sgd",
        .rate = 0.1f,
        .gradient = add_quadratic,
        .seconds = seconds_by_speed,
    };

    cluster_init_job(c, &job, scheme, n_workers);
    c->speeds = speeds;
}

void
cluster_init_job(struct cluster *c, const struct cluster_job *job,
                 const char *scheme, int n_workers)
{
    memset(c, 0, sizeof *c);
    assert_int_equal(backend_open(&backend_cpu, 0, 1, &c->b), 0);
    assert_null(sync_spec_parse(scheme, &c->spec));
    assert_null(sync_spec_check(&c->spec, n_workers));
    c->job = job;
    c->n_workers = n_workers;
    c->sync = sync_create(
        c->spec.class,
        &(struct sync_config){
            .backend = c->b,
            .n_workers = n_workers,
            .n = job->n_parameters,
            .optimiser = optimiser_defaults(optimiser_find(job->optimiser),
                                            job->rate, job->momentum),
            .spec = &c->spec,
        });
    for (int i = 0; i < n_workers; i++) {
        c->free_at[i] = -1;
        c->share[i] = shard_range(job->batch, i, n_workers);
        c->n_pieces[i] = c->owed[i] = 1;
        c->w[i] = allocate(job->n_parameters, sizeof *c->w[i]);
        c->sum[i] = allocate(job->n_parameters, sizeof *c->sum[i]);
    }
}

void
cluster_uninit(struct cluster *c)
{
    for (int i = 0; i < c->n_workers; i++) {
        free(c->w[i]);
        free(c->sum[i]);
    }
    sync_destroy(c->sync);
    backend_close(c->b);
}

static void
take_message(struct cluster *c, int to, const struct sync_message *m)
{
    if (m->kind == SYNC_ROLE) {
        c->role[to] = m->n;
        if (m->n & (SYNC_ROLE_STEALS | SYNC_ROLE_SKIPS) && m->total) {
            c->n_pieces[to] = m->total;
        }
    } else if (m->kind == SYNC_SKIP) {
        assert_true(c->free_at[to] >= 0);
        assert_true(c->iteration[to] < m->iteration);
        c->skips[to] = true;
        c->free_at[to] = c->now;
    } else if (m->kind == SYNC_ASSIGN) {
        assert_null(sync_assigned_shard(m, c->job->batch, &c->share[to]));
    } else {
        steal_take(&c->steal[to], m);
    }
}

static void
take_messages(struct cluster *c)
{
    struct sync_message m;
    int to = 0;

    while (to >= 0) {
        while (sync_take(c->sync, &to, &m)) {
            take_message(c, to, &m);
        }
        to = -1;
        for (int i = 0; i < c->n_workers; i++) {
            while (steal_post(&c->steal[i], &m)) {
                assert_null(c->spec.class->message(c->sync, i, &m));
                to = i;
            }
        }
    }
}

/* The iteration that a worker is in: the clock of its weights, and those that
 * it has done since without a reply. */
static uint64_t
clock_of(const struct cluster *c, int i)
{
    return c->iteration[i] + c->owed[i];
}

/* Gives a worker what weights it is to have, once it does not use those that
 * it has.  Returns true if it may start. */
static bool
take_weights(struct cluster *c, int i)
{
    const struct sync_class *class = c->spec.class;
    uint32_t ahead = class->max_in_flight ? class->max_in_flight(c->sync) : 0;
    uint64_t iteration;
    float loss;

    while (c->free_at[i] < 0 && c->owed[i]
           && class->ready(c->sync, i, &iteration, &loss)) {
        memcpy(c->w[i], sync_weights(c->sync),
               c->job->n_parameters * sizeof *c->w[i]);
        c->iteration[i] = iteration;
        c->owed[i]--;
        if (class->sent) {
            class->sent(c->sync, i);
        }
    }
    return c->free_at[i] < 0 && c->owed[i] <= ahead;
}

static void
finish_step(struct cluster *c, int i)
{
    const struct sync_class *class = c->spec.class;
    uint32_t n = c->skips[i] ? 0 : c->n[i];
    float *inbox = sync_inbox(c->sync, i);

    if (c->role[i] & SYNC_ROLE_REPORTS && !c->job->silent) {
        struct sync_message m = { .kind = SYNC_REPORT,
                                  .n = n,
                                  .seconds = c->now - c->began_at[i] };

        if (c->job->report) {
            c->job->report(c, i, &m);
        }
        assert_null(class->message(c->sync, i, &m));
    }
    memset(inbox, 0, c->job->n_parameters * sizeof *inbox);
    if (n) {
        batch_size_aggregate(c->job->n_parameters, 1. / n, c->sum[i], inbox);
    }
    assert_null(
        class->push(c->sync, i, clock_of(c, i), n, n ? c->loss[i] / n : 0));
    c->free_at[i] = -1;
    c->skips[i] = false;
    c->owed[i]++;
    c->n_steps[i]++;
    c->n_samples += n;
    if (c->n_pushed - c->began[i] > c->oldest) {
        c->oldest = c->n_pushed - c->began[i];
    }
    c->n_pushed++;
}

/* Begins the next piece of a worker's step, or finishes it. */
static void
go_on(struct cluster *c, int i)
{
    uint32_t n_pieces = c->n_pieces[i], first, n;

    while (!c->skips[i]) {
        if (steal_next(&c->steal[i], (c->share[i].n + n_pieces - 1) / n_pieces,
                       &first, &n)) {
            c->job->gradient(c, c->w[i],
                             clock_of(c, i) * c->job->batch + first, n,
                             c->sum[i], &c->loss[i]);
            c->n[i] += n;
            c->free_at[i] = c->now + c->job->seconds(c, i, n);
            return;
        }
        if (steal_idle(&c->steal[i])) {
            break;
        }
        take_messages(c);
    }
    finish_step(c, i);
    take_messages(c);
}

static void
start_step(struct cluster *c, int i)
{
    uint64_t least = UINT64_MAX;

    c->began[i] = c->n_pushed;
    for (int j = 0; j < c->n_workers; j++) {
        least = c->n_steps[j] < least ? c->n_steps[j] : least;
    }
    if (clock_of(c, i) - least > c->most_ahead) {
        c->most_ahead = clock_of(c, i) - least;
    }
    memset(c->sum[i], 0, c->job->n_parameters * sizeof *c->sum[i]);
    c->n[i] = c->loss[i] = 0;
    c->began_at[i] = c->now;
    steal_begin(&c->steal[i], i,
                c->role[i] & SYNC_ROLE_STEALS ? c->n_workers : 1,
                clock_of(c, i), c->share[i].first, c->share[i].n);
    go_on(c, i);
}

void
cluster_start(struct cluster *c)
{
    take_messages(c);
    for (int i = 0; i < c->n_workers; i++) {
        if (take_weights(c, i) && !c->rests[i]) {
            start_step(c, i);
        }
    }
}

void
cluster_step(struct cluster *c)
{
    int next = -1;

    for (int i = 0; i < c->n_workers; i++) {
        if (c->free_at[i] >= 0
            && (next < 0 || c->free_at[i] < c->free_at[next])) {
            next = i;
        }
    }
    assert_true(next >= 0);
    c->now = c->free_at[next];
    go_on(c, next);
}

void
cluster_run(struct cluster *c, uint64_t n)
{
    for (;;) {
        cluster_start(c);
        if (c->n_steps[0] >= n && c->free_at[0] >= 0) {
            break;
        }
        cluster_step(c);
    }
}

void
assert_near(double x, double expected)
{
    if (fabs(x - expected) > 1e-6 * fabs(expected)) {
        fail_msg("%g, %g expected", x, expected);
    }
}
