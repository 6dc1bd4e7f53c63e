/* SPDX-License-Identifier: Apache-2.0 */

/* Batches that schemes divide again each time, and gradients that come in
 * parts and in any order: nothing is read twice, and sums stay what they
 * are. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/trainer/schemes/sync-cluster.h"
#include "tests/unit/unit-test.h"
#include "trainer/data/dataset.h"
#include "trainer/data/seeded.h"
#include "trainer/schemes/shard.h"
#include "trainer/schemes/sync.h"

#define N_WORKERS 5
#define SAMPLES 103             /* No multiple of a batch, */
#define SIZE 67                 /* nor this one of the workers. */
#define N_ITERATIONS 200

/* The sample i has i as its only input. */
static struct dataset *
numbered(void)
{
    struct dataset *ds = dataset_create(1, 2, SAMPLES, 1);

    for (int i = 0; i < SAMPLES; i++) {
        ds->train_x[i] = i;
    }
    return ds;
}

/* Seconds that worker 'i' takes for a sample: it changes, and others do at
 * other times. */
static double
cost(int i, int iteration)
{
    return 0.001 * (1 + (iteration / (7 + i) + i) % 4);
}

enum { N_EPOCHS = N_ITERATIONS * SIZE / SAMPLES }; /* Whole ones. */

struct readers {
    struct dataset *ds;
    struct batch *batch;
    int seen[N_EPOCHS + 2][SAMPLES];
    uint32_t n[N_WORKERS]; /* Of the last piece of each worker. */
    int n_changes;         /* Of these. */
};

static void
read_samples(struct cluster *c, const float *weights, uint64_t first,
             uint32_t n, float *sum, double *loss)
{
    struct readers *r = c->job->aux;

    dataset_fill(r->ds, 9, first, n, r->batch);
    for (uint64_t j = 0; j < n; j++) {
        r->seen[(first + j) / SAMPLES][(int) r->batch->x[j]]++;
    }
}

static double
read_seconds(struct cluster *c, int worker, uint32_t n)
{
    struct readers *r = c->job->aux;

    r->n_changes += r->n[worker] != n;
    r->n[worker] = n;
    return n * cost(worker, c->iteration[worker]);
}

static void
read_once(const char *scheme, int least_changes)
{
    static struct readers r;
    const struct cluster_job job = {
        .n_parameters = 1,
        .batch = SIZE,
        .optimiser = "adam",
        .rate = 0.1f,
        .aux = &r,
        .gradient = read_samples,
        .seconds = read_seconds,
    };
    struct cluster c;

    r = (struct readers){ .ds = numbered(), .batch = batch_create() };
    cluster_init_job(&c, &job, scheme, N_WORKERS);
    cluster_run(&c, N_ITERATIONS);
    for (int i = 0; i < N_EPOCHS * SAMPLES; i++) {
        assert_int_equal(r.seen[i / SAMPLES][i % SAMPLES], 1);
    }
    if (r.n_changes < least_changes) {
        fail_msg("%s: %d changes", scheme, r.n_changes);
    }
    cluster_uninit(&c);
    batch_destroy(r.batch);
    dataset_destroy(r.ds);
}

UNIT_TEST(nothing_is_read_twice_in_an_epoch)
{
    read_once("lbbsp-cpu,predictor=memoryless", 100);
    read_once("lbbsp-cpu", 100);
    read_once("lbbsp-gpu", 20);
    read_once("flexrr,pieces=3", 100);
    read_once("static,ratios=1:0.1:3.3:2:7", N_WORKERS - 1);
}

UNIT_TEST(assignments_stay_within_the_whole)
{
    static const struct sync_message wrong[] = {
        { .first = 0, .n = 1, .total = 0 },
        { .first = 3, .n = 2, .total = 4 },
        { .first = UINT32_MAX, .n = UINT32_MAX, .total = UINT32_MAX },
    };
    struct sync_message most = {
        .first = UINT32_MAX - 1, .n = 1, .total = UINT32_MAX,
    };
    struct shard share = { 1, 2 };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *error = sync_assigned_shard(&wrong[i], SIZE, &share);

        assert_non_null(error);
        free(error);
    }
    assert_int_equal(share.first, 1);
    assert_null(sync_assigned_shard(&most, 65536, &share));
    assert_int_equal(share.first + share.n, 65536);
}

#define N_PARAMETERS 1000

/* Trains with gradients by chance, in parts of 'part' parameters, of workers
 * that take turns by chance. */
static void
train(const char *scheme, size_t part, uint64_t seed,
      float result[N_PARAMETERS])
{
    struct seeded gradients, turns;
    const struct cluster_job job = {
        .n_parameters = N_PARAMETERS,
        .batch = SIZE,
        .optimiser = "adam",
        .rate = 0.1f,
        .momentum = 0.9f,
    };
    struct sync_message m;
    struct cluster c;
    int to;

    seeded_init(&gradients, 3, 0);
    seeded_init(&turns, seed, 1);
    cluster_init_job(&c, &job, scheme, N_WORKERS);
    for (int k = 0; k < 6; k++) {
        size_t from[N_WORKERS];
        int n_left = N_WORKERS;

        while (sync_take(c.sync, &to, &m)) {
            continue;
        }
        for (int i = 0; i < N_WORKERS; i++) {
            float *inbox = sync_inbox(c.sync, i);

            from[i] = N_PARAMETERS;
            for (int j = 0; j < N_PARAMETERS; j++) {
                inbox[j] = seeded_normal(&gradients);
            }
        }
        while (n_left) {
            int i = seeded_below(&turns, N_WORKERS);

            if (!from[i]) {
                continue;
            }
            from[i] = from[i] > part ? from[i] - part : 0;
            if (from[i]) {
                assert_null(sync_part(c.sync, i, k, i + 1, from[i]));
            } else {
                assert_null(c.spec.class->push(c.sync, i, k, i + 1, 0));
                n_left--;
            }
        }
    }
    memcpy(result, sync_weights(c.sync), N_PARAMETERS * sizeof *result);
    cluster_uninit(&c);
}

UNIT_TEST(parts_in_any_order_make_the_same_weights)
{
    static const char *const schemes[] = {
        "bsp", "static,ratios=1:2:3:4:5", "flexrr", "lbbsp-cpu",
    };
    static float whole[N_PARAMETERS], parts[N_PARAMETERS];

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        train(schemes[i], N_PARAMETERS, 1, whole);
        for (int j = 1; j < 20; j++) {
            train(schemes[i], 1 + 37 * j, j, parts);
            assert_memory_equal(parts, whole, sizeof whole);
        }
    }
}
