/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/record-table.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shim/classify/flow-cache.h"

/* A record without packets for this time is idle: another may replace it if
 * its job has more than its share. */
#define IDLE_NS UINT64_C(5000000000)
#define MOST_NS 100000u /* Between two searches for the job with most. */
#define N_TRIES 4       /* Records to look at for an idle one. */

void
record_table_init(struct record_table *t, size_t size, uint32_t max)
{
    uint32_t n = 1;

    while (n < max) {
        n *= 2;
    }
    *t = (struct record_table){ .size = size,
                                .mask = n - 1,
                                .shares = { .size = max } };
    t->records = allocate(max, size);
    t->buckets = allocate(n, sizeof *t->buckets);
    for (uint32_t i = max; i-- > 0;) {
        record_at(t, i)->next = t->free;
        t->free = record_at(t, i);
    }
    for (int slot = 0; slot < SHIM_MAX_SLOTS; slot++) {
        t->jobs[slot] =
            (struct record_links){ &t->jobs[slot], &t->jobs[slot] };
    }
    randombytes_buf(t->secrets, sizeof t->secrets);
}

void
record_table_uninit(struct record_table *t)
{
    free(t->buckets);
    free(t->records);
}

static struct record **
bucket_of(const struct record_table *t, const struct shim_flow_key *key)
{
    uint64_t w[sizeof *key / 8], hash;

    memcpy(w, key, sizeof w);
    hash = flow_multiply(w[1] ^ t->secrets[1], w[2] ^ t->secrets[2])
           ^ flow_multiply(w[3] ^ t->secrets[3], w[4] ^ t->secrets[4]);
    hash = flow_multiply(hash ^ t->secrets[5], w[0] ^ t->secrets[0]);
    return &t->buckets[hash & t->mask];
}

struct record *
record_table_find(const struct record_table *t,
                  const struct shim_flow_key *key)
{
    struct record *r = *bucket_of(t, key);

    while (r && memcmp(&r->key, key, sizeof *key)) {
        r = r->next;
    }
    return r;
}

static void
unlink_record(struct record *r)
{
    r->links.older->newer = r->links.newer;
    r->links.newer->older = r->links.older;
}

/* Makes 'r' the newest of its job. */
static void
link_record(struct record_table *t, struct record *r)
{
    struct record_links *ends = &t->jobs[r->slot];

    r->links = (struct record_links){ .older = ends->older, .newer = ends };
    ends->older->newer = &r->links;
    ends->older = &r->links;
}

/* Returns the slot with most records, as of the last MOST_NS. */
static uint16_t
find_most(struct record_table *t, uint64_t now)
{
    if (now - t->most_at >= MOST_NS) {
        for (uint16_t slot = 0; slot < SHIM_MAX_SLOTS; slot++) {
            t->most = t->users[slot].n > t->users[t->most].n ? slot : t->most;
        }
        t->most_at = now;
    }
    return t->most;
}

/* Returns a record of 'slot', which has some, that was idle long.  One in use
 * is returned after N_TRIES of them.  What is offered becomes the newest. */
static struct record *
offer(struct record_table *t, uint16_t slot, uint64_t now,
      struct shares_entry *entry)
{
    struct record *r;
    int i = 0;

    do {
        r = (struct record *) t->jobs[slot].newer;
        unlink_record(r);
        link_record(t, r);
        *entry = (struct shares_entry){ .user = &t->users[slot],
                                        .last = r->last,
                                        .idle = now - r->last > IDLE_NS };
    } while (!entry->idle && ++i < N_TRIES);
    return r;
}

struct record *
record_table_choose(struct record_table *t, uint16_t slot, uint64_t now)
{
    struct shares_entry entries[2];
    struct record *records[2];
    uint16_t most;
    int n = 0;

    if (t->free) {
        return NULL;
    }
    most = find_most(t, now);
    if (t->users[slot].n) {
        records[n] = offer(t, slot, now, &entries[n]);
        n++;
    }
    if (most != slot && t->users[most].n) {
        records[n] = offer(t, most, now, &entries[n]);
        n++;
    }
    n = shares_choose(&t->shares, &t->users[slot], entries, n);
    return n < 0 ? NULL : records[n];
}

struct record *
record_table_add(struct record_table *t, const struct shim_flow_key *key,
                 uint16_t slot, uint64_t now)
{
    struct record **bucket = bucket_of(t, key), *r = *bucket;

    for (int i = 0; r && i < RECORD_PROBES; i++) {
        r = r->next;
    }
    if (r || !t->free) {
        return NULL;
    }
    r = t->free;
    t->free = r->next;
    memset(r, 0, t->size);
    t->number += t->number == UINT32_MAX ? 2 : 1;
    r->key = *key;
    r->next = *bucket;
    r->number = t->number;
    r->slot = slot;
    r->last = now;
    *bucket = r;
    link_record(t, r);
    shares_take(&t->shares, &t->users[slot]);
    return r;
}

void
record_table_remove(struct record_table *t, struct record *r)
{
    struct record **link = bucket_of(t, &r->key);

    while (*link != r) {
        link = &(*link)->next;
    }
    *link = r->next;
    unlink_record(r);
    shares_drop(&t->shares, &t->users[r->slot]);
    r->number = 0;
    r->next = t->free;
    t->free = r;
}

void
record_table_move(struct record_table *t, struct record *r, uint16_t slot)
{
    if (slot != r->slot) {
        shares_drop(&t->shares, &t->users[r->slot]);
        unlink_record(r);
        r->slot = slot;
        link_record(t, r);
        shares_take(&t->shares, &t->users[slot]);
    }
}

struct record *
record_table_next(struct record_table *t)
{
    struct record *r = record_at(t, t->swept);

    t->swept = t->swept + 1 < t->shares.size ? t->swept + 1 : 0;
    return r->number ? r : NULL;
}
