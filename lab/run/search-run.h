/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SEARCH_RUN_H
#define LAB_SEARCH_RUN_H 1

/* Runs a search of a scenario as a child process.
 *
 *
 * Motivation
 * ==========
 *
 * The lab runs searches as an engineer would, with "stagecoach search run",
 * and reads the events that it prints (docs/interfaces.md).
 *
 *
 * Usage
 * =====
 *
 *    sr = search_run_create(plan, search, policy, epoch);
 *    error = search_run_start(sr);
 *    while (!search_run_is_over(sr)) {
 *        search_run_run(sr);
 *        search_run_wait(sr);
 *        poll_block();
 *    }
 *    error = search_run_error(sr);
 *    search_run_destroy(sr);             // Ends it, if it still runs.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  The arguments of search_run_create() must outlive it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ds;
struct plan;
struct report_policy;
struct scenario_search;
struct search_run;

/* A job that trains now.  Its strings belong to the run. */
struct search_job {
    const char *cojob, *job;
    uint64_t hosts;             /* Bit i: the job has a process on host i. */
    long long iteration;
    long long target;           /* Iteration at which the stage ends. */
};

/* Results are stored in 'policy', with times in seconds since 'epoch_ms'. */
struct search_run *search_run_create(const struct plan *,
                                     const struct scenario_search *,
                                     struct report_policy *policy,
                                     long long epoch_ms);
void search_run_destroy(struct search_run *);

char *search_run_start(struct search_run *);
void search_run_run(struct search_run *);
void search_run_wait(struct search_run *);
bool search_run_is_over(const struct search_run *);

/* Returns a message about the failure, which the caller must free, or NULL. */
char *search_run_error(const struct search_run *);

/* Handles an event of the search, one line of JSON.  Other lines and unknown
 * events are ignored. */
void search_run_event(struct search_run *, const char *line);

/* Stores at most 'max' jobs of the running stage that have not reached the
 * target.  Returns their number. */
size_t search_run_jobs(const struct search_run *, struct search_job jobs[],
                       size_t max);

/* Appends a short status such as "asha rung 1 34/80". */
void search_run_status(const struct search_run *, struct ds *);

#endif /* lab/run/search-run.h */
