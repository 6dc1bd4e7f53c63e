/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/classify/flow-table-internal.h"

#define HUGE_PAGE (2u << 20)

/* The words are of the kernel's making, zeroed when they are first touched.
 * Huge pages save a miss of the address translation in nearly every lookup of
 * a large table. */
static bool
map_words(struct flow_table *ft, uint64_t n_buckets)
{
    uint64_t bytes = n_buckets * N_WAYS * sizeof *ft->words;
    uintptr_t at;

    ft->bytes = bytes + HUGE_PAGE;
    ft->mapping = mmap(NULL, ft->bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ft->mapping == MAP_FAILED) {
        ft->mapping = NULL;
        return false;
    }
    at = ((uintptr_t) ft->mapping + HUGE_PAGE - 1) & -(uintptr_t) HUGE_PAGE;
    ft->words = (uint64_t *) at;
    if (bytes >= HUGE_PAGE) {
        madvise(ft->words, bytes, MADV_HUGEPAGE);
    }
    return true;
}

/* What only changes need is touched as flows come, too. */
static bool
allocate(struct flow_table *ft, uint32_t max_flows)
{
    uint64_t n = 2;

    while (n * N_WAYS < (uint64_t) max_flows * 2) {
        n *= 2;
    }
    ft->mask = (n - 1) << BUCKET_SHIFT;
    ft->numbers = calloc(n * N_WAYS, sizeof *ft->numbers);
    ft->flows = calloc(max_flows, sizeof *ft->flows);
    return ft->numbers && ft->flows && map_words(ft, n);
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
    ft->free = NOBODY;
    for (int i = 0; i < 4; i++) {
        ft->secret[i] = next_secret(&seed);
    }
    if (!allocate(ft, max_flows)) {
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
        if (ft->mapping) {
            munmap(ft->mapping, ft->bytes);
        }
        free(ft->flows);
        free(ft->numbers);
        free(ft);
    }
}

struct flow_hasher
flow_table_hasher(const struct flow_table *ft)
{
    return (struct flow_hasher) {
        .secrets = { ft->secret[0], ft->secret[1] },
        .buckets = (const uint8_t *) ft->words,
        .mask = ft->mask,
    };
}

/* Of IPv6 the addresses are hashed, with secrets, to the size of IPv4's; the
 * bit above the ports keeps the two apart. */
struct flow_id
flow_table_id(const struct flow_table *ft, const struct shim_flow_key *key)
{
    struct flow_id id;
    uint64_t a[4];
    uint32_t ports;

    memcpy(&ports, &key->local_port, sizeof ports);
    id = flow_id_init(0, ports, key->protocol);
    if (key->family == 4) {
        memcpy(&id.addresses, key->local, 4);
        memcpy((uint8_t *) &id.addresses + 4, key->remote, 4);
    } else {
        memcpy(a, key->local, 16);
        memcpy(a + 2, key->remote, 16);
        id.addresses = (flow_multiply(a[0] ^ ft->secret[0],
                                      a[1] ^ ft->secret[1])
                        ^ flow_multiply(a[2] ^ ft->secret[2],
                                        a[3] ^ ft->secret[3]));
        id.rest |= UINT64_C(1) << 40;
    }
    return id;
}

uint64_t
flow_table_hash(const struct flow_table *ft, const struct shim_flow_key *key)
{
    struct flow_hasher hasher = flow_table_hasher(ft);
    struct flow_id id = flow_table_id(ft, key);

    return flow_hash(&hasher, &id);
}

uint32_t
flow_table_changes(const struct flow_table *ft)
{
    return ACQUIRE(&ft->n_changes);
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
