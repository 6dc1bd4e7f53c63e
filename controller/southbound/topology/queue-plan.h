/* SPDX-License-Identifier: Apache-2.0 */

#ifndef QUEUE_PLAN_H
#define QUEUE_PLAN_H 1

/* Computes the queues of the ports of a switch.
 *
 * The flows of a switch refer to queue numbers (switches.h): 0 for the
 * control level, 1 and up for the policy's levels, 7 for default traffic.  A
 * plan has the queues' configuration for Open vSwitch's database.  Each queue
 * has the policy's min share of the port's rate; the rest goes to the first
 * queue with traffic.  No state besides the struct. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy;
struct smap;
struct topology;

/* Type of a port's QoS, "type" in the topology. */
enum queue_kind {
    QUEUES_HTB,                 /* "linux-htb": one queue per level. */
    QUEUES_NOOP,                /* "linux-noop": keeps qdiscs of others. */
    QUEUES_POLICER,             /* "egress-policer": rate limit of DPDK. */
    QUEUES_NONE,                /* "none": restores the previous QoS. */
    N_QUEUE_KINDS,
};

/* By kind; ends with NULL. */
extern const char *const queue_kind_names[N_QUEUE_KINDS + 1];

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

/* Return the number of queues of each port, and the id of queue 'i'. */
size_t queue_plan_n_queues(const struct queue_plan *);
int64_t queue_plan_number(const struct queue_plan *, size_t i);

/* Store the configuration of a port, or of its queue 'i', in 'config', which
 * must be empty. */
void queue_plan_port_config(const struct queue_plan *,
                            const struct queue_plan_port *,
                            struct smap *config);
void queue_plan_queue_config(const struct queue_plan *,
                             const struct queue_plan_port *, size_t i,
                             struct smap *config);

#endif /* controller/southbound/topology/queue-plan.h */
