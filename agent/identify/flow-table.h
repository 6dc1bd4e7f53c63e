/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_IDENTIFY_FLOW_TABLE_H
#define AGENT_IDENTIFY_FLOW_TABLE_H 1

/* Flows of this host's jobs.
 *
 * Dumps of sockets are snapshots.  This table compares them, so that only new
 * and ended flows reach the shim.  A flow without a socket is kept for a
 * while, since its last packets may still be in flight.
 *
 *    flow_table_begin(ft);
 *    ...if (flow_table_see(ft, key, job, cgroup, now)) { it is new }...
 *    flow_table_end(ft, now, gone, aux);
 *
 * Do not call flow_table_end() after a failed dump.
 *
 * The table owns its flows.  The jobs belong to the registry; before one is
 * removed there, flow_table_forget_job() must be called.  Main thread only. */

#include <stdbool.h>

#include "openvswitch/hmap.h"
#include "wire/shim-protocol.h"

struct job;

/* A flow is removed if it is missing in so many consecutive dumps and was last
 * seen so long ago, in ms. */
#define FLOW_GONE_DUMPS 2
#define FLOW_GONE_MS 2000

struct flow {
    struct hmap_node node;      /* In struct flow_table's 'flows', by 'key'. */
    struct shim_flow_key key;
    const struct job *job;
    uint64_t cgroup;            /* Cgroup of its socket. */
    long long seen;             /* time_msec() of the last dump with it. */
    int n_unseen;               /* Dumps without it since then. */
    uint64_t acked;             /* Bytes that the remote end had acknowledged
                                 * at the last sample.  Written by
                                 * agent/pairs.c. */
};

struct flow_table {
    struct hmap flows;          /* Contains struct flow. */
};

void flow_table_init(struct flow_table *);
void flow_table_uninit(struct flow_table *);

typedef void flow_gone_func(const struct flow *, void *aux);

void flow_table_begin(struct flow_table *);
bool flow_table_see(struct flow_table *, const struct shim_flow_key *,
                    const struct job *, uint64_t cgroup, long long now);
void flow_table_end(struct flow_table *, long long now,
                    flow_gone_func *gone, void *aux);
void flow_table_forget_job(struct flow_table *, const struct job *,
                           flow_gone_func *gone, void *aux);

uint32_t flow_key_hash(const struct shim_flow_key *);
bool flow_key_equal(const struct shim_flow_key *,
                    const struct shim_flow_key *);
char *flow_key_to_string(const struct shim_flow_key *);

#endif /* agent/identify/flow-table.h */
