/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LIVE_H
#define LIVE_H 1

/* The stages that are running, and how far each of their jobs is.
 *
 * What a job does next follows from what has ended: its computation, a phase
 * of a shard, an iteration, the stage that it belongs to.  This module knows
 * these rules and nothing of rates; a rate allocation, see rates.h, knows
 * rates and nothing of jobs.
 *
 *    live_init(&live, workload, fabric, &options, RATES_FILL);
 *    for (;;) {
 *        live.now = ...the next of live_next_event() and live.rates...;
 *        while ((flow = live.rates->class->pop(live.rates, live.now))) {
 *            live_flow_ended(&live, flow);
 *        }
 *        live_run_events(&live);
 *        if (live.units_changed) {
 *            ...order 'live.units'...
 *        }
 *        live.rates->class->update(live.rates, live.now);
 *    }
 *    live_uninit(&live);
 *
 * Part of the simulation, used by simulate.c and remaining.c only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/order.h"
#include "order/problem/account.h"
#include "order/problem/announcement.h"
#include "order/problem/iteration-weight.h"
#include "order/problem/lateness.h"
#include "order/problem/progress-curve.h"
#include "order/problem/trials.h"
#include "sim/fabric/paths.h"
#include "sim/rates/node-heap.h"
#include "sim/rates/rates.h"
#include "sim/rates/unit.h"
#include "sim/workload/random.h"

struct sim_job;
struct sim_options;
struct sim_stage;
struct workload;
struct workload_cojob;
struct workload_job;

enum live_state {
    LIVE_COMPUTING,
    LIVE_EXCHANGING,
    LIVE_DONE, /* Or not begun: a trial that waits for a place. */
};

struct live_job {
    const struct workload_job *job;
    struct live_stage *stage;
    struct sim_job *record;     /* In live's 'jobs'. */
    struct unit unit;
    double exchange_time;       /* workload_exchange_time(). */
    int64_t times;              /* Iterations that are the unit's work. */
    double work, busiest;       /* Seconds of all ports in an iteration, and of
                                 * its busiest port. */
    int64_t iterations_done;    /* In all rungs. */
    int64_t iterations_left;    /* In this rung, the current one included. */
    struct trial_rung *next;    /* The rung that a trial is on its way to; NULL
                                 * before it begins, and in stages. */
    double to_come;             /* Iterations that are expected of a trial
                                 * after 'iterations_left' and announced. */
    double promise;             /* See trials.h; 1 by default. */
    struct progress_curve *curve;       /* Reported metric, in live's 'curves';
                                 * NULL if it has none or the order does not
                                 * use it. */
    int64_t early_iteration;    /* See struct sim_job's 'early_end'; -1 if
                                 * that never comes. */
    enum live_state state;
    struct heap_node compute_end; /* 'key' is its time, while
                                   * LIVE_COMPUTING. */
    struct sim_random jitter;   /* Of its iterations. */
    int shards_left;            /* Shards with an exchange that has not
                                 * ended. */
    int *phase;                 /* Of each shard. */
    size_t *on_the_way;         /* Flows of each shard's phase. */
    struct flow *flows;         /* Of each transfer, by shard and phase. */
    size_t *first;              /* Of each shard's each phase in 'flows', one
                                 * more for the end. */
    size_t *place;              /* Of each port of 'unit' in the stage's. */
};

struct live_stage {
    const struct workload_cojob *cojob;
    struct sim_stage *record;   /* In live's 'stages'. */
    size_t n_jobs, jobs_left;
    struct live_job *jobs;
    struct trial_rung *rungs;   /* Of an asynchronous search: of each bracket
                                 * all rungs; otherwise NULL. */
    size_t n_begun;             /* Its jobs that have begun, the first ones. */
    int place;                  /* In the last problem, if it had stages. */
    double whole;               /* Lower bound of its isolated time,
                                 * seconds. */
    struct announcement announcement;
    double work;                /* Seconds of all ports in its iterations, if
                                 * orders see iterations. */
    double debt;                /* For what its owner was served, see
                                 * account.h. */
    struct iteration_need need; /* At the last decision, for weighted
                                 * iterations. */

    /* If orders see stages: the ports of all jobs, by number, and room for
     * what the stage needs of each. */
    size_t n_ports;
    int *ports;
    double *seconds;
};

