/* SPDX-License-Identifier: Apache-2.0 */

#ifndef UNANNOUNCED_H
#define UNANNOUNCED_H 1

/* Jobs that no search has announced.
 *
 * Agents recognise jobs by their launchers and report all of them.  Only the
 * stages that are announced can be ordered; but an operator that observes a
 * cluster before anything is announced wants to know what its jobs do.  Each
 * of the others is therefore recorded as a search of its own with one stage
 * after another: from its first report until no host reports it, until it is
 * announced, or for an hour, so that the recording has what runs for weeks.
 *
 *    unannounced_learn(u, host, &tj, first, time_msec());
 *    while ((stage = unannounced_take(u, announced, time_msec()))) {
 *        ...
 *        stage_destroy(stage);
 *    }
 *
 * Main thread only. */

#include <stdbool.h>

struct host;
struct shash;
struct stage;
struct telemetry_job;
struct unannounced;

struct unannounced *unannounced_create(void);
void unannounced_destroy(struct unannounced *);

/* Counts what 'host' has reported of a job.  'first': its counters are only a
 * base for differences. */
void unannounced_learn(struct unannounced *, struct host *,
                       const struct telemetry_job *, bool first,
                       long long now);

/* Returns a stage that has ended, which the caller destroys, or NULL.
 * 'announced' has the names of the jobs that are; if it is NULL, all stages
 * end. */
struct stage *unannounced_take(struct unannounced *,
                               const struct shash *announced, long long now);

#endif /* controller/model/unannounced.h */
