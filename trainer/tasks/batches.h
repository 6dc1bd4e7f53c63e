/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BATCHES_H
#define BATCHES_H 1

/* Pulls and pushes the vectors of several samples at once.
 *
 * A store with keys that stay replies to each request after the time of two
 * messages, even if it is about few keys.  A worker that trains on one sample
 * after the other mostly waits for them.  The strongest use of such a store is
 * to pull the vectors of many samples in one request, to request those of the
 * next batch before this one is trained, and to push all changes of a batch in
 * one message.  Where keys move, batches save copies of vectors that several
 * samples use.  Within a batch each sample sees the changes of those before
 * it; it does not see the changes that this worker made in the batch before,
 * nor what other workers did meanwhile.
 *
 * With a size of 1 there is no request ahead: each sample is pulled, trained
 * and pushed before the next one.
 *
 *    batches = batches_create(worker, &size);
 *    while (!(error = batches_train(batches, &ops, aux, &n)) && n) {
 *        ...n samples have been trained...
 *    }
 *    batches_drop(batches);                    // Requests without a reader.
 *    batches_destroy(batches);
 *
 * Belongs to the thread of one worker. */

#include <stdbool.h>
#include <stddef.h>

struct batches;
struct gather;
struct key_worker;

struct batches_size {
    size_t n;                   /* Samples of a batch, at least 1. */
    size_t n_places;            /* Indices that a sample has. */
    size_t keys, values;        /* Maximum for a sample, */
    size_t all_keys, all_values;        /* and all samples together. */
};

struct batches_ops {
    /* Adds the vectors of the next sample with gather_add(), and stores the
     * indices that step() needs.  Returns false if there is no more. */
    bool (*add)(void *aux, struct gather *, size_t places[]);

    /* Makes a step on a sample: adds to gather_gradients(), and calls
     * gather_change() for each of its vectors. */
    void (*step)(void *aux, struct gather *, const size_t places[]);
};

struct batches *batches_create(struct key_worker *,
                               const struct batches_size *);
void batches_destroy(struct batches *);

/* Trains the next batch, and stores the number of its samples: 0 if there is
 * no more.  Returns NULL or a message. */
char *batches_train(struct batches *, const struct batches_ops *, void *aux,
                    size_t *n);

/* Forgets the batch that was requested in advance, if there is one. */
void batches_drop(struct batches *);

#endif /* trainer/tasks/batches.h */
