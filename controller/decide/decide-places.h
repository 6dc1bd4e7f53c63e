/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_PLACES_H
#define DECIDE_PLACES_H 1

/* From an order to the jobs' places in it.
 *
 *
 * Motivation
 * ==========
 *
 * The data plane serves jobs by level.  An order of jobs, or of coflows, has
 * their levels; in an order of stages, those jobs of a stage wait that would
 * be done long before it, see slack.h.  Slack is measured, so two jobs whose
 * slack is about the same keep the places that they had.
 *
 *
 * Usage
 * =====
 *
 *    decide_places_init(&places, &dp, policy, &result);
 *    ...places.jobs[k].job is the k-th to be served, at places.jobs[k].level;
 *       places.stages[k] is the stage whose first job is k-th...
 *    decide_places_uninit(&places);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Owns its arrays; refers to the problem, which must outlive it.  Reads the
 * jobs' old ranks and changes nothing.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>

struct decide_job;
struct decide_problem;
struct order_result;
struct policy;

struct decide_place {
    const struct decide_job *dj;
    int level;                  /* 0 to the policy's n_levels - 1. */
    double slack;               /* Seconds, of jobs of ordered stages; 0
                                 * otherwise. */
    bool waits;                 /* Others go before it on one of its ports, or
                                 * share it if all are served alike. */
};

struct decide_places {
    struct decide_place *jobs;  /* By rank. */
    size_t n_jobs;
    int *stages;                /* Indexes of the problem's stages, by rank:
                                 * the order's or, if that is not of stages,
                                 * that of their first jobs. */
    int *stage_levels;          /* Of each stage, by index: its best job's;
                                 * without jobs, the order's, or 0. */
    double *completions;        /* Of each stage, by index: seconds until it
                                 * ends, by the order's estimate. */
    size_t n_stages;
};

void decide_places_init(struct decide_places *, const struct decide_problem *,
                        const struct policy *, const struct order_result *);
void decide_places_uninit(struct decide_places *);

#endif /* controller/decide/decide-places.h */
