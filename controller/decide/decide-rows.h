/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_ROWS_H
#define DECIDE_ROWS_H 1

/* A copy of the last order, for reports.
 *
 * Jobs and stages come and go between two orders, but a report must explain
 * the order that is in force.  So its input and its result are copied as names
 * and numbers.
 *
 *    decide_rows_set(&rows, cluster, policy, &dp, decider, &assigned, now);
 *    json = decide_rows_to_json(&rows);
 *    json = decide_rows_explain(&rows, "asha/t0");
 *    decide_rows_clear(&rows);
 *
 * Owns all that it refers to.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/model/cluster.h"
#include "order/order.h"

struct cluster;
struct job_assignments;
struct decide_problem;
struct decision_log;
struct json;
struct policy;

struct stage_row {
    int level;                  /* Of its best job. */
    char *cojob;
    char *owner;                /* See struct cojob; NULL if unknown. */
    int rung;
    int64_t iterations;         /* That each of its jobs must reach. */
    enum override_kind override;
    enum order_decider decider; /* What decided its rank. */
    double weight;              /* Of its cojob, by the intent. */
    double urgency;             /* Weight in the order: by the policy, and
                                 * increased by aging. */
    double age;                 /* Seconds since it began. */
    double work;                /* Seconds of all ports that its search still
                                 * needs; 0 unless iterations are ordered. */
    double debt;                /* Part of 'work' for what its owner was
                                 * served, see account.h. */
    double completion;          /* Estimated seconds until it ends. */
    double plain;               /* Seconds that it takes without an order, by
                                 * simulation; 0 if unknown. */
    enum stage_idle idle;
    bool counted;               /* The iterations of all its jobs are known;
                                 * otherwise 'completion' means nothing. */
    double remaining;           /* Demand on its bottleneck, seconds. */
    int bottleneck;             /* Port of its largest demand, or -1. */
    size_t n_demands;
    struct order_demand *demands;       /* Remaining, by port. */
};

struct job_row {
    char *name;                 /* "COJOB/JOB". */
    size_t stage;               /* Its stage's rank. */
    int rank;                   /* See struct job_assignment. */
    int level;
    enum override_kind override;
    enum order_decider decider; /* What decided its rank. */
    int64_t override_id;        /* 0 without an override. */
    int64_t iterations;         /* Remaining. */
    bool counted;               /* 'iterations' is known. */
    double period;              /* Seconds per iteration, 0 if unknown. */
    double isolated;            /* Predicted seconds to the end of its rung
                                 * without competitors. */
    double slack;               /* Seconds; 0 unless stages are ordered. */
    double urgency, chance;     /* As in struct decide_job. */
    int64_t target;             /* Iteration that it must reach next. */
    bool equal;                 /* It is a trial that goes as those of its
                                 * search. */
    double gain;                /* As in struct order_traits. */
    bool early;                 /* As in struct order_traits. */
    double remaining;           /* Demand on its bottleneck, seconds. */
    int bottleneck;             /* Port of its largest demand, or -1. */
    size_t n_demands;
    struct order_demand *demands;       /* Of one iteration, by port. */
};

struct decide_rows {
    enum order_kind kind;
    enum order_unit unit;       /* What was ordered. */
    enum order_decider decider; /* What decided the order. */
    uint8_t *dscp;              /* Of each level. */
    struct stage_row *stages;   /* By rank. */
    size_t n_stages;
    struct job_row *jobs; /* Sorted by rank. */
    size_t n_jobs;
    char **ports;               /* Names, by port. */
    size_t n_ports;
};

void decide_rows_set(struct decide_rows *, const struct cluster *,
                     const struct policy *, const struct decide_problem *,
                     enum order_decider, const struct job_assignments *,
                     long long now);
void decide_rows_clear(struct decide_rows *);

/* The array "order" of "controller/order". */
struct json *decide_rows_to_json(const struct decide_rows *);
struct json *decide_rows_explain(const struct decide_rows *, const char *job);

/* Appends new stages, and stages that overtook others, to 'log', unless it is
 * NULL.  'old_ranks' has, by the current rank, the previous rank of each
 * stage, -1 if new.  Returns the number of those that overtook others. */
int decide_rows_log_changes(const struct decide_rows *, const int *old_ranks,
                            struct decision_log *log);

#endif /* controller/decide/decide-rows.h */
