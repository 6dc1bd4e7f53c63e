/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SYNC_CLUSTER_H
#define SYNC_CLUSTER_H 1

/* A synchronisation scheme in virtual time: no sockets, no clocks.  A cluster
 * of workers with given durations minimises (w - 1)^2 / 2.
 *
 *    cluster_init(&c, "ssp,staleness=3", N, speeds);
 *    cluster_run(&c, 100);
 *    ...look at c.now, c.n_steps...
 *    cluster_uninit(&c); */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/schemes/sync.h"

#define N 8                     /* Workers. */
#define BATCH 512

/* As machines of 8, 16 and 4 cores, in samples a second. */
extern const double mixed[N];

struct cluster {
    struct backend *b;
    struct sync_spec spec;
    struct sync *sync;
    int n_workers;
    const double *speeds;
    uint32_t role[N], n[N];     /* What the scheme has sent to each worker. */
    double w[N];                /* Weights that each has, */
    double w_used[N];           /* and computes with. */
    double free_at[N];          /* When its step ends; < 0: it waits. */
    uint64_t iteration[N];
    uint64_t n_steps[N];
    uint32_t owed[N];           /* Weights that each is to get. */
    bool rests[N];              /* Has nothing to do. */
    bool skips[N];              /* Its step would be dropped. */
    uint64_t most_ahead;        /* Iterations, of the slowest worker. */
    uint64_t n_pushed, began[N];        /* All gradients so far, now and when
                                         * each worker's step began. */
    uint64_t oldest;            /* A gradient's age, in gradients. */
    double now;
};

/* 'speeds' are samples a second, and may change between runs. */
void cluster_init(struct cluster *, const char *scheme, int n_workers,
                  const double *speeds);
void cluster_uninit(struct cluster *);

/* Starts all workers that may start. */
void cluster_start(struct cluster *);

/* Goes on until worker 0 has done 'n' steps and begins another.  Somebody is
 * always at work: no scheme has all wait for each other. */
void cluster_run(struct cluster *, uint64_t n);

void assert_near(double x, double expected);

#endif /* tests/unit/trainer/schemes/sync-cluster.h */
