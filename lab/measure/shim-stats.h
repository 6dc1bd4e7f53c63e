/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SHIM_STATS_H
#define LAB_SHIM_STATS_H 1

/* What the shims of a lab have sent, with a tag and without.
 *
 * Coverage is the share of the hosts' IP bytes that left as a job's.  A shim
 * that is started again counts from 0, so that what it had counted before is
 * kept here. */

#include <stdint.h>

struct plan;
struct shim_watch;

struct shim_watch *shim_watch_create(const struct plan *);
void shim_watch_destroy(struct shim_watch *);

/* Asks every shim; one that does not answer is left for the next time. */
void shim_watch_run(struct shim_watch *);

/* Sums over all shims since shim_watch_create(). */
void shim_watch_totals(const struct shim_watch *, uint64_t *ip_bytes,
                       uint64_t *default_bytes, uint64_t *dropped);

#endif /* lab/measure/shim-stats.h */
