/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/trainer/schemes/sync-cluster.h"

#include <math.h>
#include <string.h>

#include "tests/unit/unit-test.h"
#include "trainer/backend/backend.h"

const double mixed[N] = { 800, 800, 800, 800, 800, 800, 1600, 400 };

void
cluster_init(struct cluster *c, const char *scheme, int n_workers,
             const double *speeds)
{
    memset(c, 0, sizeof *c);
    assert_int_equal(backend_open(&backend_cpu, 0, 1, &c->b), 0);
    assert_null(sync_spec_parse(scheme, &c->spec));
    assert_null(sync_spec_check(&c->spec, n_workers));
    c->n_workers = n_workers;
    c->speeds = speeds;
    c->sync = sync_create(c->spec.class, &(struct sync_config) {
        .backend = c->b, .n_workers = n_workers, .n = 1,
        .optimiser = optimiser_defaults(optimiser_find("sgd"), 0.1f, 0),
        .spec = &c->spec,
    });
    for (int i = 0; i < n_workers; i++) {
        c->free_at[i] = -1;
        c->n[i] = BATCH / n_workers;
        c->owed[i] = 1;
    }
}

void
cluster_uninit(struct cluster *c)
{
    sync_destroy(c->sync);
    backend_close(c->b);
}

static void
take_messages(struct cluster *c)
{
    struct sync_message m;
    int to;

    while (sync_take(c->sync, &to, &m)) {
        if (m.kind == SYNC_ROLE) {
            c->role[to] = m.n;
        } else if (m.kind == SYNC_SKIP) {
            assert_true(c->free_at[to] >= 0);
            assert_true(c->iteration[to] < m.iteration);
            c->skips[to] = true;
            c->free_at[to] = c->now;
        } else {
            assert_int_equal(m.kind, SYNC_ASSIGN);
            c->n[to] = (uint64_t) BATCH * (m.first + m.n) / m.total
                       - (uint64_t) BATCH * m.first / m.total;
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

/* Gives a worker what weights it is to have.  Returns true if it may start. */
static bool
take_weights(struct cluster *c, int i)
{
    const struct sync_class *class = c->spec.class;
    uint32_t ahead = class->max_in_flight ? class->max_in_flight(c->sync) : 0;
    uint64_t iteration;
    float loss;

    while (c->owed[i] && class->ready(c->sync, i, &iteration, &loss)) {
        c->w[i] = *sync_weights(c->sync);
        c->iteration[i] = iteration;
        c->owed[i]--;
        if (class->sent) {
            class->sent(c->sync, i);
        }
    }
    return c->owed[i] <= ahead;
}

void
cluster_start(struct cluster *c)
{
    take_messages(c);
    for (int i = 0; i < c->n_workers; i++) {
        uint64_t least = UINT64_MAX;

        if (!take_weights(c, i) || c->free_at[i] >= 0 || c->rests[i]) {
            continue;
        }
        c->w_used[i] = c->w[i];
        c->free_at[i] = c->now + c->n[i] / c->speeds[i];
        c->began[i] = c->n_pushed;
        for (int j = 0; j < c->n_workers; j++) {
            least = c->n_steps[j] < least ? c->n_steps[j] : least;
        }
        if (clock_of(c, i) - least > c->most_ahead) {
            c->most_ahead = clock_of(c, i) - least;
        }
    }
}

static void
finish_step(struct cluster *c, int i)
{
    const struct sync_class *class = c->spec.class;

    if (c->role[i] & SYNC_ROLE_REPORTS) {
        assert_null(class->message(c->sync, i, &(struct sync_message) {
            .kind = SYNC_REPORT, .n = c->n[i],
            .seconds = c->n[i] / c->speeds[i],
        }));
    }
    *sync_inbox(c->sync, i) = c->w_used[i] - 1;
    assert_null(class->push(c->sync, i, clock_of(c, i),
                            c->skips[i] ? 0 : c->n[i],
                            (c->w_used[i] - 1) * (c->w_used[i] - 1) / 2));
    c->free_at[i] = -1;
    c->skips[i] = false;
    c->owed[i]++;
    c->n_steps[i]++;
    if (c->n_pushed - c->began[i] > c->oldest) {
        c->oldest = c->n_pushed - c->began[i];
    }
    c->n_pushed++;
}

void
cluster_run(struct cluster *c, uint64_t n)
{
    for (;;) {
        int next = -1;

        cluster_start(c);
        if (c->n_steps[0] >= n && c->free_at[0] >= 0) {
            break;
        }
        for (int i = 0; i < c->n_workers; i++) {
            if (c->free_at[i] >= 0
                && (next < 0 || c->free_at[i] < c->free_at[next])) {
                next = i;
            }
        }
        assert_true(next >= 0);
        c->now = c->free_at[next];
        finish_step(c, next);
    }
}

void
assert_near(double x, double expected)
{
    if (fabs(x - expected) > 1e-6 * fabs(expected)) {
        fail_msg("%g, %g expected", x, expected);
    }
}
