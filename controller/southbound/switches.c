/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/switches.h"

#include "controller/southbound/openflow.h"
#include "openvswitch/json.h"
#include "policies/policy.h"
#include "util.h"

#define CONTROL_QUEUE 0
#define DEFAULT_QUEUE 7

struct switches {
    size_t n, allocated;
    struct openflow **switches;
};

struct switches *
switches_create(void)
{
    return xzalloc(sizeof(struct switches));
}

void
switches_destroy(struct switches *ss)
{
    if (ss) {
        for (size_t i = 0; i < ss->n; i++) {
            openflow_destroy(ss->switches[i]);
        }
        free(ss->switches);
        free(ss);
    }
}

void
switches_add(struct switches *ss, const char *target)
{
    if (ss->n == ss->allocated) {
        ss->switches = x2nrealloc(ss->switches, &ss->allocated,
                                  sizeof *ss->switches);
    }
    ss->switches[ss->n++] = openflow_create(target);
}

void
switches_set(struct switches *ss, const struct policy *policy,
             int64_t generation)
{
    struct openflow_queue queues[POLICY_MAX_LEVELS + 2];
    size_t n = 0;

    queues[n++] = (struct openflow_queue) { policy->control_dscp,
                                            CONTROL_QUEUE };
    for (int i = 0; i < policy->n_levels; i++) {
        queues[n++] = (struct openflow_queue) { policy->dscp[i],
                                                CONTROL_QUEUE + 1 + i };
    }
    queues[n++] = (struct openflow_queue) { policy->default_dscp,
                                            DEFAULT_QUEUE };
    for (size_t i = 0; i < ss->n; i++) {
        openflow_set(ss->switches[i], generation, queues, n);
    }
}

void
switches_run(struct switches *ss)
{
    for (size_t i = 0; i < ss->n; i++) {
        openflow_run(ss->switches[i]);
    }
}

void
switches_wait(struct switches *ss)
{
    for (size_t i = 0; i < ss->n; i++) {
        openflow_wait(ss->switches[i]);
    }
}

struct json *
switches_status(const struct switches *ss)
{
    struct json *status = json_object_create();
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < ss->n; i++) {
        json_array_add(array, openflow_status(ss->switches[i]));
    }
    json_object_put(status, "switches", array);
    return status;
}
