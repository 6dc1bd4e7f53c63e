/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/flow-table.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "util.h"

uint32_t
flow_key_hash(const struct shim_flow_key *key)
{
    return hash_bytes(key, sizeof *key, 0);
}

bool
flow_key_equal(const struct shim_flow_key *a, const struct shim_flow_key *b)
{
    return !memcmp(a, b, sizeof *a);
}

/* Returns 'key' as text, "10.0.0.1:80-10.0.0.2:5000", the host's own side
 * first.  The caller must free it. */
char *
flow_key_to_string(const struct shim_flow_key *key)
{
    int family = key->family == 6 ? AF_INET6 : AF_INET;
    char local[INET6_ADDRSTRLEN] = "?";
    char remote[INET6_ADDRSTRLEN] = "?";

    inet_ntop(family, key->local, local, sizeof local);
    inet_ntop(family, key->remote, remote, sizeof remote);
    return xasprintf(family == AF_INET6 ? "[%s]:%u-[%s]:%u" : "%s:%u-%s:%u",
                     local, ntohs(key->local_port),
                     remote, ntohs(key->remote_port));
}

void
flow_table_init(struct flow_table *ft)
{
    hmap_init(&ft->flows);
}

static void
remove_flow(struct flow_table *ft, struct flow *flow)
{
    hmap_remove(&ft->flows, &flow->node);
    free(flow);
}

void
flow_table_uninit(struct flow_table *ft)
{
    struct flow *flow;

    HMAP_FOR_EACH_SAFE (flow, node, &ft->flows) {
        remove_flow(ft, flow);
    }
    hmap_destroy(&ft->flows);
}

static struct flow *
find_flow(const struct flow_table *ft, const struct shim_flow_key *key)
{
    struct flow *flow;

    HMAP_FOR_EACH_WITH_HASH (flow, node, flow_key_hash(key), &ft->flows) {
        if (flow_key_equal(&flow->key, key)) {
            return flow;
        }
    }
    return NULL;
}

/* Begins a dump. */
void
flow_table_begin(struct flow_table *ft)
{
    struct flow *flow;

    HMAP_FOR_EACH (flow, node, &ft->flows) {
        flow->n_unseen++;
    }
}

/* Notes that there is a socket of 'job' with 'key' in 'cgroup'.  Returns true
 * if that is new: an unknown flow, or a socket of another job with the same
 * addresses. */
bool
flow_table_see(struct flow_table *ft, const struct shim_flow_key *key,
               const struct job *job, uint64_t cgroup, long long now)
{
    struct flow *flow = find_flow(ft, key);
    bool new = !flow || flow->job != job;

    if (!flow) {
        flow = xzalloc(sizeof *flow);
        flow->key = *key;
        hmap_insert(&ft->flows, &flow->node, flow_key_hash(key));
    }
    flow->job = job;
    flow->cgroup = cgroup;
    flow->seen = now;
    flow->n_unseen = 0;
    return new;
}

/* Ends a complete dump.  Removes ended flows and calls 'gone' with 'aux'
 * before each removal. */
void
flow_table_end(struct flow_table *ft, long long now,
               flow_gone_func *gone, void *aux)
{
    struct flow *flow;

    HMAP_FOR_EACH_SAFE (flow, node, &ft->flows) {
        if (flow->n_unseen >= FLOW_GONE_DUMPS
            && now - flow->seen > FLOW_GONE_MS) {
            gone(flow, aux);
            remove_flow(ft, flow);
        }
    }
}

/* Removes the flows of 'job' and calls 'gone' with 'aux' before each
 * removal. */
void
flow_table_forget_job(struct flow_table *ft, const struct job *job,
                      flow_gone_func *gone, void *aux)
{
    struct flow *flow;

    HMAP_FOR_EACH_SAFE (flow, node, &ft->flows) {
        if (flow->job == job) {
            gone(flow, aux);
            remove_flow(ft, flow);
        }
    }
}
