/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FLOW_SET_H
#define FLOW_SET_H 1

/* Which flows the shim has, and which it is to have.
 *
 *
 * Motivation
 * ==========
 *
 * Like the slots, the flows of a shim are made equal to what is wanted by
 * difference, from whatever a restarted agent or shim left there.  Only flows
 * that something happened to are looked at, since a job may have very many.
 *
 *
 * Usage
 * =====
 *
 *    flow_set_want(fs, &key, "asha/t0");
 *    flow_set_adopt(fs, flows, n);               // From SHIM_FLOW_LIST.
 *    flow_set_recheck(fs);                       // The slots have changed.
 *    while (flow_set_changes(fs, slots, &changes)) {
 *        ...FLOW_ADD, FLOW_DELETE...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Keys and names are copied.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>

#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "wire/shim-protocol.h"

struct slot_table;

#define FLOW_CHANGES_MAX 1024

struct flow_set {
    struct hmap flows;          /* Contains struct set_flow. */
    struct ovs_list changed;    /* Those that may differ. */
};

struct flow_changes {
    struct shim_flow add[FLOW_CHANGES_MAX];
    struct shim_flow_key delete[FLOW_CHANGES_MAX];
    size_t n_add, n_delete;
};

void flow_set_init(struct flow_set *);
void flow_set_uninit(struct flow_set *);

void flow_set_want(struct flow_set *, const struct shim_flow_key *,
                   const char *job);
void flow_set_unwant(struct flow_set *, const struct shim_flow_key *);
bool flow_set_missed(struct flow_set *, const struct shim_flow_key *);

void flow_set_adopt(struct flow_set *, const struct shim_flow *, size_t n);
void flow_set_adopt_more(struct flow_set *, const struct shim_flow *,
                         size_t n);
void flow_set_recheck(struct flow_set *);
bool flow_set_is_dirty(const struct flow_set *);
bool flow_set_changes(struct flow_set *, const struct slot_table *,
                      struct flow_changes *);

#endif /* agent/actuate/flow-set.h */
