/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/pipeline/flow-table-internal.h"

#define HUGE_PAGE (2u << 20)

/* The words are of the kernel's making, zeroed when they are first touched.
 * Huge pages save a miss of the address translation in nearly every lookup of
 * a large table. */
static bool
family_init(struct family *f, uint32_t max_flows, uint8_t n_addresses,
            uint8_t stride)
{
    uint64_t n = 2;
    uintptr_t at;

    while (n * N_WAYS < (uint64_t) max_flows * 2) {
        n *= 2;
    }
    f->mask = n - 1;
    f->n_addresses = n_addresses;
    f->stride = stride;
    f->bytes = n * stride * sizeof *f->words + HUGE_PAGE;
    f->mapping = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f->mapping == MAP_FAILED) {
        f->mapping = NULL;
        return false;
    }
    at = ((uintptr_t) f->mapping + HUGE_PAGE - 1) & -(uintptr_t) HUGE_PAGE;
    f->words = (uint64_t *) at;
    if (n * stride * sizeof *f->words >= HUGE_PAGE) {
        madvise(f->words, n * stride * sizeof *f->words, MADV_HUGEPAGE);
    }
    return true;
}

static void
family_uninit(struct family *f)
{
    if (f->mapping) {
        munmap(f->mapping, f->bytes);
    }
}

/* A step of the generator "splitmix64". */
static uint64_t
next_secret(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Creates a table for 'max_flows'.  'seed' should be random, so that nobody
 * can choose flows that fall into the same bucket.  Returns NULL without
 * memory. */
struct flow_table *
flow_table_create(uint32_t max_flows, uint64_t seed)
{
    size_t size = sizeof(struct flow_table);
    struct flow_table *ft = aligned_alloc(64, (size + 63) / 64 * 64);

    if (!ft) {
        return NULL;
    }
    memset(ft, 0, sizeof *ft);
    flow_lookup_choose(ft, false);
    ft->max = max_flows;
    ft->era = 1;
    for (int i = 0; i < 4; i++) {
        ft->secret[i] = next_secret(&seed);
    }
    if (!family_init(&ft->v4, max_flows, 1, 8)
        || !family_init(&ft->v6, max_flows, 4, 24)) {
        flow_table_destroy(ft);
        return NULL;
    }
    return ft;
}

/* Makes lookups do without the processor's extensions, to compare. */
void
flow_table_use_portable(struct flow_table *ft)
{
    flow_lookup_choose(ft, true);
}

void
flow_table_destroy(struct flow_table *ft)
{
    if (ft) {
        family_uninit(&ft->v4);
        family_uninit(&ft->v6);
        free(ft);
    }
}

/* Lets a thread look up from now on.  Returns its number, -1 if there are too
 * many.  For the changing thread, or while nothing changes. */
int
flow_table_join(struct flow_table *ft)
{
    for (int i = 0; i < FLOW_TABLE_MAX_READERS; i++) {
        if (!LOAD(&ft->readers[i].era)) {
            RELEASE(&ft->readers[i].era, ACQUIRE(&ft->era));
            return i;
        }
    }
    return -1;
}

void
flow_table_leave(struct flow_table *ft, int reader)
{
    RELEASE(&ft->readers[reader].era, 0);
}

/* Says that 'reader' is between two lookups. */
void
flow_table_pause(struct flow_table *ft, int reader)
{
    uint64_t era = ACQUIRE(&ft->era);

    if (LOAD(&ft->readers[reader].era) != era) {
        RELEASE(&ft->readers[reader].era, era);
    }
}

uint64_t
flow_hash_v6(const struct flow_table *ft, const uint64_t *addresses,
             uint64_t rest)
{
    uint64_t h = multiply(addresses[0] ^ ft->secret[0],
                          addresses[1] ^ ft->secret[1]);

    h ^= multiply(addresses[2] ^ ft->secret[2], addresses[3] ^ ft->secret[3]);
    return multiply(h ^ ft->secret[0], rest ^ ft->secret[1]);
}

void
flow_probe_init(struct flow_table *ft, const struct shim_flow_key *key,
                struct probe *p)
{
    uint32_t ports;

    memcpy(&ports, &key->local_port, sizeof ports);
    p->rest = flow_id_init(0, ports, key->protocol).rest;
    if (key->family == 4) {
        p->family = &ft->v4;
        memcpy(p->addresses, key->local, 4);
        memcpy((uint8_t *) p->addresses + 4, key->remote, 4);
        p->hash = hash_v4(ft, p->addresses[0], p->rest);
    } else {
        p->family = &ft->v6;
        memcpy(p->addresses, key->local, 16);
        memcpy(p->addresses + 2, key->remote, 16);
        p->hash = flow_hash_v6(ft, p->addresses, p->rest);
    }
}

uint64_t
flow_table_hash(const struct flow_table *ft, const struct shim_flow_key *key)
{
    struct probe p;

    flow_probe_init((struct flow_table *) ft, key, &p);
    return p.hash;
}

uint32_t
flow_table_count(const struct flow_table *ft)
{
    return LOAD(&ft->n);
}

uint32_t
flow_table_max(const struct flow_table *ft)
{
    return ft->max;
}

uint64_t
flow_table_n_refused(const struct flow_table *ft)
{
    return LOAD(&ft->n_refused);
}

uint64_t
flow_table_n_aged(const struct flow_table *ft)
{
    return LOAD(&ft->n_aged);
}
