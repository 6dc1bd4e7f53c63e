/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MISS_FILTER_H
#define MISS_FILTER_H 1

/* Schedules socket lookups for flows that the shim does not know.
 *
 * The shim reports every packet of an unknown flow.  A new connection of a job
 * must be looked up within a few milliseconds, but other traffic of the host
 * must not keep the agent busy.  Flows that belong to no job are therefore
 * ignored for a while, flows without a socket are retried at growing
 * intervals, new flows are looked up before known ones, and the rate of
 * lookups is limited.
 *
 *    miss_filter_report(mf, &missed, now);       // From the shim.
 *    while (miss_filter_next(mf, now, &key, &since)) {
 *        ...one of:
 *        miss_filter_resolve(mf, &key);          // It belongs to a job.
 *        miss_filter_quiet(mf, &key, until);     // It belongs to no job.
 *        miss_filter_retry(mf, &key, now);       // It has no socket.
 *        miss_filter_defer(mf, &key, when);      // Unknown before 'when'.
 *    }
 *
 * Memory is bounded: beyond MISS_FILTER_MAX flows, all are forgotten.  Main
 * thread only. */

#include <stdbool.h>

#include "heap.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "wire/shim-protocol.h"

#define MISS_FILTER_MAX 131072
#define MISS_LOOKUPS_PER_MS 20  /* A lookup takes 1 to 2 microseconds. */
#define MISS_LOOKUPS_MAX 400    /* Largest number at once, after a pause. */
#define MISS_NO_JOB_MS 5000     /* Time for which a flow of no job is
                                 * ignored. */
#define MISS_RETRY_MS 2         /* First retry of a flow without a socket. */
#define MISS_MAX_TRIES 10       /* After so many retries the flow is ignored
                                 * for MISS_MAX_RETRY_MS. */
#define MISS_MAX_RETRY_MS 1000

struct miss_filter {
    struct hmap misses;         /* Contains struct miss. */
    struct ovs_list fresh;      /* New flows. */
    struct ovs_list again;      /* Flows that belonged to no job at the last
                                 * lookup; served after 'fresh'. */
    struct heap later;          /* Flows to be moved to 'fresh' at a time,
                                 * earliest first. */
    double looks;               /* Lookups that are allowed at 'filled'. */
    long long filled;           /* Time for which 'looks' was computed. */
};

void miss_filter_init(struct miss_filter *);
void miss_filter_uninit(struct miss_filter *);
void miss_filter_clear(struct miss_filter *);

void miss_filter_report(struct miss_filter *, const struct shim_flow_key *,
                        long long now);
long long miss_filter_due(const struct miss_filter *);

bool miss_filter_next(struct miss_filter *, long long now,
                      struct shim_flow_key *, long long *since);
void miss_filter_resolve(struct miss_filter *, const struct shim_flow_key *);
void miss_filter_quiet(struct miss_filter *, const struct shim_flow_key *,
                       long long until);
void miss_filter_retry(struct miss_filter *, const struct shim_flow_key *,
                       long long now);
void miss_filter_defer(struct miss_filter *, const struct shim_flow_key *,
                       long long when);

#endif /* agent/identify/miss-filter.h */
