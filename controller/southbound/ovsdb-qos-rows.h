/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OVSDB_QOS_ROWS_H
#define OVSDB_QOS_ROWS_H 1

/* The rows of Open vSwitch's database that make a queue_plan true; for
 * ovsdb-qos.c, which has the connection.
 *
 * Of ours, "stagecoach" in external_ids is "DATAPATH:PORT" (QoS) or
 * "DATAPATH:PORT:QUEUE" (Queue).  In a port's, "stagecoach-qos-before" is the
 * UUID of what it had before us, or "none". */

#include <stddef.h>
#include <stdint.h>

struct ovsdb_idl;
struct ovsdb_idl_txn;
struct ovsrec_bridge;
struct queue_plan;

struct qos_rows_count {
    size_t n_applied;           /* Rows that are as they should be, */
    size_t n_changes;           /* and what was changed in the others. */
};

/* How many rows a plan needs: for each port itself, its QoS, its queues. */
size_t qos_rows_n_wanted(const struct queue_plan *);

const struct ovsrec_bridge *qos_rows_find_bridge(struct ovsdb_idl *,
                                                 uint64_t datapath);

/* Of the last controller that has changed the bridge, 0 if none has. */
uint64_t qos_rows_generation(const struct ovsrec_bridge *);

/* Puts into the transaction what differs between rows and plan.  Returns NULL,
 * or which port is not there, which the caller frees. */
char *qos_rows_write(struct ovsdb_idl *, struct ovsdb_idl_txn *,
                     const struct ovsrec_bridge *, const struct queue_plan *,
                     uint64_t generation, struct qos_rows_count *);

#endif /* controller/southbound/ovsdb-qos-rows.h */
