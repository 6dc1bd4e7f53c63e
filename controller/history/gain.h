/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GAIN_H
#define GAIN_H 1

/* Whether the order has helped: what ended, against fair sharing.
 *
 *
 * Motivation
 * ==========
 *
 * Nobody can see what would have been.  But what the last stages took of each
 * port is known, and the simulator serves the same demand, beginning at the
 * same times, once by the policy and once fairly.  That is a prediction, and
 * is called one: computing was not recorded, and no network is as tidy as the
 * simulated one; so the two are to be compared with each other, and not with
 * what was measured.
 *
 * A simulation may take seconds, and an order may not wait.  It is done by a
 * child process that has nothing but the numbers and a pipe, at most once a
 * minute and when stages have ended meanwhile, at the lowest priority and with
 * a limit on its time.  A child that fails leaves the last answer.
 *
 *
 * Usage
 * =====
 *
 *    if (gain_is_due(gain, newest)) {
 *        stages = ...the last GAIN_STAGES...
 *    }
 *    gain_run(gain, stages, policy);   // NULL: nothing new.
 *    gain_wait(gain, newest);
 *    json = gain_to_json(gain);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gain;
struct json;
struct policy;

/* So many stages count, the last. */
#define GAIN_STAGES 200

struct gain *gain_create(void);
void gain_destroy(struct gain *);

/* True if a simulation may begin, now that the last stage ended at 'newest',
 * epoch ms, 0 if none has. */
bool gain_is_due(const struct gain *, int64_t newest);

/* True while one goes on. */
bool gain_is_running(const struct gain *);

/* Takes over 'stages', {"stages": [...]} as of history.h, or NULL; the last
 * one ended at 'newest'. */
void gain_run(struct gain *, struct json *stages, int64_t newest,
              const struct policy *);
void gain_wait(const struct gain *, int64_t newest);

/* Empty as long as nothing is known. */
struct json *gain_to_json(const struct gain *);

#endif /* controller/history/gain.h */
