/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/prefetch.h"

#include <stdlib.h>

#include "base/compare.h"
#include "base/memory.h"
#include "trainer/keys/key-store.h"

/* Keys are requested when MANY_KEYS wait, or when 1/PART of the queue has been
 * added. */
#define MANY_KEYS 256
#define PART 4

struct prefetch {
    struct key_worker *worker;
    size_t size, max_keys;
    size_t first, n;            /* Samples in the ring. */
    uint64_t *keys;             /* Keys of each element of the ring. */
    size_t *n_keys;             /* Number of keys of each element. */
    uint64_t *wanted;           /* Keys that have not been requested. */
    size_t n_wanted;
    size_t n_added;             /* Samples added since the last request. */
};

struct prefetch *
prefetch_create(struct key_worker *worker, size_t n_samples, size_t max_keys)
{
    struct prefetch *la = allocate(1, sizeof *la);

    la->worker = worker;
    la->size = n_samples + 1;       /* One more, because the current sample
                                 * stays in the ring. */
    la->max_keys = max_keys;
    la->keys = allocate(la->size * max_keys, sizeof *la->keys);
    la->n_keys = allocate(la->size, sizeof *la->n_keys);
    la->wanted = allocate(MANY_KEYS + max_keys, sizeof *la->wanted);
    return la;
}

void
prefetch_destroy(struct prefetch *la)
{
    if (la) {
        free(la->keys);
        free(la->n_keys);
        free(la->wanted);
        free(la);
    }
}

static size_t
place(const struct prefetch *la, size_t i)
{
    return (la->first + i) % la->size;
}

uint64_t *
prefetch_reserve(struct prefetch *la)
{
    return la->n + 1 < la->size ? la->keys + place(la, la->n) * la->max_keys
                                : NULL;
}

static void
ask(struct prefetch *la)
{
    size_t n = 0;

    qsort(la->wanted, la->n_wanted, sizeof *la->wanted, compare_u64);
    for (size_t i = 0; i < la->n_wanted; i++) {
        if (!i || la->wanted[i] != la->wanted[n - 1]) {
            la->wanted[n++] = la->wanted[i];
        }
    }
    if (n) {
        key_localize(la->worker, la->wanted, n);
    }
    la->n_wanted = 0;
    la->n_added = 0;
}

void
prefetch_add(struct prefetch *la, size_t n, size_t n_wanted)
{
    size_t at = place(la, la->n++);
    const uint64_t *keys = la->keys + at * la->max_keys;

    la->n_keys[at] = n;
    for (size_t i = 0; i < n_wanted; i++) {
        if (!key_is_here(la->worker, keys[i])) {
            la->wanted[la->n_wanted++] = keys[i];
        }
    }
    if (la->n_wanted >= MANY_KEYS || ++la->n_added * PART >= la->size) {
        ask(la);
    }
}

size_t
prefetch_next(struct prefetch *la, const uint64_t **keys)
{
    size_t at = la->first;

    if (!la->n) {
        return 0;
    }
    la->first = place(la, 1);
    la->n--;
    *keys = la->keys + at * la->max_keys;
    return la->n_keys[at];
}
