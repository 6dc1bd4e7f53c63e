/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PLAIN_COMPARISON_H
#define PLAIN_COMPARISON_H 1

/* Compares the policy with the network without Stagecoach on the stages that
 * have ended.
 *
 * What they would have taken without Stagecoach cannot be measured while it is
 * there.  Instead, the simulator replays the demand of the last
 * PLAIN_COMPARISON_STAGES stages, as they followed each other, under the
 * policy and under the order "plain".  Both results are predictions, because
 * the simulated network is ideal and the computing time of iterations is an
 * estimate: compare them with each other, not with measured times.
 *
 * A simulation can take seconds and must not delay an order.  A child process
 * runs "stagecoach policy whatif" at the lowest priority, with a time limit,
 * at most once a minute and only if a stage has ended since.  If it fails, the
 * previous result stays.
 *
 *    if (plain_comparison_is_due(fc, newest)) {
 *        stages = ...the last PLAIN_COMPARISON_STAGES...
 *    }
 *    plain_comparison_run(fc, stages, newest, policy);
 *    plain_comparison_wait(fc, newest);
 *    json = plain_comparison_to_json(fc);
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct plain_comparison;
struct json;
struct policy;

#define PLAIN_COMPARISON_STAGES 200

struct plain_comparison *plain_comparison_create(void);
void plain_comparison_destroy(struct plain_comparison *);

/* Returns true if a simulation may start.  'newest' is when the last stage
 * ended, epoch ms, 0 if none has. */
bool plain_comparison_is_due(const struct plain_comparison *, int64_t newest);
bool plain_comparison_is_running(const struct plain_comparison *);

/* Starts a simulation of 'stages', {"stages": [...]} as in history.h, or
 * continues the running one if 'stages' is NULL.  Takes ownership of
 * 'stages'. */
void plain_comparison_run(struct plain_comparison *, struct json *stages,
                          int64_t newest, const struct policy *);
void plain_comparison_wait(const struct plain_comparison *, int64_t newest);

/* The last result; an object without members before the first. */
struct json *plain_comparison_to_json(const struct plain_comparison *);

#endif /* controller/history/plain-comparison.h */
