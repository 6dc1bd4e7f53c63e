/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NEWER_H
#define NEWER_H 1

/* Hosts and switches that have seen a newer generation than the leader's.
 *
 * They refuse its orders, as they must if another controller leads.  If none
 * does, the databases were lost and the clock went back, or a host lies.  So
 * only an operator raises the generation, and at most NEWER_MAX_RAISE above
 * the leader's: a host that claims the largest number does not use them up.
 *
 *    newer = newer_find(cluster, switches, &n);
 *    generation = newer_to_raise(newer, n, cluster->generation);
 *    free(newer);
 *
 * Main thread only. */

#include <stddef.h>
#include <stdint.h>

struct cluster;
struct switches;

/* A century of milliseconds. */
#define NEWER_MAX_RAISE (INT64_C(100) * 366 * 24 * 3600 * 1000)

struct newer {
    const char *name; /* Of a host or switch, which owns it. */
    int64_t generation;
};

/* Returns what the caller frees; none if this controller does not lead.
 * 'switches' may be null. */
struct newer *newer_find(const struct cluster *, const struct switches *,
                         size_t *n);

/* Returns the newest generation of 'newer' that a leader of 'generation' may
 * go above, or 'generation' without one. */
int64_t newer_to_raise(const struct newer *, size_t n, int64_t generation);

#endif /* controller/northbound/views/newer.h */
