/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/unit-test.h"
#include "trainer/balance/batch-mode.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/data/seeded.h"

#define MAX_JOB_PROCESSES 16
#define N_CLUSTERS 100

/* A cluster by chance.  A worker's time for x samples is
 * launch + max(x, saturation) / speed + communication. */
struct cluster {
    int n;
    uint32_t batch;
    double speed[MAX_JOB_PROCESSES], launch[MAX_JOB_PROCESSES];
    double saturation[MAX_JOB_PROCESSES], communication[MAX_JOB_PROCESSES];
    double jitter;
    struct seeded rs;
    struct batch_size_manager *bsm;
    uint32_t sizes[MAX_JOB_PROCESSES];
};

/* Makes one of 'n' workers, or if that is 0 of a few. */
static void
make_cluster_of(int n, enum batch_size_mode mode, uint64_t seed, double jitter,
                struct cluster *c)
{
    double sum = 0;

    memset(c, 0, sizeof *c);
    seeded_init(&c->rs, seed, 0);
    c->jitter = jitter;
    c->n = n ? n : 2 + (int) seeded_below(&c->rs, 7);
    for (int i = 0; i < c->n; i++) {
        c->speed[i] = 400 * exp(2 * seeded_uniform(&c->rs));
        sum += c->speed[i];
        if (mode == BATCH_SIZE_GPU) {
            c->launch[i] = 0.01 * seeded_uniform(&c->rs);
            c->saturation[i] = c->speed[i] * 0.02 * seeded_uniform(&c->rs);
            c->communication[i] = 0.01;
        }
    }
    c->batch = 0.2 * sum;
    assert_null(batch_size_manager_create(
        &(struct batch_size_config) {
            .mode = mode, .n_workers = c->n, .batch = c->batch, .seed = seed,
        }, &c->bsm));
}

static void
make_cluster(enum batch_size_mode mode, uint64_t seed, double jitter,
             struct cluster *c)
{
    make_cluster_of(0, mode, seed, jitter, c);
}

/* One iteration.  Returns slowest / fastest, but for jitter; 'changed' says
 * whether the sizes are others than before. */
static double
iterate(struct cluster *c, int *changed)
{
    const uint32_t *sizes = batch_size_manager_next(c->bsm);
    double low = INFINITY, high = 0;
    uint32_t sum = 0;

    *changed = memcmp(c->sizes, sizes, c->n * sizeof *sizes) != 0;
    memcpy(c->sizes, sizes, c->n * sizeof *sizes);
    for (int i = 0; i < c->n; i++) {
        double seconds = c->launch[i] + c->communication[i]
                         + fmax(sizes[i], c->saturation[i]) / c->speed[i];

        assert_true(sizes[i] >= 1);
        sum += sizes[i];
        low = fmin(low, seconds);
        high = fmax(high, seconds);
        seconds *= exp(c->jitter * seeded_normal(&c->rs));
        batch_size_manager_report(c->bsm, i, sizes[i], seconds, 0, 0);
    }
    assert_int_equal(sum, c->batch);
    return high / low;
}

/* With exact times either mode is balanced before 50 iterations and moves
 * nothing then. */
UNIT_TEST(exact_times_converge_and_rest)
{
    for (int mode = BATCH_SIZE_CPU; mode <= BATCH_SIZE_GPU; mode++) {
        for (int seed = 1; seed <= N_CLUSTERS; seed++) {
            struct cluster c;

            make_cluster(mode, seed, 0, &c);
            for (int i = 0; i < 150; i++) {
                int changed;
                double ratio = iterate(&c, &changed);

                if (i >= 49 && (ratio >= 1.1 || changed)) {
                    fail_msg("mode %d seed %d: %g at %d", mode, seed, ratio,
                             i);
                }
            }
            batch_size_manager_destroy(c.bsm);
        }
    }
}

/* Communication of one worker takes longer from iteration 150 on; all clusters
 * are balanced again before 'limit' more. */
