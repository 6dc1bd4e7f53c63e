/* SPDX-License-Identifier: Apache-2.0 */

/* Measures how soon batch sizes from measured times (BATCH_SIZE_GPU) are
 * balanced.
 *
 * Uses 100 random clusters for each number of workers and each jitter: speeds
 * that differ by up to e^2, a constant time of small batches of up to 20 ms, 0
 * to 10 ms of launch and 10 ms of communication in iterations of about 200 ms.
 * From iteration 150 on, the communication of one worker takes 60 ms more.  A
 * cluster is balanced if slowest / fastest is below 1.1, without the jitter of
 * the iteration itself.  Figures are [median, worst] numbers of iterations
 * until a cluster stays balanced. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "trainer/balance/batch-size-manager.h"
#include "trainer/data/seeded.h"

#define MAX_JOB_PROCESSES 32
#define N_CLUSTERS 100
#define N_ITERATIONS 300
#define CUT 150
#define CUT_S 0.060
#define BALANCED 1.1
#define NOMINAL_S 0.050         /* Iteration time that the cost is compared
                                 * with. */

struct cluster {
    int n;
    double jitter;
    double speed[MAX_JOB_PROCESSES], flat_s[MAX_JOB_PROCESSES];
    double overhead_s[MAX_JOB_PROCESSES];     /* Launch and communication. */
    struct seeded rs;
    struct batch_size_manager *bsm;
    double manager_s;           /* Total time of the manager. */
};

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void
make_cluster(int n, double jitter, uint64_t seed, struct cluster *c)
{
    double speed = 0;
    char *error;

    *c = (struct cluster) { .n = n, .jitter = jitter };
    seeded_init(&c->rs, seed, 0);
    for (int i = 0; i < n; i++) {
        c->speed[i] = 400 * exp(2 * seeded_uniform(&c->rs));
        c->flat_s[i] = 0.020 * seeded_uniform(&c->rs);
        c->overhead_s[i] = 0.010 + 0.010 * seeded_uniform(&c->rs);
        speed += c->speed[i];
    }
    error = batch_size_manager_create(&(struct batch_size_config) {
        .mode = BATCH_SIZE_GPU, .n_workers = n, .batch = 0.2 * speed,
    }, &c->bsm);
    if (error) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

/* Runs one iteration.  Returns slowest / fastest. */
static double
iterate(struct cluster *c)
{
    const uint32_t *sizes = batch_size_manager_next(c->bsm);
    double seconds[MAX_JOB_PROCESSES], low = INFINITY, high = 0, began;

    for (int i = 0; i < c->n; i++) {
        seconds[i] = c->overhead_s[i]
                     + fmax(c->flat_s[i], sizes[i] / c->speed[i]);
        low = fmin(low, seconds[i]);
        high = fmax(high, seconds[i]);
        seconds[i] *= exp(c->jitter * seeded_normal(&c->rs));
    }
    began = now();
    for (int i = 0; i < c->n; i++) {
        batch_size_manager_report(c->bsm, i, sizes[i], seconds[i], 0, 0);
    }
    batch_size_manager_next(c->bsm);
    c->manager_s += now() - began;
    return high / low;
}

/* Stores the numbers of iterations until the cluster stays balanced, from the
 * start and after the cut. */
static void
run(struct cluster *c, int *first, int *after)
{
    *first = *after = 0;
    for (int i = 0; i < N_ITERATIONS; i++) {
        if (i == CUT) {
            c->overhead_s[0] += CUT_S;
        }
        if (iterate(c) >= BALANCED) {
            if (i < CUT) {
                *first = i + 1;
            } else {
                *after = i + 1 - CUT;
            }
        }
    }
}

static int
compare(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

static void
print_case(int n, double jitter, const char *after_case)
{
    int first[N_CLUSTERS], after[N_CLUSTERS];
    double manager_s = 0;

    for (int i = 0; i < N_CLUSTERS; i++) {
        struct cluster c;

        make_cluster(n, jitter, i + 1, &c);
        run(&c, &first[i], &after[i]);
        manager_s += c.manager_s;
        batch_size_manager_destroy(c.bsm);
    }
    qsort(first, N_CLUSTERS, sizeof *first, compare);
    qsort(after, N_CLUSTERS, sizeof *after, compare);
    printf("\"%d_workers_jitter_%g\": {\"converge\": [%d, %d], "
           "\"recover\": [%d, %d], \"overhead_percent\": %.4f}%s", n, jitter,
           first[N_CLUSTERS / 2], first[N_CLUSTERS - 1],
           after[N_CLUSTERS / 2], after[N_CLUSTERS - 1],
           100 * manager_s / N_CLUSTERS / N_ITERATIONS / NOMINAL_S,
           after_case);
}

int
main(void)
{
    printf("{\"bench\": \"batch-sizes\", \"figures\": {");
    for (int n = 4; n <= MAX_JOB_PROCESSES; n *= 2) {
        print_case(n, 0, ", ");
        print_case(n, 0.02, ", ");
        print_case(n, 0.05, n < MAX_JOB_PROCESSES ? ", " : "");
    }
    printf("}, \"baseline\": {}}\n");
    return 0;
}
