/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LIVE_H
#define LIVE_H 1

/* The stages that are running, and how far each of their jobs is.
 *
 *
 * Motivation
 * ==========
 *
 * What a job does next follows from what has ended: its computation, a phase
 * of a shard, an iteration, the stage that it belongs to.  This module knows
 * these rules and nothing of rates; simulate.c knows rates and nothing of
 * jobs.
 *
 *
 * Usage
 * =====
 *
 *    live_init(&live, workload);
 *    for (;;) {
 *        ...find the time 'live.now' of the next event...
 *        live_flow_ended(&live, &flow);      // For each flow that ended.
 *        live_run_events(&live);
 *        if (live.stages_changed) {
 *            ...order 'live.stages'...
 *        }
 *    }
 *    live_uninit(&live);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Part of the simulation, used by simulate.c and remaining.c only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/event-queue.h"
#include "sim/rates.h"

struct live_stage;
struct sim_stage;
struct workload;

enum live_state { LIVE_COMPUTING, LIVE_EXCHANGING, LIVE_DONE };

struct live_job {
    const struct workload_job *job;
    struct live_stage *stage;
    double exchange_time;       /* workload_exchange_time(). */
    int64_t iterations_left;    /* The running one included. */
    enum live_state state;
    double compute_end;         /* While LIVE_COMPUTING. */
    int shards_left;            /* Shards whose exchange has not ended. */
    int *phase;                 /* Of each shard. */
    size_t *on_the_way;         /* Flows of each shard's phase. */
};

struct live_stage {
    const struct workload_cojob *cojob;
    struct sim_stage *record;   /* In live's 'records'. */
    size_t n_jobs, jobs_left;
    struct live_job *jobs;
    size_t index;               /* In live's 'stages'. */
    int level;                  /* By the last decision. */
};

struct live {
    const struct workload *workload;
    double now;
    struct event_queue events;
    size_t n_flows, allocated_flows;
    struct sim_flow *flows;
    size_t n_stages, allocated_stages;
    struct live_stage **stages; /* Running. */
    size_t n_records, n_ended;
    struct sim_stage *records;  /* Of all stages that began. */
    bool stages_changed;        /* A stage began or ended.  The simulation */
    bool flows_changed;         /* resets both. */
};

void live_init(struct live *, const struct workload *);

/* Leaves 'records' to the caller. */
void live_uninit(struct live *);

/* Lets go on what waited for 'flow', which is no longer in 'flows'. */
void live_flow_ended(struct live *, const struct sim_flow *);

/* Runs the events until 'now'. */
void live_run_events(struct live *);

/* A problem for order_compute() of what the live stages still have to do, in
 * their order.  'aging_s' is as in struct sim_options. */
struct order_problem *remaining_problem(const struct live *, double aging_s);

/* The lower bound on the mean of the stages' completion times when all of them
 * began as recorded. */
double recorded_bound(const struct workload *, const struct sim_stage *,
                      size_t n);

#endif /* sim/live.h */