static void
absorb_cuts(int n, double jitter, int limit)
{
    for (int seed = 1; seed <= N_CLUSTERS; seed++) {
        struct cluster c;

        make_cluster_of(n, BATCH_SIZE_GPU, seed, jitter, &c);
        for (int i = 0; i < 300; i++) {
            int changed;
            double ratio;

            if (i == 150) {
                c.communication[0] += 0.06;
            }
            ratio = iterate(&c, &changed);
            if (i >= 150 + limit && ratio >= 1.1) {
                fail_msg("%d workers, seed %d: %g at %d", n, seed, ratio, i);
            }
        }
        batch_size_manager_destroy(c.bsm);
    }
}

UNIT_TEST(a_bandwidth_cut_is_absorbed)
{
    absorb_cuts(0, 0, 30);
    absorb_cuts(0, 0.02, 30);
    absorb_cuts(16, 0.05, 120);
}

UNIT_TEST(a_slower_worker_gets_less)
{
    struct cluster c;
    int changed;

    make_cluster(BATCH_SIZE_CPU, 1, 0, &c);
    for (int i = 0; i < 150; i++) {
        if (i == 100) {
            c.speed[0] /= 4;
        }
        assert_true(iterate(&c, &changed) < 1.1 || i < 2
                    || (i >= 100 && i < 130));
    }
    batch_size_manager_destroy(c.bsm);
}

/* Jitter alone moves samples in few iterations. */
UNIT_TEST(jitter_moves_little)
{
    for (int mode = BATCH_SIZE_CPU; mode <= BATCH_SIZE_GPU; mode++) {
        int n_changes = 0, n = 0;

        for (int seed = 1; seed <= 10; seed++) {
            struct cluster c;

            make_cluster(mode, seed, 0.02, &c);
            for (int i = 0; i < 300; i++) {
                int changed;
                double ratio = iterate(&c, &changed);

                n_changes += i >= 60 && changed;
                n += i >= 60;
                assert_true(i < 60 || ratio < 1.2);
            }
            batch_size_manager_destroy(c.bsm);
        }
        assert_true(n_changes < n / 10);
    }
}

/* Workers report when they like: nothing moves until all have. */
UNIT_TEST(all_must_report)
{
    struct batch_size_config config = {
        .mode = BATCH_SIZE_CPU, .n_workers = 2, .batch = 30,
        .predictor = "memoryless",
    };
    struct batch_size_manager *bsm;

    assert_null(batch_size_manager_create(&config, &bsm));
    assert_int_equal(batch_size_manager_next(bsm)[0], 15);
    batch_size_manager_report(bsm, 0, 15, 1, 0, 0);
    batch_size_manager_report(bsm, 0, 15, 1, 0, 0);
    assert_int_equal(batch_size_manager_next(bsm)[0], 15);
    batch_size_manager_report(bsm, 1, 15, 2, 0, 0);
    assert_int_equal(batch_size_manager_next(bsm)[0], 20);
    assert_int_equal(batch_size_manager_next(bsm)[1], 10);

    /* An empty report does no harm. */
    batch_size_manager_report(bsm, 0, 20, 0, 0, 0);
    batch_size_manager_report(bsm, 1, 10, NAN, 0, 0);
    assert_int_equal(batch_size_manager_next(bsm)[0], 20);
    batch_size_manager_destroy(bsm);
}

UNIT_TEST(memory_bounds_are_kept)
{
    const uint32_t max[] = { 10, 0, 3, 40 };

    for (int mode = BATCH_SIZE_CPU; mode <= BATCH_SIZE_GPU; mode++) {
        struct batch_size_config config = {
            .mode = mode, .n_workers = 4, .batch = 60, .max = max,
        };
        struct batch_size_manager *bsm;

        assert_null(batch_size_manager_create(&config, &bsm));
        for (int i = 0; i < 100; i++) {
            const uint32_t *sizes = batch_size_manager_next(bsm);

            assert_true(sizes[0] <= 10 && sizes[2] <= 3 && sizes[3] <= 40);
            assert_int_equal(sizes[0] + sizes[1] + sizes[2] + sizes[3], 60);
            for (int w = 0; w < 4; w++) {
                batch_size_manager_report(bsm, w, sizes[w],
                                          sizes[w] / (w == 1 ? 1.0 : 9.0),
                                          0, 0);
            }
        }
        assert_int_equal(batch_size_manager_next(bsm)[0], 10);
        assert_int_equal(batch_size_manager_next(bsm)[2], 3);
        batch_size_manager_destroy(bsm);
    }
}

