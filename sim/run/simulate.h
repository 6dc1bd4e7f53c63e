/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIMULATE_H
#define SIMULATE_H 1

/* Runs a workload under an order, without a network.
 *
 * What an order is worth should be known in seconds and without a cluster, and
 * by the same code that the controller runs.  The simulation goes from event
 * to event (a cojob arrives, a computation or a flow ends); between two of
 * them all rates are constant, so the times are exact up to rounding and do
 * not depend on a step.  Whenever a unit of the order (a stage, a job or an
 * exchange, see 'enum order_unit') begins or ends or has sent its limit, and
 * periodically if the order looks at progress, order_compute() gets what all
 * live units still have to do; for an order of whole stages (order_is_whole())
 * only when a stage has begun or ended.  How its answer becomes rates is said
 * in rates-fill.c and rates-madd.c.
 *
 * Not simulated: loss, the ramp of TCP, a policy's coalesce_ms, retag_ms and
 * lease_ms; 'late_s' has the time that decisions take to reach hosts.
 *
 *    struct sim_options options = {
 *        .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
 *    };
 *    struct sim_result result;
 *
 *    simulate(workload, &options, &result);
 *    ...result.mean, result.stages[i].end...
 *    sim_result_uninit(&result);
 *
 * An asynchronous search is one stage, from its arrival to the end of its last
 * trial.  Which trials go on depends on which arrive first at a rung, and so
 * on the order: what a run did is in its jobs' 'iterations'.
 *
 * A simulation only reads the workload and shares nothing. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/order.h"
#include "order/problem/progress-curve.h"

struct sim_flow;
struct sim_job;
struct workload;

/* How flows get their rates. */
enum sim_service {
    SIM_SERVICE_LEVELS, /* Levels strictly, max-min fair inside. */
    SIM_SERVICE_EXACT,  /* By the order's class: ORDER_SERVICE_FILL
                         * and ORDER_SERVICE_MADD by rank,
                         * ORDER_SERVICE_SHARE by levels. */
};

struct sim_options {
    struct order_options order;
    enum sim_service service;
    double min_share;           /* Share of each port that each level gets
                                 * first, at most an equal part; only with
                                 * levels. */
    double refresh_s;           /* Longest time between two orders of weighted
                                 * iterations; 0 orders only when units change.
                                 */
    bool present_only;          /* Weighted iterations are ordered only while
                                 * they exchange, by what remains of them. */
    int lookahead_runs;         /* Runs of the judge in a second, see plan.h; 0
                                 * does not look ahead.  Only for weighted
                                 * iterations. */
    double lookahead_error;     /* Plans find sizes and computing times that
                                 * are too large or too small by this share,
                                 * drawn for each job. */
    double late_s;              /* Seconds from the begin or end of a unit to
                                 * the order that regards it; until then its
                                 * job keeps its level.  Only with levels.
                                 * Above 0, orders of coflows see one iteration
                                 * of each job until its rung ends, as a
                                 * controller does, which sees no exchanges. */
    double efficiency;          /* Payload per byte on the wire, 0 is 1. */
    double start_s;             /* Seconds before the first iteration of a
                                 * job. */
    double jitter_s;            /* Mean of the seconds that an iteration takes
                                 * in addition, exponentially distributed. */
    uint64_t seed;              /* Of the jitter. */
    double aging_s, aging_slowdown;     /* See order_problem_age(). */
    double latest;         /* For weighted iterations, see lateness.h. */
    double owner_memory_s; /* See account.h. */
    struct progress_options early; /* How metrics are judged by orders
                                    * that look at progress.  'theta' is
                                    * the one of 'order'. */

    bool hosts_only;            /* Orders see the ports of hosts only, as
                                 * those of a controller without a
                                 * topology. */
    int bound_rounds;           /* Of the ascent, see ascent.h, for the
                                 * result's bound; 0 is the certificate
                                 * alone. */

    /* Called after each event if not null.  The simulation ends without a
     * result, so without stages, when it returns anything but 0, as
     * interrupt_caught() does. */
    int (*stopped)(void);

    /* Called after each event if not null. */
    void (*progress)(void *aux, size_t n_ended, size_t n_stages);

    /* Called if not null with the input of each order. */
    void (*input)(void *aux, const struct order_problem *);

    /* Called if not null when a job has reported its metric at 'now'. */
    void (*reported)(void *aux, const struct sim_job *, double metric,
                     double now);

    /* Called if not null when a trial was judged at a rung, from 0 on. */
    void (*judged)(void *aux, const struct sim_job *, size_t rung,
                   bool passes);

    /* Called if not null when 'flows', all that move, are about to go on at
     * their rates for 'seconds'; see rates.h. */
    void (*observe)(void *aux, double seconds, const struct sim_flow *flows,
                    size_t n_flows);
    void *aux;
};

/* A completed stage. */
struct sim_stage {
    size_t cojob;               /* Index in the workload. */
    size_t rung;
    double begin, end;          /* Seconds. */
    double isolated;            /* Lower bound of its isolated time,
                                 * seconds. */
};

/* A completed job. */
struct sim_job {
    size_t cojob, job;          /* Indexes in the workload. */
    int64_t iterations;         /* That it has done. */
    double begin, end;          /* From its first rung to its last, seconds. */
    double early_end;           /* When its metric was reported to be 0.9 of
                                 * that after its last planned iteration;
                                 * INFINITY if never or without a curve. */
};

/* The best metrics that the trials of a search have reported, each better than
 * those before it. */
struct sim_bests {
    size_t n, allocated;
    struct sim_best {
        double time, metric;
    } * bests;
};

struct sim_result {
    struct sim_bests *bests; /* Of each of 'n_cojobs' cojobs. */
    size_t n_cojobs;
    size_t n_stages;
    struct sim_stage *stages;   /* In the order in which they began. */
    size_t n_jobs;
    struct sim_job *jobs;       /* By cojob, then by job. */
    int n_ports;
    double *port_bytes;         /* Bytes that each port carried. */

    /* Completion times of stages (end - begin), seconds.  Percentiles are
     * nearest ranks. */
    double mean, p50, p95, p99, max;

    double bound; /* Lower bound on the mean of every schedule of
                   * stages with the same begin times.  Where
                   * jobs iterate, workload-bound.h is closer. */
    enum order_bound bound_kind;        /* The bound that 'bound' is. */
    double gap;                 /* 'mean' / 'bound'; 1 if both are 0. */
    size_t decisions;
    double decision_us_p99;     /* 99th percentile of the time of
                                 * order_compute(), microseconds. */
    double gained;              /* Mean of order_result's 'improvement'. */
    size_t plan_runs;           /* Runs of the judge... */
    double plan_s;              /* ...and processor time of plans. */
};

void simulate(const struct workload *, const struct sim_options *,
              struct sim_result *);
void sim_result_uninit(struct sim_result *);

/* Sorts the stages by cojob, then by rung. */
void sim_result_sort(struct sim_result *);

#endif /* sim/run/simulate.h */
