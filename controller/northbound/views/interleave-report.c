/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/interleave-report.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/decide/decide-problem.h"
#include "controller/decide/policy-file.h"
#include "controller/model/demand.h"
#include "controller/northbound/views/control.h"
#include "order/baselines/interleave.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

static struct json *
port_to_json(const struct interleave_port *port, char *name,
             const struct decide_problem *dp)
{
    struct json *jobs = json_array_create_empty();
    struct json *json = json_object_create();

    for (size_t i = 0; i < port->n_stages; i++) {
        const struct job *job = dp->jobs[port->stages[i]].job;

        json_array_add(jobs, json_string_create(job->full_name));
    }
    json_object_put(json, "port", json_string_create_nocopy(name));
    json_object_put(json, "jobs", jobs);
    json_put_real(json, "utilisation", port->utilisation);
    json_put_boolean(json, "compatible", port->compatible);
    json_put_real(json, "unshifted", port->unshifted);
    json_put_real(json, "excess", port->excess);
    return json;
}

/* Returns the period, the burst and the shift of each periodic job. */
static struct json *
jobs_to_json(const struct decide_problem *dp, const struct interleave *il)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < dp->n_jobs; i++) {
        const struct order_stage *s = &dp->op->stages[i];

        if (interleave_duty(s) > 0) {
            struct json *o = json_object_create();

            json_object_put_string(o, "job", dp->jobs[i].job->full_name);
            json_put_real(o, "period_s", s->traits.period);
            json_put_real(o, "burst_s", s->traits.burst);
            json_put_real(o, "shift_s", il->shift[i]);
            json_array_add(array, o);
        }
    }
    return array;
}

static char *
port_to_name(const struct cluster *c, int port)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        if (host->index == port / N_DIRS) {
            return demand_port_name(host, port % N_DIRS);
        }
    }
    OVS_NOT_REACHED();
}

struct json *
interleave_report(const struct controller *ctl)
{
    struct json *ports = json_array_create_empty();
    struct json *json = json_object_create();
    struct order_problem *op = order_problem_create(0);
    struct decide_problem dp;
    struct interleave *il;

    decide_problem_init(&dp, op, ctl->cluster, policy_file_get(ctl->policy),
                        ORDER_UNIT_JOB, time_wall_msec());
    il = interleave_create(op);
    for (size_t i = 0; i < il->n_ports; i++) {
        char *name = port_to_name(ctl->cluster, il->ports[i].port);

        json_array_add(ports, port_to_json(&il->ports[i], name, &dp));
    }
    json_object_put(json, "ports", ports);
    json_object_put(json, "jobs", jobs_to_json(&dp, il));
    interleave_destroy(il);
    decide_problem_uninit(&dp);
    order_problem_destroy(op);
    return json;
}
