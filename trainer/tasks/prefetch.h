/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PREFETCH_H
#define PREFETCH_H 1

/* Prefetching: localizes the keys of later samples during training.
 *
 * A worker that knows its next samples, including their random negative
 * samples, localizes their keys while it trains on earlier ones.  Keys are
 * requested many at a time, and only those that are not local.
 *
 * Samples go through a queue.  Their content is up to the user, as long as it
 * consists of keys:
 *
 *    p = prefetch_create(worker, n_samples, max_keys);
 *    for (;;) {
 *        while (...more samples... && (space = prefetch_reserve(p))) {
 *            ...write the sample's keys to 'space'...
 *            prefetch_add(p, n, n);
 *        }
 *        n = prefetch_next(p, &keys);           // 0: no more.
 *        ...train; the keys stay until the next prefetch_reserve()...
 *    }
 *    prefetch_destroy(p);
 *
 * Keys that have moved to another node meanwhile are pulled and pushed as any.
 *
 * Belongs to the thread of one worker. */

#include <stddef.h>
#include <stdint.h>

struct key_worker;
struct prefetch;

/* Creates a queue of 'n_samples' samples, at least 1, of at most 'max_keys'
 * keys. */
struct prefetch *prefetch_create(struct key_worker *, size_t n_samples,
                                 size_t max_keys);
void prefetch_destroy(struct prefetch *);

/* Returns the memory for the keys of the next sample, NULL if the queue is
 * full. */
uint64_t *prefetch_reserve(struct prefetch *);

/* Adds the sample of 'n' keys; the first 'n_wanted' are localized. */
void prefetch_add(struct prefetch *, size_t n, size_t n_wanted);

/* Returns the number of keys of the oldest sample and stores them in its
 * argument; 0 without a sample. */
size_t prefetch_next(struct prefetch *, const uint64_t **keys);

#endif /* trainer/tasks/prefetch.h */
