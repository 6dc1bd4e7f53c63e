/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SYNC_STATE_H
#define SYNC_STATE_H 1

/* What every scheme keeps: its vectors, where each worker is, and messages
 * that wait to be taken.  Between the schemes only. */

#include "trainer/schemes/sync.h"

struct sync_worker {
    float *gradient;            /* The inbox. */
    uint64_t n_pushed;          /* Iterations; what it waits for is this, */
    uint64_t next;              /* but under the schemes that wait for nobody
                                 * this: less if it does again what counts. */
    bool resumed;               /* Its next push says 'next'. */
    uint32_t n_samples;         /* Of the last push, or part of one. */
    size_t from;                /* Of its next push all is there from this
                                 * parameter on. */
    float loss;
};

struct sync_post {
    int worker;
    struct sync_message message;
};

struct sync {
    struct sync_config config;
    uint64_t iteration;         /* Of the weights. */
    int n_arrived;              /* Workers that have pushed 'iteration'. */
    float loss;                 /* Of the iteration before. */
    size_t fresh;               /* Weights from here on are the next ones. */
    float *weights, *sum;
    float *state[OPTIMISER_MAX_STATES];
    struct sync_worker *workers;
    uint64_t *counts;           /* 'n_pushed' of all, in a checkpoint. */

    struct sync_post *posts;    /* A ring. */
    size_t max_posts, first_post, n_posts;

    void *own;                  /* The scheme's. */
};

/* 'own_size' bytes, zeroed, are the scheme's own. */
struct sync *sync_state_create(const struct sync_config *, size_t own_size);

/* Members of struct sync_class. */
void sync_state_destroy(struct sync *);
float *sync_state_weights(struct sync *);
float *sync_state_inbox(struct sync *, int worker);
int sync_state_spans(struct sync *, struct sync_span[SYNC_MAX_SPANS]);
int sync_state_count_spans(struct sync *, struct sync_span[SYNC_MAX_SPANS]);
uint64_t sync_state_least_pushed(const struct sync *);
bool sync_state_take(struct sync *, int *worker, struct sync_message *);

/* Has 'message' sent to 'worker', unless the scheme follows.  Not more than
 * two for each worker may wait. */
void sync_state_post(struct sync *, int worker, const struct sync_message *);

/* Updates the weights by the sum of shares of gradients that were added
 * since sync_state_clear(). */
void sync_state_clear(struct sync *);
void sync_state_add(struct sync *, const float *gradient, float share);
void sync_state_update(struct sync *);

/* Only of the 'n' parameters from 'first' on. */
void sync_state_clear_range(struct sync *, size_t first, size_t n);
void sync_state_add_range(struct sync *, const float *gradient, float share,
                          size_t first, size_t n);
void sync_state_update_range(struct sync *, size_t first, size_t n);

/* Nothing of the next iteration's gradients is there. */
void sync_state_await_parts(struct sync *);

/* After a checkpoint was read: nothing has come, nothing waits to be taken,
 * and all workers have pushed as often as 'iteration' says, or as what
 * sync_state_count_spans() has kept does. */
void sync_state_resume(struct sync *, uint64_t iteration);
void sync_state_resume_counts(struct sync *, uint64_t iteration);

/* The mean of what the workers said last. */
float sync_state_mean_loss(const struct sync *);

/* BSP's, for the schemes that only differ in how they divide batches. */
char *sync_bsp_push(struct sync *, int worker, uint64_t iteration,
                    uint32_t n_samples, float loss);
bool sync_bsp_ready(const struct sync *, int worker, uint64_t *iteration,
                    float *loss);
char *sync_bsp_part(struct sync *, int worker, uint64_t iteration,
                    uint32_t n_samples, size_t first);
size_t sync_bsp_fresh(const struct sync *, uint64_t *iteration);
uint64_t sync_bsp_iteration(const struct sync *);

/* The mean of 'gradients' whose worker has pushed 'iteration', weighted by
 * samples and added by rank, not by arrival, so that two runs agree to the
 * bit, makes the next weights. */
void sync_bsp_update(struct sync *);

/* What a push of another iteration gets. */
char *sync_state_refuse(uint64_t iteration, uint64_t allowed);

#endif /* trainer/schemes/sync-state.h */
