/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STAGE_START_H
#define STAGE_START_H 1

/* Measures how long a new stage takes to have its order on its hosts.
 *
 * Each step ends where the next one begins:
 *
 *    intent   from the begin of the stage, by the clock of its search, until
 *             the controller has read it
 *    decide   until an order has it
 *    push     until its rows have left to the agents, or the hosts database
 *             has them
 *    shim     until the connected hosts of its jobs have applied them
 *
 * A stage that ends before is not counted, nor one that a controller finds
 * when it begins to lead: stage_starts_forget().
 *
 *    stage_starts_run(&starts, &starting, &rows, time_msec());  // Often.
 *
 * Plain data.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "openvswitch/list.h"

enum stage_step {
    STAGE_INTENT,
    STAGE_DECIDE,
    STAGE_PUSH,
    STAGE_SHIM,
    N_STAGE_STEPS,
};
extern const char *const stage_step_names[N_STAGE_STEPS];

/* Classes of a histogram. */
#define STAGE_START_N_CLASSES 10
extern const struct stage_start_class {
    double most;       /* Seconds, of the last one infinite. */
    const char *limit; /* The same for Prometheus. */
} stage_start_classes[STAGE_START_N_CLASSES];

struct stage_starts {
    struct {
        uint64_t n[STAGE_START_N_CLASSES];
        double sum; /* Seconds. */
    } steps[N_STAGE_STEPS];
};

/* A part of struct stage. */
struct stage_start {
    struct ovs_list node; /* In the cluster's 'starting', or empty. */
    enum stage_step step; /* That runs. */
    long long at;         /* time_msec() when it began. */
    int64_t version;      /* Of the order's rows, from STAGE_PUSH on; -1 while
                           * they are not written. */
};

/* Versions of rows of Host_Wanted. */
struct stage_rows {
    int64_t written; /* With the last order, -1 until it is compared. */
    int64_t stored;  /* That agents were sent, or the hosts database has. */
};

void stage_starts_run(struct stage_starts *, struct ovs_list *starting,
                      const struct stage_rows *, long long now);
void stage_starts_forget(struct ovs_list *starting);

#endif /* controller/model/stage-start.h */
