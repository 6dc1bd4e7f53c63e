/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_COJOB_WATCH_H
#define LAB_COJOB_WATCH_H 1

/* What the agents of a cojob's hosts know of its jobs.
 *
 *
 * Usage
 * =====
 *
 *    watch = cojob_watch_create(plan, cojob);
 *    cojob_watch_begin(watch);           // Before the first process.
 *    cojob_watch_run(watch);             // Again and again.
 *    n = cojob_watch_iteration(watch, job);
 *    cojob_watch_report(watch, policy);
 *    cojob_watch_destroy(watch);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  Plan and cojob must outlive the watch.  A call waits for
 * an agent that does not answer for at most 300 ms. */

#include <stddef.h>

struct cojob_watch;
struct plan;
struct report_policy;
struct scenario_cojob;

struct cojob_watch *cojob_watch_create(const struct plan *,
                                       const struct scenario_cojob *);
void cojob_watch_destroy(struct cojob_watch *);

void cojob_watch_begin(struct cojob_watch *);
void cojob_watch_run(struct cojob_watch *);

/* Iterations that job 'job' of the cojob is known to have done, told or
 * counted; -1 if nothing is known. */
long long cojob_watch_iteration(const struct cojob_watch *, size_t job);

/* Adds what was tagged to 'policy'. */
void cojob_watch_report(const struct cojob_watch *, struct report_policy *);

#endif /* lab/run/cojob-watch.h */
