/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_TABLES_H
#define SHIM_TABLES_H 1

/* Slots that the shim or the kernel has, and those that it is to have.
 *
 * Two tables have to become equal: what is wanted, by the name of the job, and
 * what the other side has.  Agent and shim restart independently, so the agent
 * never assumes what the shim has: after each connect it adopts the shim's
 * list, numbers of slots included, and from then on sends only differences.
 *
 *    slot_table_want(st, "asha/t0", &row, true);
 *    slot_table_adopt(st, rows, n);              // From SHIM_SLOT_LIST.
 *    slot_table_changes(st, &slot_changes);      // To SLOT_SET, SLOT_CLEAR.
 *
 * Names are copied.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openvswitch/shash.h"
#include "wire/shim-protocol.h"

struct slot_job;

struct slot_table {
    struct shash jobs; /* Contains struct slot_job, by name. */

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

void slot_table_want(struct slot_table *, const char *job,
                     const struct shim_slot *, bool decided);
void slot_table_unwant(struct slot_table *, const char *name);

void slot_table_adopt(struct slot_table *, const struct shim_slot *, size_t n);
void slot_table_changes(struct slot_table *, struct slot_changes *);

uint16_t slot_table_number(const struct slot_table *, const char *name);
const char *slot_table_name(const struct slot_table *, uint16_t slot);
uint64_t *slot_table_next_bin(struct slot_table *, uint16_t slot);

#endif /* agent/actuate/shim-tables.h */
