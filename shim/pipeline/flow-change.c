/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <string.h>

#include "shim/pipeline/flow-table-internal.h"

#define AGE_STEPS 16            /* Of a time-out. */

static bool
find(const struct probe *p, uint64_t **entry)
{
    const struct family *f = p->family;

    for (int which = 0; which < 2; which++) {
        uint64_t *bucket = (which ? second_bucket
                            : first_bucket)(f, f->stride, p->hash);

        for (int way = 0; way < N_WAYS; way++) {
            *entry = entry_of(bucket, f->n_addresses, way);
            if (!((LOAD(*entry) ^ p->rest) & KEY_MASK)
                && !memcmp(*entry + 1, p->addresses,
                           f->n_addresses * sizeof **entry)) {
                return true;
            }
        }
    }
    return false;
}

/* Returns the era before which every reader has paused. */
static uint64_t
oldest_era(const struct flow_table *ft)
{
    uint64_t oldest = ft->era;

    for (int i = 0; i < FLOW_TABLE_MAX_READERS; i++) {
        uint64_t era = ACQUIRE(&ft->readers[i].era);

        oldest = era && era < oldest ? era : oldest;
    }
    return oldest;
}

/* Returns an entry of 'bucket' that nobody reads any more, NULL if there is
 * none. */
static uint64_t *
free_entry(const struct flow_table *ft, const struct family *f,
           const uint64_t *bucket)
{
    uint64_t oldest = 0;

    for (int way = 0; way < N_WAYS; way++) {
        uint64_t *entry = entry_of(bucket, f->n_addresses, way);
        uint64_t word = LOAD(entry);
        uint64_t era = word >> 8 & ERA_MASK;

        if (word & PROTOCOL_MASK) {
            continue;
        }
        oldest = era && !oldest ? oldest_era(ft) : oldest;
        if (era < oldest || !era) {
            return entry;
        }
    }
    return NULL;
}

static void
publish(const struct family *f, uint64_t *entry, uint64_t word,
        const uint64_t *addresses)
{
    for (int i = 0; i < f->n_addresses; i++) {
        STORE(&entry[1 + i], addresses[i]);
    }
    RELEASE(entry, word);
}

static void
withdraw(struct flow_table *ft, uint64_t *entry)
{
    RELEASE(entry, (ft->era & ERA_MASK) << 8);
    RELEASE(&ft->era, ft->era + 1);
}

static uint64_t
hash_entry(const struct flow_table *ft, const struct family *f,
           const uint64_t *entry)
{
    uint64_t rest = LOAD(entry) & KEY_MASK;

    return (f->n_addresses == 1 ? hash_v4(ft, entry[1], rest)
            : flow_hash_v6(ft, entry + 1, rest));
}

/* Moves one flow of 'bucket' for which this is the first one to its second
 * one.  What it leaves may be used when all readers have paused; until then it
 * is no more room than before. */
static void
move_one(struct flow_table *ft, const struct family *f, uint64_t *bucket)
{
    for (int way = 0; way < N_WAYS; way++) {
        uint64_t *entry = entry_of(bucket, f->n_addresses, way), *free;
        uint64_t hash = hash_entry(ft, f, entry);

        if (!(LOAD(entry) & PROTOCOL_MASK)
            || first_bucket(f, f->stride, hash) != bucket) {
            continue;
        }
        free = free_entry(ft, f, second_bucket(f, f->stride, hash));
        if (free) {
            publish(f, free, LOAD(entry), entry + 1);
            withdraw(ft, entry);
            return;
        }
    }
}

/* Returns an entry for 'p', NULL if there is no room. */
static uint64_t *
find_room(struct flow_table *ft, const struct probe *p)
{
    const struct family *f = p->family;
    uint64_t *entry = NULL;

    for (int which = 0; which < 4 && !entry; which++) {
        uint64_t *bucket = (which % 2 ? second_bucket
                            : first_bucket)(f, f->stride, p->hash);

        if (which >= 2) {
            move_one(ft, f, bucket);
        }
        entry = free_entry(ft, f, bucket);
    }
    return entry;
}

/* Makes 'key' belong to 'slot', whether it was there or not.  Returns 0, or
 * ENOSPC if the table is full. */
