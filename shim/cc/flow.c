/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shim/clock/counter.h"

/* Time from the last packet of a connection until its record is removed. */
#define ENDED_NS NS_PER_S
#define IDLE_NS (60 * NS_PER_S)
#define TRANSLATED_NS (7200 * NS_PER_S)

#define SWEEP 16                /* Records to check in a sweep. */

struct cc_flows *
cc_flows_create(uint32_t max, uint64_t seed)
{
    struct cc_flows *f = allocate(1, sizeof *f);
    uint32_t n = 1;

    while (n < max) {
        n *= 2;
    }
    f->mask = n - 1;
    f->max = max;
    f->seed = seed;
    f->records = allocate(max, sizeof *f->records);
    f->buckets = allocate(n, sizeof *f->buckets);
    memset(f->buckets, 0xff, n * sizeof *f->buckets);   /* CC_NONE. */
    for (uint32_t i = 0; i < max; i++) {
        f->records[i].next = i + 1 < max ? i + 1 : CC_NONE;
    }
    return f;
}

void
cc_flows_destroy(struct cc_flows *f)
{
    if (f) {
        free(f->buckets);
        free(f->records);
        free(f);
    }
}

static uint32_t *
bucket_of(const struct cc_flows *f, const struct shim_flow_key *key)
{
    uint64_t words[sizeof *key / 8];
    uint64_t hash;

    memcpy(words, key, sizeof words);
    hash = cc_hash(f->seed, words, sizeof words / sizeof *words);
    return &f->buckets[(hash ^ hash >> 32) & f->mask];
}

struct cc_flow *
cc_flows_find(const struct cc_flows *f, const struct shim_flow_key *key)
{
    uint32_t id = *bucket_of(f, key);

    while (id != CC_NONE) {
        if (!memcmp(&f->records[id].key, key, sizeof *key)) {
            return &f->records[id];
        }
        id = f->records[id].next;
    }
    return NULL;
}

struct cc_flow *
cc_flows_add(struct cc_flows *f, const struct shim_flow_key *key, uint64_t now)
{
    uint32_t *bucket = bucket_of(f, key), id = f->free;
    struct cc_flow *flow = &f->records[id];

    if (id == CC_NONE) {
        return NULL;
    }
    f->free = flow->next;
    *flow = (struct cc_flow) {
        .key = *key,
        .next = *bucket,
        .used = true,
        .last = now,
        .in = { .window = CC_WINDOW_ANY },
    };
    *bucket = id;
    counter_add(&f->n, 1);
    return flow;
}

void
cc_flows_remove(struct cc_flows *f, struct cc_flow *flow)
{
    uint32_t *link = bucket_of(f, &flow->key), id = flow - f->records;

    while (*link != id) {
        link = &f->records[*link].next;
    }
    *link = flow->next;
    flow->used = false;
    flow->next = f->free;
    f->free = id;
    counter_add(&f->n, -1);
}

static uint64_t
lifetime(const struct cc_flow *flow)
{
    return (flow->ended ? ENDED_NS
            : cc_window_translates(&flow->window) ? TRANSLATED_NS : IDLE_NS);
}

struct cc_flow *
cc_flows_sweep(struct cc_flows *f, uint64_t now)
{
    for (int i = 0; i < SWEEP; i++) {
        struct cc_flow *flow = &f->records[f->swept];

        f->swept = f->swept + 1 < f->max ? f->swept + 1 : 0;
        if (flow->used && now > flow->last + lifetime(flow)) {
            return flow;
        }
    }
    return NULL;
}
