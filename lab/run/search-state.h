/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SEARCH_STATE_H
#define LAB_SEARCH_STATE_H 1

/* How far a search is, from the events that it tells.
 *
 *
 * Motivation
 * ==========
 *
 * What a search prints is for the report, and also says which jobs train now,
 * where, and how far they have to go: who looks for jobs that stand still must
 * know, and a person wants to see it.
 *
 *
 * Usage
 * =====
 *
 *    state = search_state_create(search, policy, epoch);
 *    search_state_start(state);          // Then the process.
 *    search_state_event(state, line);    // For each line that it prints.
 *    n = search_state_jobs(state, jobs, ARRAY_SIZE(jobs));
 *    search_state_destroy(state);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  The arguments of search_state_create() must outlive it.
 * The strings of a "struct search_job" are the state's. */

#include <stddef.h>
#include <stdint.h>

struct ds;
struct report_policy;
struct scenario_search;
struct search_state;

/* 'policy' gets what happens, in seconds since 'epoch_ms'. */
struct search_state *search_state_create(const struct scenario_search *,
                                         struct report_policy *policy,
                                         long long epoch_ms);
void search_state_destroy(struct search_state *);

/* The search starts now, and tells when it begins. */
void search_state_start(struct search_state *);

/* One event of the search, one line of JSON.  Lines that are none, or of
 * events that nobody knows, are ignored. */
void search_state_event(struct search_state *, const char *line);

/* A job that trains now, for those who watch it. */
struct search_job {
    const char *cojob, *job;
    uint64_t hosts;             /* Bit i: it has a process on host i. */
    long long iteration;
    long long target;           /* Where its stage ends. */
};

/* Returns the number of jobs in the running stage, at most 'max' of which are
 * stored in 'jobs'; those that have reached the target are left out. */
size_t search_state_jobs(const struct search_state *,
                         struct search_job jobs[], size_t max);

/* Appends a few words: " rung 1 34/80". */
void search_state_status(const struct search_state *, struct ds *);

#endif /* lab/run/search-state.h */