int
flow_table_set(struct flow_table *ft, const struct shim_flow_key *key,
               uint16_t slot)
{
    uint64_t *entry, word;
    struct probe p;

    flow_probe_init(ft, key, &p);
    word = (p.rest | (uint64_t) slot << SLOT_SHIFT
            | (uint64_t) ft->tick << AGE_SHIFT);
    if (find(&p, &entry)) {
        RELEASE(entry, word);
        return 0;
    }
    entry = ft->n < ft->max ? find_room(ft, &p) : NULL;
    if (!entry) {
        STORE(&ft->n_refused, ft->n_refused + 1);
        return ENOSPC;
    }
    publish(p.family, entry, word, p.addresses);
    STORE(&ft->n, ft->n + 1);
    return 0;
}

static void
remove_entry(struct flow_table *ft, uint64_t *entry)
{
    withdraw(ft, entry);
    STORE(&ft->n, ft->n - 1);
}

/* Returns 0, or ENOENT if 'key' was not there. */
int
flow_table_delete(struct flow_table *ft, const struct shim_flow_key *key)
{
    struct probe p;
    uint64_t *entry;

    flow_probe_init(ft, key, &p);
    if (!find(&p, &entry)) {
        return ENOENT;
    }
    remove_entry(ft, entry);
    return 0;
}

static void
fill_flow(const struct family *f, const uint64_t *entry,
          struct shim_flow *flow)
{
    uint32_t size = f->n_addresses * 4, ports = *entry >> 8;
    const uint8_t *addresses = (const uint8_t *) (entry + 1);

    memset(flow, 0, sizeof *flow);
    flow->key.family = size == 4 ? 4 : 6;
    flow->key.protocol = *entry & PROTOCOL_MASK;
    memcpy(&flow->key.local_port, &ports, sizeof ports);
    memcpy(flow->key.local, addresses, size);
    memcpy(flow->key.remote, addresses + size, size);
    flow->slot = *entry >> SLOT_SHIFT;
}

/* Copies flows to 'flows', in no order, from '*cursor' on, 0 at first, until
 * there are 'max' or no more.  Returns how many, and stores where to go on in
 * '*cursor', 0 after the last.  A flow that is there all the time and does not
 * move is listed once, whatever else changes. */
uint32_t
flow_table_list(const struct flow_table *ft, uint64_t *cursor,
                struct shim_flow *flows, uint32_t max)
{
    uint64_t n_v4 = (ft->v4.mask + 1) * N_WAYS;
    uint64_t end = n_v4 + (ft->v6.mask + 1) * N_WAYS, at = *cursor;
    uint32_t n = 0;

    for (; at < end; at++) {
        const struct family *f = at < n_v4 ? &ft->v4 : &ft->v6;
        uint64_t i = at < n_v4 ? at : at - n_v4;
        const uint64_t *entry = entry_of(&f->words[i / N_WAYS * f->stride],
                                         f->n_addresses, i % N_WAYS);

        if (LOAD(entry) & PROTOCOL_MASK) {
            if (n >= max) {
                break;
            }
            fill_flow(f, entry, &flows[n++]);
        }
    }
    *cursor = at < end ? at : 0;
    return n;
}

static uint8_t
tick_at(const struct flow_table *ft, uint64_t now)
{
    return ft->timeout ? now / (ft->timeout / AGE_STEPS + 1) : 0;
}

/* Lets flows go that nobody sees for 'ns', 0: never.  To be called before any
 * is there. */
void
flow_table_set_timeout(struct flow_table *ft, uint64_t ns, uint64_t now)
{
    ft->timeout = ns;
    STORE(&ft->tick, tick_at(ft, now));
}

static uint32_t
age_family(struct flow_table *ft, const struct family *f)
{
    uint32_t n = 0;

    for (uint64_t i = 0; i <= f->mask; i++) {
        uint64_t *bucket = &f->words[i * f->stride];

        for (int way = 0; way < N_WAYS; way++) {
            uint64_t *entry = entry_of(bucket, f->n_addresses, way);
            uint64_t word = LOAD(entry);
            uint8_t age = ft->tick - (word >> AGE_SHIFT);

            /* Counted in whole steps, so one more may be missing. */
            if (word & PROTOCOL_MASK && age > AGE_STEPS) {
                remove_entry(ft, entry);
                n++;
            }
        }
    }
    return n;
}

/* Deletes the flows whose time is out at 'now', nanoseconds.  To be called
 * several times in a time-out; most calls return at once.  Returns how many
 * those were. */
uint32_t
flow_table_age(struct flow_table *ft, uint64_t now)
{
    uint8_t tick = tick_at(ft, now);
    uint32_t n;

    if (tick == ft->tick) {
        return 0;
    }
    STORE(&ft->tick, tick);
    n = age_family(ft, &ft->v4) + age_family(ft, &ft->v6);
    STORE(&ft->n_aged, ft->n_aged + n);
    return n;
}
