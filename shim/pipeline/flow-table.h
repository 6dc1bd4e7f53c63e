/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FLOW_TABLE_H
#define SHIM_FLOW_TABLE_H 1

/* 5-tuple -> job slot.
 *
 *
 * Motivation
 * ==========
 *
 * The forwarding loop looks up every packet while the control thread adds and
 * deletes flows.  The loop must never wait for the control thread, which the
 * kernel may take off its CPU in the middle of a change, so there are no locks
 * and no sequence numbers to spin on.
 *
 * Each flow may be in two buckets of four entries.  An entry is published by
 * writing its signature last and withdrawn by clearing it first.  The lookup
 * checks the signature again after it has read the rest, so that an entry that
 * changes meanwhile counts as absent: that packet has the default level.
 *
 *
 * Usage
 * =====
 *
 *    struct flow_table *ft = flow_table_create(16384, seed);
 *    error = flow_table_set(ft, &key, slot);
 *    slot = flow_table_lookup(ft, &key, flow_table_hash(ft, &key));
 *
 * 'pad' of a key and the unused part of its addresses must be 0.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread changes and lists; any number may look up.  All memory is
 * allocated at creation. */

#include <stdint.h>

#include "shim/control/protocol.h"

struct flow_table;

struct flow_table *flow_table_create(uint32_t max_flows, uint64_t seed);
void flow_table_destroy(struct flow_table *);

/* Any thread. */
uint64_t flow_table_hash(const struct flow_table *,
                         const struct shim_flow_key *);
int flow_table_lookup(const struct flow_table *, const struct shim_flow_key *,
                      uint64_t hash);
uint32_t flow_table_count(const struct flow_table *);
uint32_t flow_table_max(const struct flow_table *);

/* The changing thread. */
int flow_table_set(struct flow_table *, const struct shim_flow_key *,
                   uint16_t slot);
int flow_table_delete(struct flow_table *, const struct shim_flow_key *);
uint32_t flow_table_list(const struct flow_table *, struct shim_flow *,
                         uint32_t max);

#endif /* shim/pipeline/flow-table.h */
