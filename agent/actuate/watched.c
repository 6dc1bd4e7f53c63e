/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/watched.h"

#include <stdlib.h>

#include "util.h"

#define FEW_JOBS 50             /* Up to here, each call requests all jobs. */
#define INTERVAL_MS 900         /* Between requests of a job, if more. */

struct watched_job {
    uint64_t next;              /* First bin that has not been received. */
    long long requested;        /* time_msec(), 0 if never. */
};

void
watched_init(struct watched *w)
{
    shash_init(&w->jobs);
}

void
watched_uninit(struct watched *w)
{
    shash_destroy_free_data(&w->jobs);
}

void
watched_set(struct watched *w, const char *job, bool watch)
{
    if (!watch) {
        free(shash_find_and_delete(&w->jobs, job));
    } else if (!shash_find(&w->jobs, job)) {
        shash_add(&w->jobs, job, xzalloc(sizeof(struct watched_job)));
    }
}

void
watched_request(struct watched *w, long long now,
            void (*request)(const char *job, uint64_t since, void *aux),
            void *aux)
{
    bool few = shash_count(&w->jobs) <= FEW_JOBS;
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &w->jobs) {
        struct watched_job *job = node->data;

        if (few || !job->requested || now >= job->requested + INTERVAL_MS) {
            job->requested = now;
            request(node->name, job->next, aux);
        }
    }
}

bool
watched_received(struct watched *w, const char *job, uint64_t next)
{
    struct watched_job *wj = shash_find_data(&w->jobs, job);

    if (wj) {
        wj->next = next;
    }
    return wj != NULL;
}
