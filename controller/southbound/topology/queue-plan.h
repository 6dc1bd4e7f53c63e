/* SPDX-License-Identifier: Apache-2.0 */

#ifndef QUEUE_PLAN_H
#define QUEUE_PLAN_H 1

/* Which queues the ports of a switch shall have.
 *
 * The flows of a switch name queues (switch-flows.h); this is what is behind
 * the names, in the words of Open vSwitch's database: queue 0 for the control
 * level, 1 and up for the policy's levels, 7 for the default one.  Each has
 * the policy's guard share of the port's rate whatever goes before it; of the
 * rest the first queue takes all that it can.
 *
 * No state beside the struct. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy;
struct smap;
struct topology;

/* What a port gets, as "type" in the topology says: */
enum queue_kind {
    QUEUES_HTB,                 /* "linux-htb": a queue for each level. */
    QUEUES_NOOP,                /* "linux-noop": what is there, left alone. */
    QUEUES_POLICER,             /* "egress-policer": its rate, of DPDK. */
    QUEUES_NONE,                /* "none": what it had before us. */
    N_QUEUE_KINDS,
};
extern const char *const queue_kind_names[N_QUEUE_KINDS + 1];     /* NULL ends. */

struct queue_plan {
    enum queue_kind kind;
    int n_levels;
    double guard_share;
    size_t n_ports;             /* 0 if 'kind' is QUEUES_NONE. */
    struct queue_plan_port {
        uint32_t port;          /* As OpenFlow numbers it. */
        int64_t rate_bps;
    } *ports;
};

/* What the switch with index 'sw' shall have, which has "queues". */
struct queue_plan *queue_plan_create(const struct policy *,
                                     const struct topology *, int sw);
struct queue_plan *queue_plan_clone(const struct queue_plan *);
void queue_plan_destroy(struct queue_plan *);
bool queue_plan_equal(const struct queue_plan *, const struct queue_plan *);

/* How many queues each port has, and the number of the 'i'th. */
size_t queue_plan_n_queues(const struct queue_plan *);
int64_t queue_plan_number(const struct queue_plan *, size_t i);

/* Store in 'config', which must be empty, what is configured of a port and of
 * its 'i'th queue. */
void queue_plan_port_config(const struct queue_plan *,
                            const struct queue_plan_port *,
                            struct smap *config);
void queue_plan_queue_config(const struct queue_plan *,
                             const struct queue_plan_port *, size_t i,
                             struct smap *config);

#endif /* controller/southbound/topology/queue-plan.h */
