/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OVSDB_QOS_H
#define OVSDB_QOS_H 1

/* The driver of the queues of a switch that is Open vSwitch: rows of its
 * database.
 *
 *
 * Motivation
 * ==========
 *
 * OpenFlow can choose a queue and not make one.  Open vSwitch makes queues of
 * rows, "QoS" and "Queue", so this keeps these rows as a queue_plan has them.
 * Ours are told by external_ids, and are compared, not made anew: a controller
 * that comes back changes nothing.
 *
 * Of what is not ours, a bridge gets one external_id, the generation of the
 * leader, and a port that we give queues to has its "qos" replaced and what
 * was there noted in an external_id: with "none" in the topology it comes back
 * and everything of ours goes.
 *
 * A database knows of no primary controller.  So each transaction checks that
 * the generation at the bridge is the one that we have seen, and we leave a
 * bridge alone that has a later one than ours.
 *
 * What counts as applied is in the database.  Whether the switch has made
 * queues of it, and whether packets are put into them, is not told there: Open
 * vSwitch's userspace datapath makes the queues of kernel interfaces and
 * ignores set_queue.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * See driver.h; what is wanted is 'queues' of struct driver_want. */

#include <stdint.h>

struct driver;

/* The queues of the bridge with the datapath id 'datapath' in the database
 * 'remote'. */
struct driver *ovsdb_qos_create(const char *remote, uint64_t datapath);

#endif /* controller/southbound/ovsdb-qos.h */
