/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OVSDB_QOS_H
#define OVSDB_QOS_H 1

/* Driver for the queues of Open vSwitch, through its database.
 *
 * OpenFlow can select a queue but not create one.  Open vSwitch creates queues
 * from rows of the tables QoS and Queue, so this driver keeps these rows as a
 * queue_plan has them.  Rows of ours have "stagecoach" in external_ids:
 * "DATAPATH:PORT" (QoS) or "DATAPATH:PORT:QUEUE" (Queue).  They are compared
 * and updated, so a controller that restarts changes nothing.
 *
 * Two more external_ids are ours: "stagecoach-generation" of a bridge, the
 * generation of the last leader that changed it, and "stagecoach-qos-before"
 * of a port, the UUID of the QoS that it had before, or "none".  If the
 * topology no longer requests queues, the previous QoS is restored and our
 * rows are deleted.
 *
 * OVSDB has no primary role.  Instead, each transaction verifies that the
 * bridge's generation has not changed, and a bridge with a newer generation is
 * left alone.
 *
 * A row counts as applied when it is in the database.  The database does not
 * show whether the switch created the queues or puts packets into them: Open
 * vSwitch's userspace datapath creates queues of kernel interfaces and ignores
 * set_queue.
 *
 * See driver.h.  The driver uses 'queues' of struct driver_want. */

#include <stdint.h>

struct driver;

/* Returns a driver for the bridge with the datapath id 'datapath' in the
 * database at 'remote'. */
struct driver *ovsdb_qos_create(const char *remote, uint64_t datapath);

#endif /* controller/southbound/drivers/ovsdb-qos.h */
