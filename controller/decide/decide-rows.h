/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_ROWS_H
#define DECIDE_ROWS_H 1

/* The last order, for people.
 *
 *
 * Motivation
 * ==========
 *
 * Jobs and stages come and go between two orders, and who asks why a job has
 * its place must get the answer of the order that gave it.  So what went into
 * an order and what came out of it are kept, as names and numbers.
 *
 *
 * Usage
 * =====
 *
 *    decide_rows_set(&rows, cluster, policy, &dp, &places, now);
 *    json = decide_rows_to_json(&rows);
 *    json = decide_rows_explain(&rows, "asha/t0");
 *    decide_rows_clear(&rows);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Owns all that it refers to.  Main thread only. */

#include <stddef.h>
#include <stdint.h>

#include "order/order.h"
#include "controller/model/overrides.h"

struct cluster;
struct decide_places;
struct decide_problem;
struct json;
struct policy;

/* One stage. */
struct stage_row {
    int level;                  /* Of its best job. */
    char *cojob;
    int rung;
    enum override_kind override;
    double weight;              /* Of its cojob, as the intent has it. */
    double urgency;             /* The weight that it was ordered with: by
                                 * the policy, and grown while it waits. */
    double age;                 /* Seconds since it began. */
    double completion;          /* Seconds until it ends, by the estimate for
                                 * what is ordered. */
    double remaining;           /* Seconds of the port that it needs most. */
    int bottleneck;             /* That port, or -1. */
    size_t n_demands;
    struct order_demand *demands;       /* That are left, by port. */
};

/* One job. */
struct job_row {
    char *name;                 /* "COJOB/JOB". */
    size_t stage;               /* Its stage's rank. */
    int level;
    enum override_kind override;
    int64_t override_id;        /* 0 if there is none. */
    int64_t left;               /* Iterations. */
    double period;              /* Seconds from iteration to iteration, 0 if
                                 * not known. */
    double alone;               /* Seconds that it would take alone, as
                                 * foreseen. */
    double slack;               /* Seconds, of jobs of ordered stages. */
    double gain;                /* As in struct order_traits, */
    bool early;                 /* and this too. */
    double remaining;           /* Seconds of the port that it needs most. */
    int bottleneck;             /* That port, or -1. */
    size_t n_demands;
    struct order_demand *demands;       /* Of one iteration, by port. */
};

struct decide_rows {
    enum order_kind kind;
    uint8_t *dscp;              /* Of each level. */
    struct stage_row *stages;   /* By rank. */
    size_t n_stages;
    struct job_row *jobs;       /* By rank. */
    size_t n_jobs;
    char **ports;               /* Names, by port. */
    size_t n_ports;
};

void decide_rows_set(struct decide_rows *, const struct cluster *,
                     const struct policy *, const struct decide_problem *,
                     const struct decide_places *, int64_t now);
void decide_rows_clear(struct decide_rows *);

struct json *decide_rows_to_json(const struct decide_rows *);
struct json *decide_rows_explain(const struct decide_rows *,
                                 const char *job);

#endif /* controller/decide/decide-rows.h */
