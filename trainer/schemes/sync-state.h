/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SYNC_STATE_H
#define SYNC_STATE_H 1

/* State that all schemes have, and functions that they share.  Included by
 * schemes only. */

#include "trainer/schemes/sync.h"

struct sync_worker {
    float *gradient;            /* The inbox: allocate_pages(). */
    uint64_t n_pushed;          /* Iterations pushed; under synchronous schemes
                                 * also the next one. */
    uint64_t next;              /* Next iteration under asynchronous schemes;
                                 * less than 'n_pushed' while the worker
                                 * repeats iterations after a restart. */
    bool resumed;               /* Its next push sets 'next'. */
    uint32_t n_samples;         /* Of the last push, or part of one. */
    size_t from;                /* First parameter of its next push that has
                                 * arrived; all later ones have too. */
    float loss;                 /* Mean loss of the last push. */
};

/* A gradient in an update, and its weight. */
struct sync_term {
    float *gradient;
    float share;
};

struct sync_post {
    int worker;
    struct sync_message message;
};

struct sync {
    const struct sync_class *class;
    struct sync_config config;
    uint64_t iteration;         /* Of the weights. */
    int n_arrived;              /* Workers that have pushed 'iteration'. */
    float loss;                 /* Mean loss of the iteration before. */
    size_t fresh;               /* Weights from here on are the next ones. */
    float *weights;
    float *sum;                 /* Of gradients, for one block of an update. */
    struct sync_term *terms;    /* Of the next update, 'n_workers' at most. */
    int n_terms;
    float *state[OPTIMISER_MAX_STATES];
    struct sync_worker *workers;
    uint64_t *counts;           /* 'n_pushed' of all, in a checkpoint. */
    float *statistics;          /* Of the model. */

    struct sync_post *posts;    /* A ring of messages to send. */
    size_t max_posts, first_post, n_posts;

    void *own;                  /* Data of the scheme. */
};

/* Queues a message to 'worker', or to all, unless the scheme follows.  At most
 * two for each worker may be queued. */
void sync_state_post(struct sync *, int worker, const struct sync_message *);
void sync_state_post_all(struct sync *, const struct sync_message *);

/* sync_state_add(): adds the inbox 'gradient', times 'share', to the next
 * update.  sync_state_update(): updates 'n' weights from 'first' on by the
 * sum.  It is made in blocks that fit into a processor's cache.  That range of
 * the inboxes becomes undefined: of a large model its memory is given back,
 * because otherwise a server would need as much memory for the gradients of
 * each worker as for the weights. */
void sync_state_add(struct sync *, float *gradient, float share);
void sync_state_update(struct sync *, size_t first, size_t n);

/* Updates all weights by one gradient. */
void sync_state_apply(struct sync *, float *gradient, float share);

/* Forgets which parts of the next gradients have arrived. */
void sync_state_await_parts(struct sync *);

/* Mean of the workers' last losses, weighted by samples. */
float sync_state_mean_loss(const struct sync *);

/* Functions of bsp, for the schemes that only divide batches differently. */
char *sync_bsp_push(struct sync *, int worker, uint64_t iteration,
                    uint32_t n_samples, float loss);
bool sync_bsp_ready(const struct sync *, int worker, uint64_t *iteration,
                    float *loss);

/* Makes the next weights from the gradients of the workers that have pushed
 * 'iteration', weighted by samples.  They are added by rank and not by
 * arrival, so that two runs agree to the bit. */
void sync_bsp_update(struct sync *);

/* Message about a push of another iteration than 'allowed'. */
char *sync_state_refuse(uint64_t iteration, uint64_t allowed);

#endif /* trainer/schemes/sync-state.h */
