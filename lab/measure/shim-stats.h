/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SHIM_STATS_H
#define LAB_SHIM_STATS_H 1

/* Bytes sent by the shims of a lab, classified and unclassified.
 *
 * Coverage is the share of the hosts' IP bytes that were sent in the class of
 * a job.  The counters of a shim that ended are kept, because a restarted shim
 * counts from 0. */

#include <stdint.h>

struct plan;
struct shim_watch;

struct shim_watch *shim_watch_create(const struct plan *);
void shim_watch_destroy(struct shim_watch *);

/* Reads the counters of every shim.  A shim that does not reply is skipped. */
void shim_watch_run(struct shim_watch *);

/* Sums over all shims since shim_watch_create(). */
void shim_watch_totals(const struct shim_watch *, uint64_t *ip_bytes,
                       uint64_t *default_bytes, uint64_t *dropped);

#endif /* lab/measure/shim-stats.h */
