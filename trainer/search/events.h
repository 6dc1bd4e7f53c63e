/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_EVENTS_H
#define SEARCH_EVENTS_H 1

/* Events of a search, as the JSON of docs/interfaces.md.
 *
 * Each function creates an object with "event" and "time" and passes it to the
 * callback of the search.  Unknown numbers are null. */

#include <stddef.h>
#include <stdint.h>

struct cJSON;
struct job;

struct events {
    const char *cojob;
    void (*callback)(void *aux, const struct cJSON *);  /* Or NULL. */
    void *aux;
};

void events_search_begin(const struct events *, const char *const *jobs,
                         int n);
void events_job_begin(const struct events *, const struct job *);
void events_stage_begin(const struct events *, int rung, int64_t iterations,
                        const char *const *jobs, int n);
void events_progress(const struct events *, int rung, const struct job *);
void events_stage_end(const struct events *, int rung, double seconds,
                      const char *const *ranking, int n);
void events_job_end(const struct events *, const struct job *,
                    const char *outcome);
void events_search_end(const struct events *, const struct job *best,
                       double seconds);

/* Prints the reason of a failed job on standard error. */
void events_warning(const struct events *, const struct job *);

#endif /* trainer/search/events.h */