/* A straggler in the flat part of its time keeps its samples. */
UNIT_TEST(saturated_workers_are_left_alone)
{
    struct batch_size_config config = {
        .mode = BATCH_SIZE_GPU, .n_workers = 2, .batch = 64,
    };
    struct batch_size_manager *bsm;

    assert_null(batch_size_manager_create(&config, &bsm));
    for (int i = 0; i < 60; i++) {
        const uint32_t *sizes = batch_size_manager_next(bsm);

        batch_size_manager_report(bsm, 0, sizes[0],
                                  fmax(sizes[0], 40) * 0.01, 0, 0);
        batch_size_manager_report(bsm, 1, sizes[1], sizes[1] * 0.001, 0, 0);
    }
    assert_int_equal(batch_size_manager_next(bsm)[0], 32);
    batch_size_manager_destroy(bsm);
}

UNIT_TEST(what_cannot_be_is_refused)
{
    static const uint32_t max[] = { 5, 6 };
    static const struct {
        struct batch_size_config config;
        const char *error;
    } bad[] = {
        { { .n_workers = 2, .batch = 1 },
          "batch: 1 samples for 2 workers; expected at least one for each" },
        { { .n_workers = 2, .batch = 12, .max = max },
          "batch: 12 samples, the workers have memory for 11" },
        { { .n_workers = 2, .batch = 12, .predictor = "oracle" },
          "predictor: there is no \"oracle\"" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct batch_size_manager *bsm;
        char *error = batch_size_manager_create(&bad[i].config, &bsm);

        assert_is(error, bad[i].error);
        assert_null(bsm);
    }
    batch_size_manager_destroy(NULL);
}

UNIT_TEST(parts_are_by_largest_remainder)
{
    static const uint32_t wide[] = { 1000, 1000, 1000 };
    static const uint32_t tight[] = { 1000, 2, 1000 };
    double scratch[3];
    uint32_t parts[3];

    apportion(3, 10, (double []) { 1, 2, 4 }, wide, scratch, parts);
    assert_true(parts[0] == 1 && parts[1] == 3 && parts[2] == 6);
    apportion(3, 7, (double []) { 1, 2, 4 }, wide, scratch, parts);
    assert_true(parts[0] == 1 && parts[1] == 2 && parts[2] == 4);
    apportion(3, 12, (double []) { 1, 2, 4 }, tight, scratch, parts);
    assert_true(parts[0] == 2 && parts[1] == 2 && parts[2] == 8);
    apportion(3, 3, (double []) { 1e-9, 1, 1e9 }, wide, scratch, parts);
    assert_true(parts[0] == 1 && parts[1] == 1 && parts[2] == 1);
    apportion(3, 2002, (double []) { 1e-9, 1, 1e9 }, tight, scratch, parts);
    assert_true(parts[0] == 1000 && parts[1] == 2 && parts[2] == 1000);
}

/* Any split of a batch makes the update of one worker with all of it. */
UNIT_TEST(shares_make_the_whole_batchs_gradient)
{
    enum { N = 64, BATCH = 100 };
    static float samples[BATCH][N];
    struct seeded rs;

    seeded_init(&rs, 1, 0);
    for (int s = 0; s < BATCH; s++) {
        for (int i = 0; i < N; i++) {
            samples[s][i] = seeded_normal(&rs);
        }
    }
    for (int split = 0; split < 50; split++) {
        uint32_t first = 1 + seeded_below(&rs, BATCH - 1);
        float sum[N] = { 0 };

        for (int w = 0; w < 2; w++) {
            uint32_t begin = w ? first : 0, end = w ? BATCH : first;
            float mean[N] = { 0 };

            for (uint32_t s = begin; s < end; s++) {
                for (int i = 0; i < N; i++) {
                    mean[i] += samples[s][i] / (end - begin);
                }
            }
            batch_size_aggregate(N, (end - begin) / (double) BATCH, mean,
                                 sum);
        }
        for (int i = 0; i < N; i++) {
            double whole = 0;

            for (int s = 0; s < BATCH; s++) {
                whole += samples[s][i] / (double) BATCH;
            }
            assert_true(fabs(sum[i] - whole) < 2e-6);
        }
    }
}
