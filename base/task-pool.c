/* SPDX-License-Identifier: Apache-2.0 */

#include "base/task-pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress-bar.h"

struct run {
    const struct task_pool *pool;
    pthread_mutex_t mutex; /* Protects the members below. */
    struct progress_bar bar;
    size_t n_begun, n_ended; /* Tasks. */
    char *error;             /* Of the first task that failed, or NULL... */
    size_t failed;           /* ...and its number. */
};

static void *
work(void *run_)
{
    struct run *run = run_;

    pthread_mutex_lock(&run->mutex);
    while (run->n_begun < run->pool->n && !run->error && !interrupt_caught()) {
        size_t task = run->n_begun++;
        char *error;

        pthread_mutex_unlock(&run->mutex);
        error = run->pool->run(run->pool->aux, task);
        pthread_mutex_lock(&run->mutex);
        progress_bar_update(&run->bar, ++run->n_ended, run->pool->n);
        if (error && (!run->error || task < run->failed)) {
            free(run->error);
            run->error = error;
            run->failed = task;
        } else {
            free(error);
        }
    }
    pthread_mutex_unlock(&run->mutex);
    return NULL;
}

static size_t
n_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

char *
task_pool_run(const struct task_pool *pool)
{
    struct run run = { .pool = pool };
    size_t n = pool->n_threads ? pool->n_threads : n_processors();
    pthread_t *threads = allocate(n, sizeof *threads);
    size_t n_created = 0;

    pthread_mutex_init(&run.mutex, NULL);
    progress_bar_begin(&run.bar, pool->label, pool->noun);
    while (n_created + 1 < n && n_created + 1 < pool->n
           && !pthread_create(&threads[n_created], NULL, work, &run)) {
        n_created++;
    }
    work(&run);
    for (size_t i = 0; i < n_created; i++) {
        pthread_join(threads[i], NULL);
    }
    progress_bar_end(&run.bar);
    pthread_mutex_destroy(&run.mutex);
    free(threads);
    return run.error;
}
