/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MISS_FILTER_H
#define MISS_FILTER_H 1

/* Which unknown flows are worth a look at the sockets, and when.
 *
 *
 * Motivation
 * ==========
 *
 * The data plane says so for every flow that it does not know, again and
 * again.  The first packet of a job's new connection must be followed by a
 * dump of the sockets within a few milliseconds, but a host full of other
 * traffic must not keep the agent dumping.  So flows that turned out to be
 * nobody's are remembered for a while, those without a socket are tried again
 * at growing intervals, and dumps that find nothing new make the next wait
 * longer.
 *
 *
 * Usage
 * =====
 *
 *    miss_filter_report(mf, key, now);           // From the data plane.
 *    if (now >= miss_filter_due(mf)) {
 *        miss_filter_begin(mf);
 *        ...miss_filter_quiet(mf, key, until) for sockets of no job,
 *           miss_filter_resolve(mf, key) for those of jobs...
 *        miss_filter_end(mf, n_new_flows, now);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Bounded memory: beyond MISS_FILTER_MAX flows all are forgotten.  Main thread
 * only. */

#include <limits.h>
#include <stddef.h>

#include "openvswitch/hmap.h"
#include "shim/control/protocol.h"

#define MISS_FILTER_MAX 16384
#define MISS_COALESCE_MS 1      /* From a report to its dump. */
#define MISS_MIN_GAP_MS 20      /* Between dumps, at first. */
#define MISS_MAX_GAP_MS 320     /* Between dumps that find nothing. */
#define MISS_NOBODYS_MS 5000    /* To pass over a flow of no job. */
#define MISS_RETRY_MS 20        /* Of a flow without a socket, at first. */
#define MISS_MAX_RETRY_MS 1000

struct miss_filter {
    struct hmap misses;         /* Contains struct miss. */
    long long due;              /* Time of the next dump, LLONG_MAX if no flow
                                 * wants one. */
    long long last;             /* Time of the last dump. */
    int gap_ms;                 /* Least time between dumps, now. */
};

void miss_filter_init(struct miss_filter *);
void miss_filter_uninit(struct miss_filter *);

void miss_filter_report(struct miss_filter *, const struct shim_flow_key *,
                        long long now);
long long miss_filter_due(const struct miss_filter *);

void miss_filter_begin(struct miss_filter *);
void miss_filter_quiet(struct miss_filter *, const struct shim_flow_key *,
                       long long until);
void miss_filter_resolve(struct miss_filter *, const struct shim_flow_key *);
void miss_filter_end(struct miss_filter *, size_t n_new, long long now);

#endif /* agent/identify/miss-filter.h */
