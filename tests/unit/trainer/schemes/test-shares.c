/* SPDX-License-Identifier: Apache-2.0 */

/* Batches that schemes divide again each time, and gradients that come in
 * parts and in any order: nothing is read twice, and sums stay what they
 * are. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit-test.h"
#include "trainer/backend/backend.h"
#include "trainer/data/dataset.h"
#include "trainer/data/seeded.h"
#include "trainer/schemes/shard.h"
#include "trainer/schemes/sync.h"

#define N_WORKERS 5
#define SAMPLES 103             /* No multiple of a batch, */
#define BATCH 67                /* nor this one of the workers. */
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

struct job {
    struct backend *b;
    struct sync_spec spec;
    struct sync *sync;
    struct shard shares[N_WORKERS];
    int n_changes;              /* Of a share. */
};

static void
job_init(struct job *job, const char *scheme, size_t n)
{
    memset(job, 0, sizeof *job);
    assert_int_equal(backend_open(&backend_cpu, 0, 1, &job->b), 0);
    assert_null(sync_spec_parse(scheme, &job->spec));
    job->sync = sync_create(job->spec.class, &(struct sync_config) {
        .backend = job->b, .n_workers = N_WORKERS, .n = n,
        .optimiser = optimiser_defaults(optimiser_find("adam"), 0.1f, 0.9f),
        .spec = &job->spec,
    });
    for (int i = 0; i < N_WORKERS; i++) {
        job->shares[i] = shard_range(BATCH, i, N_WORKERS);
    }
}

static void
job_uninit(struct job *job)
{
    sync_destroy(job->sync);
    backend_close(job->b);
}

static void
take_shares(struct job *job)
{
    struct sync_message m;
    int to;

    while (sync_take(job->sync, &to, &m)) {
        struct shard before = job->shares[to];

        if (m.kind == SYNC_ASSIGN) {
            assert_null(sync_assigned_shard(&m, BATCH, &job->shares[to]));
            job->n_changes += job->shares[to].n != before.n;
        }
    }
}

/* Seconds that worker 'i' takes for a sample: it changes, and others do at
 * other times. */
static double
cost(int i, int iteration)
{
    return 0.001 * (1 + (iteration / (7 + i) + i) % 4);
}

static void
read_once(const char *scheme, int least_changes)
{
    enum { N_EPOCHS = N_ITERATIONS * BATCH / SAMPLES };     /* Whole ones. */
    static int seen[N_EPOCHS + 1][SAMPLES];
    struct dataset *ds = numbered();
    struct batch *batch = batch_create();
    struct job job;

    memset(seen, 0, sizeof seen);
    job_init(&job, scheme, 1);
    for (int k = 0; k < N_ITERATIONS; k++) {
        take_shares(&job);
        for (int i = 0; i < N_WORKERS; i++) {
            uint64_t position = (uint64_t) k * BATCH + job.shares[i].first;

            dataset_fill(ds, 9, position, job.shares[i].n, batch);
            for (int j = 0; j < batch->n; j++) {
                seen[(position + j) / SAMPLES][(int) batch->x[j]]++;
            }
            if (job.spec.class->message) {
                assert_null(job.spec.class->message(
                    job.sync, i, &(struct sync_message) {
                        .kind = SYNC_REPORT, .n = job.shares[i].n,
                        .seconds = job.shares[i].n * cost(i, k),
                    }));
            }
            assert_null(job.spec.class->push(job.sync, i, k,
                                             job.shares[i].n, 0));
        }
    }
    for (int i = 0; i < N_EPOCHS * SAMPLES; i++) {
        assert_int_equal(seen[i / SAMPLES][i % SAMPLES], 1);
    }
    assert_true(job.n_changes >= least_changes);
    job_uninit(&job);
    batch_destroy(batch);
    dataset_destroy(ds);
}

UNIT_TEST(nothing_is_read_twice_in_an_epoch)
{
    read_once("lbbsp-cpu,predictor=memoryless", 100);
    read_once("lbbsp-cpu", 100);
    read_once("lbbsp-gpu", 20);
    read_once("static,ratios=1:0.1:3.3:2:7", N_WORKERS);
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
        char *error = sync_assigned_shard(&wrong[i], BATCH, &share);

        assert_non_null(error);
        free(error);
    }
    assert_int_equal(share.first, 1);
    assert_null(sync_assigned_shard(&most, 65536, &share));
    assert_int_equal(share.first + share.n, 65536);
}

#define N 1000                  /* Parameters. */

/* Trains with gradients by chance, in parts of 'part' parameters, of workers
 * that take turns by chance. */
static void
train(const char *scheme, size_t part, uint64_t seed, float result[N])
{
    struct seeded gradients, turns;
    struct job job;

    seeded_init(&gradients, 3, 0);
    seeded_init(&turns, seed, 1);
    job_init(&job, scheme, N);
    for (int k = 0; k < 6; k++) {
        size_t from[N_WORKERS];
        int n_left = N_WORKERS;

        take_shares(&job);
        for (int i = 0; i < N_WORKERS; i++) {
            float *inbox = sync_inbox(job.sync, i);

            from[i] = N;
            for (int j = 0; j < N; j++) {
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
                assert_null(sync_part(job.sync, i, k, i + 1, from[i]));
            } else {
                assert_null(job.spec.class->push(job.sync, i, k, i + 1, 0));
                n_left--;
            }
        }
    }
    memcpy(result, sync_weights(job.sync), N * sizeof *result);
    job_uninit(&job);
}

UNIT_TEST(parts_in_any_order_make_the_same_weights)
{
    static const char *const schemes[] = {
        "bsp", "static,ratios=1:2:3:4:5", "flexrr", "lbbsp-cpu",
    };
    static float whole[N], parts[N];

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        train(schemes[i], N, 1, whole);
        for (int j = 1; j < 20; j++) {
            train(schemes[i], 1 + 37 * j, j, parts);
            assert_memory_equal(parts, whole, sizeof whole);
        }
    }
}