struct live {
    const struct workload *workload;
    const struct sim_fabric *fabric;
    const struct sim_options *options;
    int last_level;             /* Level of a job before its first order; the
                                 * last one if orders are late. */
    int n_seen_ports;           /* Ports that orders see, the first ones. */
    bool weighted;              /* Orders see iterations weighted by what their
                                 * stages still need. */
    enum order_unit ordered;    /* What orders see.  Where that is stages,
                                 * units are jobs all the same: those with
                                 * slack wait, see slack.h. */
    double now;
    struct heap_node *arrivals; /* Of each cojob. */
    struct node_heap arriving;  /* Those to come. */
    struct node_heap computing; /* Jobs that compute, by end. */
    uint64_t n_computations;
    struct paths paths;
    struct rates *rates;
    struct unit_maker maker;
    size_t n_units, allocated_units;
    struct unit **units; /* That have begun and not ended, by id. */
    uint64_t n_begun_units, n_begun_flows;
    struct candor candor;       /* Of the running stages. */
    size_t *owners;             /* Index of the account of each cojob, which
                                 * is its own without a user. */
    struct account *accounts;   /* One for each cojob; not all are used. */
    double *served;             /* Work of the ended stages of each cojob. */
    struct live_stage **running; /* Of each cojob, NULL without. */
    size_t n_stages, n_ended;   /* That began, of those that ended. */
    struct sim_stage *stages;
    size_t n_jobs;
    struct sim_job *jobs;       /* By cojob, then by job. */
    size_t *first_job;          /* Of each cojob in 'jobs'. */
    struct sim_bests *bests;    /* Of each cojob. */
    struct progress_curve *curves;      /* Of each of 'jobs' if the order
                                 * looks at progress, else NULL. */
    struct plain_times *plain;          /* Of each cojob. */
    double *factors;            /* Of the keys of 'jobs' by the last plan, see
                                 * plan.h; NULL if nothing looks ahead. */
    bool units_changed;         /* A unit began or ended.  The simulation
                                 * resets it. */
};

void live_init(struct live *, const struct workload *,
               const struct sim_fabric *, const struct sim_options *,
               enum rates_rule);

/* Leaves 'stages', 'jobs' and 'bests' to the caller. */
void live_uninit(struct live *);

/* Continues the job of 'flow', which the rate allocation has popped. */
void live_flow_ended(struct live *, struct flow *);

/* Returns true if orders know that the search of 'stage' is asynchronous. */
bool live_is_asynchronous(const struct live_stage *);

/* Returns true if promising trials of such searches go first. */
bool live_is_promising(const struct live *);

/* Gives the cojobs of each user one account. */
void live_find_owners(struct live *);

/* Sets 'debt' of the running stages. */
void live_find_debts(const struct live *);

/* Returns the share of what an iteration of 'job' moves that orders know.  As
 * in the controller (controller/model/demand.h), bytes are measured from the
 * first iteration on, and what two to seven iterations can have moved at least
 * limits what was announced. */
double live_known_share(const struct live_job *);

/* Returns the time of the next arrival or end of a computation, INFINITY
 * without one. */
double live_next_event(const struct live *);

/* Runs the events until 'now'. */
void live_run_events(struct live *);

/* Fills the problem with the remaining work of the live units, in their order,
 * or of the stages that they are part of.  Rates must be settled, unless these
 * units are weighted iterations. */
void remaining_problem(const struct live *, const struct progress_options *,
                       struct order_problem *);

/* Merges the early traits of 'job' at 'now', by the same fit of the metric as
 * in the controller.  A job without a metric is assumed to improve like 1 / k
 * and not to be early. */
void remaining_early(const struct live_job *, const struct progress_options *,
                     double now, struct order_traits *);

/* Returns the isolated time of 'job' until the end of its rung, seconds. */
double remaining_alone(const struct live *, const struct live_job *);

/* Fills 'isolated' of all stages, which have ended, and adds what each port
 * carried for them to 'port_bytes'.  Returns the lower bound on the mean of
 * the stages' completion times for the recorded begin times: the better of the
 * certificate and 'rounds' rounds of ascent_bound(), which '*kind' names. */
double recorded_bound(struct live *, int rounds, double *port_bytes,
                      enum order_bound *kind);

#endif /* sim/run/live.h */
