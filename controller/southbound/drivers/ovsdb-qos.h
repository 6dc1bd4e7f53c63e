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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/southbound/topology/topology.h"

struct driver;
struct policy;
struct smap;

/* The queues of the ports of a switch.  The flows of a switch refer to queue
 * numbers (switches.h): 0 for the control level, 1 and up for the policy's
 * levels, 7 for default traffic.  Each queue has the policy's min share of the
 * port's rate; the rest goes to the first queue with traffic. */
struct queue_plan {
    enum queue_kind kind;
    int n_levels;
    double min_share;
    size_t n_ports;             /* 0 if 'kind' is QUEUES_NONE. */
    struct queue_plan_port {
        uint32_t port;          /* OpenFlow port number. */
        int64_t rate_bps;
    } *ports;
};

/* Returns the plan of switch 'sw' of the topology, which has "queues". */
struct queue_plan *queue_plan_create(const struct policy *,
                                     const struct topology *, int sw);
void queue_plan_destroy(struct queue_plan *);
bool queue_plan_equal(const struct queue_plan *, const struct queue_plan *);

/* Returns the number of queues of each port. */
size_t queue_plan_n_queues(const struct queue_plan *);

/* Store the configuration of a port, or of its queue 'i', in 'config', which
 * must be empty. */
void queue_plan_port_config(const struct queue_plan *,
                            const struct queue_plan_port *,
                            struct smap *config);
void queue_plan_queue_config(const struct queue_plan *,
                             const struct queue_plan_port *, size_t i,
                             struct smap *config);

/* Returns a driver for the bridge with the datapath id 'datapath' in the
 * database at 'remote'. */
struct driver *ovsdb_qos_create(const char *remote, uint64_t datapath);

#endif /* controller/southbound/drivers/ovsdb-qos.h */
