/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/stage-start.h"

#include <math.h>

#include "controller/model/cluster.h"
#include "util.h"

const char *const stage_step_names[N_STAGE_STEPS] = {
    [STAGE_INTENT] = "intent",
    [STAGE_DECIDE] = "decide",
    [STAGE_PUSH] = "push",
    [STAGE_SHIM] = "shim",
};

const struct stage_start_class stage_start_classes[STAGE_START_N_CLASSES] = {
    { 0.01, "0.01" }, { 0.025, "0.025" },  { 0.05, "0.05" }, { 0.1, "0.1" },
    { 0.25, "0.25" }, { 0.5, "0.5" },      { 1, "1" },       { 2.5, "2.5" },
    { 5, "5" },       { INFINITY, "+Inf" }
};

/* Ends the running step of 'start' at 'now' and begins the next one. */
static void
end_step(struct stage_starts *starts, struct stage_start *start, long long now)
{
    double seconds = MAX(now - start->at, 0) / 1000.0;
    size_t i = 0;

    while (seconds > stage_start_classes[i].most) {
        i++;
    }
    starts->steps[start->step].n[i]++;
    starts->steps[start->step].sum += seconds;
    start->step++;
    start->at = now;
}

/* Returns true if all connected hosts of 'stage' have applied 'version' or, if
 * it has not changed their rows, what they have. */
static bool
has_applied(const struct stage *stage, int64_t version)
{
    const struct shash_node *node;

    for (size_t i = 0; i < stage->n_jobs; i++) {
        SHASH_FOR_EACH (node, &stage->jobs[i]->traffic) {
            const struct host *host =
                ((struct job_traffic *) node->data)->host;

            if (host->connected
                && host_behind(host) > MAX(host->wanted - version, 0)) {
                return false;
            }
        }
    }
    return true;
}

static void
forget(struct stage_start *start)
{
    ovs_list_remove(&start->node);
    ovs_list_init(&start->node);
}

void
stage_starts_run(struct stage_starts *starts, struct ovs_list *starting,
                 const struct stage_rows *rows, long long now)
{
    struct stage *stage;

    LIST_FOR_EACH_SAFE(stage, start.node, starting)
    {
        struct stage_start *start = &stage->start;

        if (start->step == STAGE_INTENT) {
            end_step(starts, start, stage->known_at);
        }
        if (start->step == STAGE_DECIDE && stage->rank >= 0) {
            end_step(starts, start, now);
            start->version = -1;
        }
        if (start->step == STAGE_PUSH) {
            start->version =
                start->version < 0 ? rows->written : start->version;
            if (start->version >= 0 && rows->stored >= start->version) {
                end_step(starts, start, now);
            }
        }
        if (start->step == STAGE_SHIM && has_applied(stage, start->version)) {
            end_step(starts, start, now);
            forget(start);
        }
    }
}

void
stage_starts_forget(struct ovs_list *starting)
{
    struct stage *stage;

    LIST_FOR_EACH_SAFE(stage, start.node, starting)
    {
        forget(&stage->start);
    }
}
