/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ITERATIONS_H
#define ITERATIONS_H 1

/* The iterations of a job that tells nothing, counted from its traffic.
 *
 *
 * Motivation
 * ==========
 *
 * Most frameworks do not tell how far a job is, but each of its iterations
 * moves the same bytes (pauses.h).  Which bytes show it depends: the peers of
 * a ring wait in turns for what they send and for what they get, and only when
 * both directions are silent do they compute; a worker that pushes and then
 * pulls pauses twice in that sense and only once in each direction.  So what
 * is sent, what is received and their sum are looked at apart, and of those
 * that are well proved the one that counts the fewest is right: what the
 * others take for iterations are parts of one.
 *
 *
 * Usage
 * =====
 *
 *    it = iterations_create();
 *    iterations_add_bins(it, first, bins, n, time_msec());
 *    n = iterations_count(it);           // -1: nothing is known.
 *    iterations_destroy(it);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stddef.h>
#include <stdint.h>

struct iterations;
struct shim_bin;

struct iterations *iterations_create(void);
void iterations_destroy(struct iterations *);

/* Takes bins number 'first' and so on; those that it has are passed over,
 * those that are missing were empty. */
void iterations_add_bins(struct iterations *, uint64_t first,
                     const struct shim_bin *bins, size_t n, long long now);

/* Iterations done since the job began. */
int64_t iterations_count(const struct iterations *);

#endif /* agent/progress/iterations.h */
