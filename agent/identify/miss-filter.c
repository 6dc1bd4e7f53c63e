/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/miss-filter.h"

#include <stdlib.h>

#include "agent/identify/flow-table.h"
#include "util.h"

struct miss {
    struct hmap_node node;      /* In struct miss_filter's 'misses'. */
    struct shim_flow_key key;
    long long quiet_until;      /* Reports before are passed over. */
    int retry_ms;               /* Length of the next quiet time if again no
                                 * socket is found. */
    bool waiting;               /* Wants a dump. */
};

void
miss_filter_init(struct miss_filter *mf)
{
    hmap_init(&mf->misses);
    mf->due = LLONG_MAX;
    mf->last = LLONG_MIN / 2;
    mf->gap_ms = MISS_MIN_GAP_MS;
}

static void
remove_miss(struct miss_filter *mf, struct miss *miss)
{
    hmap_remove(&mf->misses, &miss->node);
    free(miss);
}

static void
clear(struct miss_filter *mf)
{
    struct miss *miss;

    HMAP_FOR_EACH_SAFE (miss, node, &mf->misses) {
        remove_miss(mf, miss);
    }
}

void
miss_filter_uninit(struct miss_filter *mf)
{
    clear(mf);
    hmap_destroy(&mf->misses);
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

/* Notes that the data plane does not know the flow with 'key'. */
void
miss_filter_report(struct miss_filter *mf, const struct shim_flow_key *key,
                   long long now)
{
    struct miss *miss = find(mf, key);

    if (!miss) {
        if (hmap_count(&mf->misses) >= MISS_FILTER_MAX) {
            clear(mf);
        }
        miss = xzalloc(sizeof *miss);
        miss->key = *key;
        miss->quiet_until = now;
        miss->retry_ms = MISS_RETRY_MS;
        hmap_insert(&mf->misses, &miss->node, flow_key_hash(key));
    }
    if (now >= miss->quiet_until) {
        miss->waiting = true;
        mf->due = MIN(mf->due, MAX(now + MISS_COALESCE_MS,
                                   mf->last + mf->gap_ms));
    }
}

/* Returns the time of the next dump, LLONG_MAX if none is wanted. */
long long
miss_filter_due(const struct miss_filter *mf)
{
    return mf->due;
}

/* Begins a dump, whatever the reason for it. */
void
miss_filter_begin(struct miss_filter *mf)
{
    mf->due = LLONG_MAX;
}

/* Notes that the dump has a socket with 'key', and that a dump before 'until'
 * would not tell more of it. */
void
miss_filter_quiet(struct miss_filter *mf, const struct shim_flow_key *key,
                  long long until)
{
    struct miss *miss = find(mf, key);

    if (miss) {
        miss->waiting = false;
        miss->quiet_until = until;
    }
}

/* Notes that the dump has a socket with 'key' that is a job's. */
void
miss_filter_resolve(struct miss_filter *mf, const struct shim_flow_key *key)
{
    struct miss *miss = find(mf, key);

    if (miss) {
        remove_miss(mf, miss);
    }
}

/* Ends the dump, which found 'n_new' flows of jobs.  What still waits has no
 * socket, or none yet. */
void
miss_filter_end(struct miss_filter *mf, size_t n_new, long long now)
{
    bool asked = false;
    struct miss *miss;

    HMAP_FOR_EACH_SAFE (miss, node, &mf->misses) {
        if (miss->waiting) {
            asked = true;
            miss->waiting = false;
            miss->quiet_until = now + miss->retry_ms;
            miss->retry_ms = MIN(miss->retry_ms * 2, MISS_MAX_RETRY_MS);
        } else if (now > miss->quiet_until + MISS_NOBODYS_MS) {
            remove_miss(mf, miss);
        }
    }
    if (n_new) {
        mf->gap_ms = MISS_MIN_GAP_MS;
    } else if (asked) {
        mf->gap_ms = MIN(mf->gap_ms * 2, MISS_MAX_GAP_MS);
    }
    mf->last = now;
}
