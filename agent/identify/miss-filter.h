/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MISS_FILTER_H
#define MISS_FILTER_H 1

/* Which unknown flows are worth a look at their sockets, and when.
 *
 *
 * Motivation
 * ==========
 *
 * The data plane says so for every flow that it does not know, again and
 * again.  The first packet of a job's new connection must be followed by a
 * look at its socket within a few milliseconds, but a host full of other
 * traffic must not keep the agent looking.  So flows that turned out to be
 * nobody's are remembered for a while, those without a socket are tried again
 * at growing intervals, a flow that is new goes before those that are known to
 * be odd, and there are so many looks a second and no more.
 *
 *
 * Usage
 * =====
 *
 *    miss_filter_report(mf, key, now);           // From the data plane.
 *    while (miss_filter_next(mf, now, &key, &since)) {
 *        ...one of:
 *        miss_filter_resolve(mf, &key);          // It is a job's.
 *        miss_filter_quiet(mf, &key, until);     // It is nobody's.
 *        miss_filter_retry(mf, &key, now);       // It has no socket.
 *        miss_filter_defer(mf, &key, when);      // That will be known then.
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Bounded memory: beyond MISS_FILTER_MAX flows all are forgotten.  Main thread
 * only. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "heap.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "wire/shim-protocol.h"

#define MISS_FILTER_MAX 131072
#define MISS_LOOKS_PER_MS 20    /* A look takes 1 to 2 microseconds. */
#define MISS_LOOKS_MAX 400      /* At once, after a pause. */
#define MISS_NOBODYS_MS 5000    /* To pass over a flow of no job. */
#define MISS_RETRY_MS 2         /* Of a flow without a socket, at first. */
#define MISS_MAX_TRIES 10       /* After that it is left alone for: */
#define MISS_MAX_RETRY_MS 1000

struct miss_filter {
    struct hmap misses;         /* Contains struct miss. */
    struct ovs_list fresh;      /* Those about which nothing is known yet. */
    struct ovs_list again;      /* Those that were nobody's; after 'fresh'. */
    struct heap later;          /* Those that go to 'fresh' by themselves,
                                 * soonest first. */
    double looks;               /* That may be taken now, */
    long long filled;           /* counted at this time. */
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
