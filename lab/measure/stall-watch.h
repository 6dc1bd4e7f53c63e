/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_STALL_WATCH_H
#define LAB_STALL_WATCH_H 1

/* Detects jobs with a stalled network.
 *
 * On a machine with other load, flows through several user space data planes
 * have stalled for half a minute without any loss.  Such a run is no evidence
 * about the order, so the lab must report it.  A job is stalled if for five
 * seconds it makes no progress and no link of its hosts carries 1 % of its
 * rate.  A job that waits for the traffic of others is not stalled: then its
 * links are busy.  Single packets do not count as traffic, because TCP
 * retransmits after 0.2, 0.4, 0.8... seconds.
 *
 * At each sample, for each job that has iterations to go:
 *
 *    if (stall_watch_job(sw, cojob, job, iteration, moved_bytes, now_ms)) {
 *        ...say so, once for each stall...
 *    }
 *
 * Plain memory, one thread. */

#include <stdbool.h>
#include <stdint.h>

#define STALL_MS 5000           /* Duration of a stall, ms. */

struct stall_watch;

/* 'rate_bps' is the rate of each link. */
struct stall_watch *stall_watch_create(int64_t rate_bps);
void stall_watch_destroy(struct stall_watch *);

/* 'moved' is the number of bytes that the busiest host of the job moved since
 * the last sample.  Returns true once for each stall. */
bool stall_watch_job(struct stall_watch *, const char *cojob, const char *job,
                     long long iteration, uint64_t moved, long long now_ms);

#endif /* lab/measure/stall-watch.h */
