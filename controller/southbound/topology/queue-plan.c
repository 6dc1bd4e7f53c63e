/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/queue-plan.h"

#include <inttypes.h>
#include <stdlib.h>

#include "controller/southbound/topology/topology.h"
#include "policies/policy.h"
#include "smap.h"
#include "util.h"

#define DEFAULT_QUEUE 7
#define MIN_RATE_BPS 12000      /* Minimum rate of an HTB queue. */

/* Burst of a policer: this time at its rate, at least MIN_BURST_BYTES. */
#define BURST_SECONDS 0.01
#define MIN_BURST_BYTES 20000

const char *const queue_kind_names[N_QUEUE_KINDS + 1] = {
    [QUEUES_HTB] = "linux-htb",
    [QUEUES_NOOP] = "linux-noop",
    [QUEUES_POLICER] = "egress-policer",
    [QUEUES_NONE] = "none",
};

static void
add_port(struct queue_plan *plan, int sw, const struct topology_port *at,
         int64_t rate_bps)
{
    if (at->sw == sw) {
        plan->ports[plan->n_ports++] = (struct queue_plan_port) {
            .port = at->port,
            .rate_bps = rate_bps,
        };
    }
}

struct queue_plan *
queue_plan_create(const struct policy *policy, const struct topology *t,
                  int sw)
{
    struct queue_plan *plan = xzalloc(sizeof *plan);

    plan->kind = t->switches[sw].queues;
    plan->n_levels = policy->n_levels;
    plan->min_share = policy->min_share;
    plan->ports = xcalloc(2 * t->n_links + t->n_hosts + 1,
                          sizeof *plan->ports);
    if (plan->kind != QUEUES_NONE) {
        for (size_t i = 0; i < 2 * t->n_links; i++) {
            const struct topology_link *link = &t->links[i / 2];

            add_port(plan, sw, &link->ends[i % 2], link->capacity);
        }
        for (size_t i = 0; i < t->n_hosts; i++) {
            add_port(plan, sw, &t->hosts[i].at, t->hosts[i].capacity);
        }
    }
    return plan;
}

void
queue_plan_destroy(struct queue_plan *plan)
{
    if (plan) {
        free(plan->ports);
        free(plan);
    }
}

bool
queue_plan_equal(const struct queue_plan *a, const struct queue_plan *b)
{
    if (a->kind != b->kind || a->n_levels != b->n_levels
        || a->min_share != b->min_share || a->n_ports != b->n_ports) {
        return false;
    }
    for (size_t i = 0; i < a->n_ports; i++) {
        if (a->ports[i].port != b->ports[i].port
            || a->ports[i].rate_bps != b->ports[i].rate_bps) {
            return false;
        }
    }
    return true;
}

size_t
queue_plan_n_queues(const struct queue_plan *plan)
{
    return plan->kind == QUEUES_HTB ? plan->n_levels + 2 : 0;
}

int64_t
queue_plan_number(const struct queue_plan *plan, size_t i)
{
    return i <= (size_t) plan->n_levels ? i : DEFAULT_QUEUE;
}

void
queue_plan_port_config(const struct queue_plan *plan,
                       const struct queue_plan_port *port,
                       struct smap *config)
{
    if (plan->kind == QUEUES_HTB) {
        smap_add_format(config, "max-rate", "%"PRId64, port->rate_bps);
    } else if (plan->kind == QUEUES_POLICER) {
        int64_t bytes = port->rate_bps / 8;
        int64_t burst = bytes * BURST_SECONDS;

        smap_add_format(config, "cir", "%"PRId64, bytes);
        smap_add_format(config, "cbs", "%"PRId64,
                        MAX(burst, MIN_BURST_BYTES));
    }
}

void
queue_plan_queue_config(const struct queue_plan *plan,
                        const struct queue_plan_port *port, size_t i,
                        struct smap *config)
{
    int64_t min_rate = port->rate_bps * plan->min_share;

    smap_add_format(config, "min-rate", "%"PRId64,
                    MIN(MAX(min_rate, MIN_RATE_BPS), port->rate_bps));
    smap_add_format(config, "max-rate", "%"PRId64, port->rate_bps);
    smap_add_format(config, "priority", "%"PRId64,
                    queue_plan_number(plan, i));
}
