/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/miss-filter.h"

#include <stdlib.h>

#include "agent/identify/flow-table.h"
#include "util.h"

enum miss_state {
    MISS_QUEUED,                /* In 'fresh' or 'again'. */
    MISS_LATER,                 /* In 'later'. */
    MISS_QUIET,                 /* Ignored until 'until', then only if
                                 * reported. */
};

struct miss {
    struct hmap_node node;      /* In struct miss_filter's 'misses'. */
    struct shim_flow_key key;
    enum miss_state state;
    struct ovs_list queue;      /* In 'fresh' or 'again', while queued. */
    struct heap_node heap;      /* In 'later', by 'until'. */
    long long since;            /* Time of the report. */
    long long until;
    int n_tries;                /* Consecutive lookups without a socket. */
};

void
miss_filter_init(struct miss_filter *mf)
{
    hmap_init(&mf->misses);
    ovs_list_init(&mf->fresh);
    ovs_list_init(&mf->again);
    heap_init(&mf->later);
    mf->looks = MISS_LOOKUPS_MAX;
    mf->filled = LLONG_MIN;
}

static struct miss *
find(const struct miss_filter *mf, const struct shim_flow_key *key)
{
    struct miss *miss;

    HMAP_FOR_EACH_WITH_HASH (miss, node, flow_key_hash(key), &mf->misses) {
        if (flow_key_equal(&miss->key, key)) {
            return miss;
        }
    }
    return NULL;
}

/* Removes 'miss' from its queue or heap. */
static void
unlink_miss(struct miss_filter *mf, struct miss *miss)
{
    if (miss->state == MISS_QUEUED) {
        ovs_list_remove(&miss->queue);
    } else if (miss->state == MISS_LATER) {
        heap_remove(&mf->later, &miss->heap);
    }
    miss->state = MISS_QUIET;
}

static void
remove_miss(struct miss_filter *mf, struct miss *miss)
{
    unlink_miss(mf, miss);
    hmap_remove(&mf->misses, &miss->node);
    free(miss);
}

/* Forgets all flows. */
void
miss_filter_clear(struct miss_filter *mf)
{
    struct miss *miss;

    HMAP_FOR_EACH_SAFE (miss, node, &mf->misses) {
        remove_miss(mf, miss);
    }
}

void
miss_filter_uninit(struct miss_filter *mf)
{
    miss_filter_clear(mf);
    hmap_destroy(&mf->misses);
    heap_destroy(&mf->later);
}

static struct miss *
add(struct miss_filter *mf, const struct shim_flow_key *key)
{
    struct miss *miss;

    if (hmap_count(&mf->misses) >= MISS_FILTER_MAX) {
        miss_filter_clear(mf);
    }
    miss = xzalloc(sizeof *miss);
    miss->key = *key;
    miss->state = MISS_QUIET;
    hmap_insert(&mf->misses, &miss->node, flow_key_hash(key));
    return miss;
}

static void
enqueue(struct miss *miss, struct ovs_list *queue, long long now)
{
    miss->state = MISS_QUEUED;
    miss->since = now;
    ovs_list_push_back(queue, &miss->queue);
}

/* Reports that the shim does not know 'key'. */
void
miss_filter_report(struct miss_filter *mf, const struct shim_flow_key *key,
                   long long now)
{
    struct miss *miss = find(mf, key);

    if (!miss) {
        enqueue(add(mf, key), &mf->fresh, now);
    } else if (miss->state == MISS_QUIET && now >= miss->until) {
        enqueue(miss, &mf->again, now);
    }
}

/* Adds the lookups that are allowed since the last call. */
static void
fill(struct miss_filter *mf, long long now)
{
    if (now > mf->filled) {
        double ms = mf->filled == LLONG_MIN ? 0 : now - mf->filled;

        mf->looks =
            MIN(mf->looks + ms * MISS_LOOKUPS_PER_MS, MISS_LOOKUPS_MAX);
        mf->filled = now;
    }
}

static struct miss *
first_later(const struct miss_filter *mf)
{
    return heap_is_empty(&mf->later) ? NULL
           : CONTAINER_OF(heap_max(&mf->later), struct miss, heap);
}

/* Returns the time at which miss_filter_next() has a flow, LLONG_MAX if none
 * waits. */
long long
miss_filter_due(const struct miss_filter *mf)
{
    const struct miss *later = first_later(mf);

    if (!ovs_list_is_empty(&mf->fresh) || !ovs_list_is_empty(&mf->again)) {
        return mf->looks >= 1 ? LLONG_MIN : mf->filled + 1;
    }
    return later ? later->until : LLONG_MAX;
}

/* Stores a flow to look up in '*key', and the time of its report in '*since'.
 * Returns false if there is none now. */
bool
miss_filter_next(struct miss_filter *mf, long long now,
                 struct shim_flow_key *key, long long *since)
{
    struct ovs_list *queue;
    struct miss *miss;

    fill(mf, now);
    while ((miss = first_later(mf)) && miss->until <= now) {
        unlink_miss(mf, miss);
        miss->state = MISS_QUEUED;
        ovs_list_push_back(&mf->fresh, &miss->queue);
    }
    if (mf->looks < 1) {
        return false;
    }
    queue = ovs_list_is_empty(&mf->fresh) ? &mf->again : &mf->fresh;
    if (ovs_list_is_empty(queue)) {
        return false;
    }
    miss = CONTAINER_OF(ovs_list_front(queue), struct miss, queue);
    mf->looks--;
    unlink_miss(mf, miss);
    miss->until = now;
    *key = miss->key;
    *since = miss->since;
    return true;
}

/* Removes 'key': the shim knows it now. */
void
miss_filter_resolve(struct miss_filter *mf, const struct shim_flow_key *key)
{
    struct miss *miss = find(mf, key);

    if (miss) {
        remove_miss(mf, miss);
    }
}

/* Ignores 'key' until 'until'. */
void
miss_filter_quiet(struct miss_filter *mf, const struct shim_flow_key *key,
                  long long until)
{
    struct miss *miss = find(mf, key);

    if (miss) {
        unlink_miss(mf, miss);
        miss->until = until;
        miss->n_tries = 0;
    }
}

/* Schedules a lookup of 'key' at 'when'. */
void
miss_filter_defer(struct miss_filter *mf, const struct shim_flow_key *key,
                  long long when)
{
    struct miss *miss = find(mf, key);

    if (miss) {
        unlink_miss(mf, miss);
        miss->state = MISS_LATER;
        miss->until = when;
        heap_insert(&mf->later, &miss->heap, LLONG_MAX - when);
    }
}

/* Schedules a lookup of 'key' after a delay that grows with each retry; after
 * MISS_MAX_TRIES, only if it is reported again. */
void
miss_filter_retry(struct miss_filter *mf, const struct shim_flow_key *key,
                  long long now)
{
    struct miss *miss = find(mf, key);

    if (!miss) {
        return;
    }
    if (++miss->n_tries > MISS_MAX_TRIES) {
        unlink_miss(mf, miss);
        miss->until = now + MISS_MAX_RETRY_MS;
    } else {
        int gap = MISS_RETRY_MS << (miss->n_tries - 1);

        miss_filter_defer(mf, key, now + MIN(gap, MISS_MAX_RETRY_MS));
    }
}
