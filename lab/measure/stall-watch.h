/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_STALL_WATCH_H
#define LAB_STALL_WATCH_H 1

/* Notices jobs whose network stands still.
 *
 *
 * Motivation
 * ==========
 *
 * On a machine that is busy with other work, flows through several user space
 * data planes have been seen to stop for half a minute with nothing lost.  A
 * run in which that happens does not tell anything about the order, so the lab
 * must see it and say so.  A job that waits for others' traffic is not
 * stalled: then its links are busy.  It is when no link of any host of the job
 * carries even 1 % of its rate, and the job gets nowhere, for five seconds.  (A
 * few packets are no sign of life: a sender that is cut off tries again, after
 * 0.2, 0.4, 0.8... seconds, which is also why a short cut lasts.)
 *
 *
 * Usage
 * =====
 *
 * At each sample, for each job that has iterations to go:
 *
 *    if (stall_watch_job(sw, cojob, job, iteration, moved_bytes, now_ms)) {
 *        ...say so, once for each stall...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain memory, one thread. */

#include <stdbool.h>
#include <stdint.h>

#define STALL_MS 5000           /* So long is a stall. */

struct stall_watch;

/* 'rate_bps' is that of each link. */
struct stall_watch *stall_watch_create(int64_t rate_bps);
void stall_watch_destroy(struct stall_watch *);

/* 'moved' is what the busiest host of the job moved since the last sample.
 * Returns true at the moment when a stall has become one. */
bool stall_watch_job(struct stall_watch *, const char *cojob, const char *job,
                     long long iteration, uint64_t moved, long long now_ms);

#endif /* lab/measure/stall-watch.h */
