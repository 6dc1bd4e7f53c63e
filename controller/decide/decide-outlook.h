/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_OUTLOOK_H
#define DECIDE_OUTLOOK_H 1

/* The running stages of a decision, as input of the judge of orders
 * (order/lookahead/judge.h).
 *
 *    struct decide_outlook *outlook = decide_outlook_create(&dp, c, policy,
 *                                                           ends, now);
 *    plan_improve(&outlook->situation, &options, outlook->factors);
 *    ...job 'jobs[i]' has factor 'factors[i]'...
 *    decide_outlook_destroy(outlook);
 *
 * Searches are planned to the end of the last rung that they have announced.
 * Where a job is in its iteration is not known: it is assumed to compute, and
 * to have done half of it.  Its flows are those of iteration-traffic.h, first
 * those to servers, then those from them; where sender and receiver are not
 * known, or on more than 128 hosts, there is one for each port.  Of long
 * rungs, several iterations are regarded as one.  Links between switches are
 * left out.  Stages that wait because of an override, or because they are
 * idle, are left out, too: others have the network before them.
 *
 * It refers to nothing of the cluster, so that another thread may use it. */

#include "order/lookahead/judge.h"

struct cluster;
struct decide_problem;
struct policy;
struct stage;

struct decide_outlook {
    struct judge_situation situation;
    char **jobs;     /* Full name of each job. */
    double *factors; /* Of each job: the factor of the last plan. */
    double grain;    /* Real iterations of one of the judge. */
    double *left;    /* Of the judge's iterations of each job in its
                      * stage, not rounded. */
    double estimate; /* Weighted sum of when the stages end. */
};

/* Returns the id of the search that runs 'stage'. */
uint64_t decide_outlook_id(const struct stage *);

struct decide_outlook *decide_outlook_create(const struct decide_problem *,
                                             const struct cluster *,
                                             const struct policy *,
                                             const double ends[],
                                             long long now);
void decide_outlook_destroy(struct decide_outlook *);

#endif /* controller/decide/decide-outlook.h */
