/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-override.h"

#include <stdlib.h>
#include <string.h>

#include "controller/decide/decide-problem.h"
#include "controller/decide/job-assignment.h"
#include "controller/model/cluster.h"
#include "order/order.h"
#include "policies/policy.h"
#include "util.h"

/* The range of decide_override_class(). */
#define FIRST_CLASS (-1)
#define LAST_CLASS 3

static int
class_of(enum override_kind kind, enum stage_idle idle)
{
    return (kind == OVERRIDE_PIN       ? FIRST_CLASS
            : kind == OVERRIDE_PAUSE   ? 2
            : kind == OVERRIDE_EXCLUDE ? LAST_CLASS
                                       : idle != STAGE_BUSY);
}

int
decide_override_class(const struct decide_job *dj)
{
    return class_of(dj->job->override,
                    dj->job->stage ? dj->job->stage->idle : STAGE_BUSY);
}

static int
class_of_entry(const struct decide_problem *dp, int entry)
{
    return (
        dp->unit == ORDER_UNIT_STAGE
            ? class_of(dp->stages[entry]->override, dp->stages[entry]->idle)
            : decide_override_class(&dp->jobs[entry]));
}

bool
decide_override_order(const struct decide_problem *dp, struct order_result *r)
{
    int *sorted = xcalloc(MAX(r->n, 1), sizeof *sorted);
    size_t n = 0;
    bool changed;

    for (int class = FIRST_CLASS; class <= LAST_CLASS; class++) {
        for (size_t k = 0; k < r->n; k++) {
            if (class_of_entry(dp, r->order[k]) == class) {
                sorted[n++] = r->order[k];
            }
        }
    }
    changed = r->n && memcmp(sorted, r->order, r->n * sizeof *sorted) != 0;
    if (changed) {
        memcpy(r->order, sorted, r->n * sizeof *sorted);
    }
    free(sorted);
    return changed;
}

/* Returns true if only levels define priority: a pinned job then needs a level
 * of its own. */
static bool
levels_decide(const struct policy *policy)
{
    return (order_classes[policy->order.kind].service == ORDER_SERVICE_SHARE);
}

void
decide_override_levels(const struct policy *policy,
                       struct job_assignment *assigned, size_t n)
{
    int last = policy->n_levels - 1;
    bool pins = false;

    for (size_t i = 0; i < n; i++) {
        pins |= assigned[i].dj->job->override == OVERRIDE_PIN;
    }
    for (size_t i = 0; i < n; i++) {
        int class = decide_override_class(assigned[i].dj);

        if (class > 0) {
            assigned[i].level = last;
        } else if (pins && levels_decide(policy)) {
            assigned[i].level = (class < 0 ? 0
                               : MAX(assigned[i].level, MIN(1, last)));
        }
    }
}

bool
decide_override_pins(const struct cluster *c)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->jobs) {
        const struct job *job = node->data;

        if (job->live && job->override == OVERRIDE_PIN) {
            return true;
        }
    }
    return false;
}
