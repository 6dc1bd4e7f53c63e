/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_TASK_POOL_H
#define BASE_TASK_POOL_H 1

/* Runs independent tasks on all processors that this process may use.
 *
 *    error = task_pool_run(&(struct task_pool) {
 *        .n = 100, .run = simulate_seed, .aux = outcomes,
 *        .label = "main.json", .noun = "seed" });
 *
 * Each thread takes the next task until none is left; the caller is one of the
 * threads, and the others end before task_pool_run() returns.  A task that
 * writes only its own outcome needs no lock, and the outcomes do not depend on
 * the number of threads.  After an interrupt (base/interrupt.h) no other task
 * begins. */

#include <stddef.h>

struct task_pool {
    size_t n;         /* Tasks 0 to 'n' - 1. */
    size_t n_threads; /* 0 for one on each processor. */

    /* Runs a task on any thread.  Returns NULL or a malloc()'d message, after
     * which no other task begins. */
    char *(*run)(void *aux, size_t task);
    void *aux;

    const char *label, *noun; /* Of the progress bar, see progress-bar.h. */
};

/* Returns NULL, or the malloc()'d message of the first task, by number, that
 * failed.  If the system refuses threads, there are fewer. */
char *task_pool_run(const struct task_pool *);

#endif /* base/task-pool.h */
