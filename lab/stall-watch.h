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
 * stalled: then its links are busy.  It is when every link of every host of
 * the job carries next to nothing, and the job gets nowhere, for five seconds.
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
#define STALL_BYTES 4096        /* More than that in a sample is traffic. */

struct stall_watch;

struct stall_watch *stall_watch_create(void);
void stall_watch_destroy(struct stall_watch *);

/* 'moved' is what the busiest host of the job moved since the last sample.
 * Returns true at the moment when a stall has become one. */
bool stall_watch_job(struct stall_watch *, const char *cojob, const char *job,
                     long long iteration, uint64_t moved, long long now_ms);

#endif /* lab/stall-watch.h */
