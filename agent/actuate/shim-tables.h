/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_TABLES_H
#define SHIM_TABLES_H 1

/* Slots and flows that the shim has, and those that it is to have.
 *
 * Two tables have to become equal: what is wanted, by the name of the job or
 * the addresses of the flow, and what the shim has.  Agent and shim restart
 * independently, so the agent never assumes what the shim has: after each
 * connect it adopts the shim's lists, numbers of slots included, and from then
 * on sends only differences.  Only flows that something happened to are
 * compared, since a job may have very many.
 *
 *    slot_table_want(st, &row, true);
 *    slot_table_adopt(st, rows, n);              // From SHIM_SLOT_LIST.
 *    slot_table_changes(st, &slot_changes);      // To SLOT_SET, SLOT_CLEAR.
 *
 *    flow_set_want(fs, &key, "asha/t0", false);
 *    flow_set_adopt(fs, flows, n);               // From SHIM_FLOW_LIST.
 *    flow_set_recheck(fs);                       // The slots have changed.
 *    while (flow_set_changes(fs, st, &flow_changes)) {
 *        ...FLOW_ADD, FLOW_DELETE...
 *    }
 *
 * Keys and names are copied.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "wire/shim-protocol.h"

struct slot_job;

struct slot_table {
    struct hmap jobs;           /* Contains struct slot_job, by name. */

    /* By number: the job, and the row of the shim, whose 'slot' is 0 if there
     * is none. */
    struct slot_job *owners[SHIM_MAX_SLOTS];
    struct shim_slot installed[SHIM_MAX_SLOTS];
    uint16_t last;              /* Given out last, so that a number is reused
                                 * as late as possible. */
};

/* Rows to set and numbers to clear. */
struct slot_changes {
    struct shim_slot set[SHIM_MAX_SLOTS];
    uint16_t clear[SHIM_MAX_SLOTS];
    size_t n_set, n_clear;
};

void slot_table_init(struct slot_table *);
void slot_table_uninit(struct slot_table *);

void slot_table_want(struct slot_table *, const struct shim_slot *,
                     bool decided);
void slot_table_unwant(struct slot_table *, const char *name);

void slot_table_adopt(struct slot_table *, const struct shim_slot *, size_t n);
void slot_table_changes(struct slot_table *, struct slot_changes *);

uint16_t slot_table_number(const struct slot_table *, const char *name);
const char *slot_table_name(const struct slot_table *, uint16_t slot);

#define FLOW_CHANGES_MAX 1024

struct flow_set {
    struct hmap flows;          /* Contains struct set_flow. */
    bool has_control;           /* The shim has control classes. */
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
                   const char *job, bool control);
void flow_set_unwant(struct flow_set *, const struct shim_flow_key *);
bool flow_set_missed(struct flow_set *, const struct shim_flow_key *);

void flow_set_adopt(struct flow_set *, const struct shim_flow *, size_t n);
void flow_set_adopt_more(struct flow_set *, const struct shim_flow *,
                         size_t n);
void flow_set_recheck(struct flow_set *);
void flow_set_allow_control(struct flow_set *, bool has_control);
bool flow_set_is_dirty(const struct flow_set *);
bool flow_set_changes(struct flow_set *, const struct slot_table *,
                      struct flow_changes *);

#endif /* agent/actuate/shim-tables.h */
