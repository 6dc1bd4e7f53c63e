/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEED_POOL_H
#define SEED_POOL_H 1

/* Runs independent tasks of a benchmark on all processors.
 *
 * There is a worker process for each processor.  The workers read the numbers
 * of tasks from one pipe and write outcomes to another. */

#include <stddef.h>

/* Runs run(0), run(1), ... run('n' - 1), each of which fills the outcome of
 * 'size' bytes at its argument, and stores the outcomes in 'outcomes'.  Shows
 * the number of completed tasks on a terminal.  Exits with a message if a
 * worker fails.  An outcome must be at most 4,000 bytes large, so that writing
 * it to a pipe is atomic. */
void seed_pool_run(int n, void (*run)(int task, void *outcome), size_t size,
                   void *outcomes);

#endif /* tests/bench/seed-pool.h */
