/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_OUTLOOK_H
#define SIM_OUTLOOK_H 1

/* The running stages, as input of the judge of orders
 * (order/lookahead/judge.h).
 *
 * That is what a controller knows: how far each job is, what one of its
 * iterations moves on each port and how long it computes, and the rungs that
 * searches have announced.  Searches that arrive later, and which jobs survive
 * a rung, are not known to it.
 *
 *    struct outlook outlook;
 *
 *    outlook_init(&outlook, &live, NULL);
 *    judge = judge_create(&outlook.situation);
 *    ...job i of the judge is outlook.jobs[i]...
 *    judge_destroy(judge);
 *    outlook_uninit(&outlook);
 *
 * Part of the simulation, used by simulate.c only. */

#include "order/lookahead/judge.h"

struct live;
struct live_job;
struct progress_options;

struct outlook {
    struct judge_situation situation;
    const struct live_job **jobs; /* Those of 'situation'. */
};

/* Settles rates, and describes what is live now.  The early phases of jobs are
 * known by 'early', unless it is null. */
void outlook_init(struct outlook *, const struct live *,
                  const struct progress_options *early);
void outlook_uninit(struct outlook *);

#endif /* sim/run/outlook.h */
