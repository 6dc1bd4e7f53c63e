/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/rank-keys.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "controller/model/cluster.h"
#include "util.h"

/* Between the keys of jobs that come together, if there is room. */
#define SPACING 65536

/* The different ranks, from first to last. */
struct ranks {
    uint32_t *keys; /* 0: none. */
    bool *kept;     /* Has its previous key. */
    size_t n;
};

/* Returns the number of different ranks.  Stores in 'keys' the previous key
 * of the first job of each. */
static size_t
collect(struct job *const *jobs, size_t n, uint32_t *keys)
{
    size_t n_ranks = 0;

    for (size_t i = 0; i < n; i++) {
        if (!i || jobs[i]->rank != jobs[i - 1]->rank) {
            keys[n_ranks++] = jobs[i]->key;
        }
    }
    return n_ranks;
}

/* Keeps the longest sequence of rising keys.  Returns its length. */
static size_t
keep_longest(struct ranks *r)
{
    size_t *ends = xcalloc(r->n + 1, sizeof *ends); /* By length, from 0. */
    size_t *before = xcalloc(r->n + 1, sizeof *before);
    size_t longest = 0;

    for (size_t i = 0; i < r->n; i++) {
        size_t low = 0, high = longest;

        if (!r->keys[i]) {
            continue;
        }
        while (low < high) {
            size_t middle = (low + high) / 2;

            if (r->keys[ends[middle]] < r->keys[i]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        before[i] = low ? ends[low - 1] : i;
        ends[low] = i;
        longest = MAX(longest, low + 1);
    }
    for (size_t left = longest, i = longest ? ends[longest - 1] : 0; left;
         left--, i = before[i]) {
        r->kept[i] = true;
    }
    free(ends);
    free(before);
    return longest;
}

/* Gives keys to the ranks from 'first' to before 'end', between those of their
 * neighbours.  Returns false if there is no room. */
static bool
fill(struct ranks *r, size_t first, size_t end)
{
    uint32_t low = first ? r->keys[first - 1] : 0;
    uint32_t high = end < r->n ? r->keys[end] : RANK_KEYS_END;
    uint32_t step = MIN((high - low) / (end - first + 1), SPACING);

    for (size_t i = first; i < end; i++) {
        r->keys[i] =
            (first ? low + step * (i - first + 1) : high - step * (end - i));
    }
    return step > 0;
}

/* Gives keys to the ranks that keep none.  Returns false if a gap has no
 * room. */
static bool
fill_gaps(struct ranks *r)
{
    for (size_t i = 0, end; i < r->n; i = end + 1) {
        end = i;
        while (end < r->n && !r->kept[end]) {
            end++;
        }
        if (end > i && !fill(r, i, end)) {
            return false;
        }
    }
    return true;
}

/* Gives all ranks keys in the middle, with room before and behind. */
static void
renumber(struct ranks *r)
{
    uint32_t step = MIN(RANK_KEYS_END / 2 / (r->n + 1), SPACING);

    for (size_t i = 0; i < r->n; i++) {
        r->keys[i] = RANK_KEYS_END / 4 + step * (i + 1);
    }
}

void
rank_keys_update(struct job **jobs, size_t n)
{
    struct ranks r = { .keys = xcalloc(n + 1, sizeof *r.keys),
                       .kept = xcalloc(n + 1, sizeof *r.kept) };
    size_t k = 0;

    r.n = collect(jobs, n, r.keys);
    if (!keep_longest(&r) || !fill_gaps(&r)) {
        renumber(&r);
    }
    for (size_t i = 0; i < n; i++) {
        k += i && jobs[i]->rank != jobs[i - 1]->rank;
        jobs[i]->key = r.keys[k];
    }
    free(r.keys);
    free(r.kept);
}
