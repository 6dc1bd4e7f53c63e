/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FAIR_COMPARISON_H
#define FAIR_COMPARISON_H 1

/* Compares the policy with fair sharing on the stages that have ended.
 *
 * The result of fair sharing cannot be measured while another policy is in
 * force.  Instead, the simulator replays the demand of the last
 * FAIR_COMPARISON_STAGES stages, with their real start times, under the policy
 * and under fair sharing with the same levels.  Both results are predictions,
 * because the simulated network is ideal and the computing time of iterations
 * is an estimate: compare them with each other, not with measured times.
 *
 * A simulation can take seconds and must not delay an order.  A child process
 * runs "stagecoach policy whatif" at the lowest priority, with a time limit,
 * at most once a minute and only if a stage has ended since.  If it fails, the
 * previous result stays.
 *
 *    if (fair_comparison_is_due(fc, newest)) {
 *        stages = ...the last FAIR_COMPARISON_STAGES...
 *    }
 *    fair_comparison_run(fc, stages, newest, policy);
 *    fair_comparison_wait(fc, newest);
 *    json = fair_comparison_to_json(fc);
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct fair_comparison;
struct json;
struct policy;

#define FAIR_COMPARISON_STAGES 200

struct fair_comparison *fair_comparison_create(void);
void fair_comparison_destroy(struct fair_comparison *);

/* Returns true if a simulation may start.  'newest' is when the last stage
 * ended, epoch ms, 0 if none has. */
bool fair_comparison_is_due(const struct fair_comparison *, int64_t newest);
bool fair_comparison_is_running(const struct fair_comparison *);

/* Starts a simulation of 'stages', {"stages": [...]} as in history.h, or
 * continues the running one if 'stages' is NULL.  Takes ownership of
 * 'stages'. */
void fair_comparison_run(struct fair_comparison *, struct json *stages,
                         int64_t newest, const struct policy *);
void fair_comparison_wait(const struct fair_comparison *, int64_t newest);

/* The last result; an object without members before the first. */
struct json *fair_comparison_to_json(const struct fair_comparison *);

#endif /* controller/history/fair-comparison.h */
