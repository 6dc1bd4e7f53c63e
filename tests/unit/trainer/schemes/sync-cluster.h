/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SYNC_CLUSTER_H
#define SYNC_CLUSTER_H 1

/* A synchronisation scheme in virtual time: no sockets, no clocks.  Messages
 * and weights take no time.  A cluster of workers with given durations
 * minimises (w - 1)^2 / 2, or trains a job.
 *
 *    cluster_init(&c, "ssp,staleness=3", N, speeds);
 *    cluster_run(&c, 100);
 *    ...look at c.now, c.n_steps...
 *    cluster_uninit(&c); */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/schemes/shard.h"
#include "trainer/schemes/steal.h"
#include "trainer/schemes/sync.h"

#define N 8 /* Workers of tests. */
#define BATCH 512
#define CLUSTER_MAX 64

/* As machines of 8, 16 and 4 cores, in samples a second. */
extern const double mixed[N];

struct cluster;

struct cluster_job {
    size_t n_parameters;
    uint64_t batch;
    const char *optimiser;
    float rate, momentum;
    bool silent; /* Workers report no times. */
    void *aux;

    /* Adds the gradient of 'n' samples from number 'first', times 'n', and
     * their losses. */
    void (*gradient)(struct cluster *, const float *weights, uint64_t first,
                     uint32_t n, float *sum, double *loss);
    /* Returns the seconds that 'n' samples take a worker now. */
    double (*seconds)(struct cluster *, int worker, uint32_t n);
    /* Optional: completes a report. */
    void (*report)(struct cluster *, int worker, struct sync_message *);
};

struct cluster {
    const struct cluster_job *job;
    struct backend *b;
    struct sync_spec spec;
    struct sync *sync;
    int n_workers;
    const double *speeds;
    uint32_t role[CLUSTER_MAX], n_pieces[CLUSTER_MAX]; /* As the scheme */
    struct shard share[CLUSTER_MAX]; /* has sent to each worker. */
    float *w[CLUSTER_MAX];           /* Weights that each computes with. */
    double began_at[CLUSTER_MAX];    /* When its step began, */
    double free_at[CLUSTER_MAX];     /* and its piece ends; < 0: it waits. */
    struct steal steal[CLUSTER_MAX];
    float *sum[CLUSTER_MAX]; /* Of the step's gradients, of 'n' samples. */
    uint32_t n[CLUSTER_MAX];
    double loss[CLUSTER_MAX];
    uint64_t iteration[CLUSTER_MAX];
    uint64_t n_steps[CLUSTER_MAX];
    uint32_t owed[CLUSTER_MAX]; /* Weights that each is to get. */
    bool rests[CLUSTER_MAX];    /* Has nothing to do. */
    bool skips[CLUSTER_MAX];    /* Its step would be dropped. */
    uint64_t most_ahead;        /* Iterations, of the slowest worker. */
    uint64_t n_pushed, began[CLUSTER_MAX]; /* All gradients so far, now and
                                            * when each step began. */
    uint64_t oldest;            /* A gradient's age, in gradients. */
    uint64_t n_samples;         /* Of all gradients. */
    double now;
};

/* 'speeds' are samples a second, and may change between runs.  The job stays
 * the caller's. */
void cluster_init(struct cluster *, const char *scheme, int n_workers,
                  const double *speeds);
void cluster_init_job(struct cluster *, const struct cluster_job *,
                      const char *scheme, int n_workers);
void cluster_uninit(struct cluster *);

/* Starts all workers that may start. */
void cluster_start(struct cluster *);

/* Then goes on to the end of the next piece.  Somebody is always at work: no
 * scheme has all wait for each other. */
void cluster_step(struct cluster *);

/* Goes on until worker 0 has done 'n' steps and begins another. */
void cluster_run(struct cluster *, uint64_t n);

void assert_near(double x, double expected);

#endif /* tests/unit/trainer/schemes/sync-cluster.h */
