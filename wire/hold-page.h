/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOLD_PAGE_H
#define HOLD_PAGE_H 1

/* Page by which the agent holds the sends of a job back.
 *
 * Packets of RDMA pass no queue of the host, so the order can reach them only
 * in the job itself: the plug-in of NCCL (agent/launch/nccl/net-gate.c) posts
 * no send before 'until_ms'.  RUNDIR/holds/COJOB/JOB is the page of a job:
 * the agent writes it, the processes of the job map it to read.  It exists
 * once a process of the job has reported traffic (docs/interfaces.md), and as
 * long as the job.
 *
 * Each value is a lease.  A reader ignores one that is later than in
 * HOLD_MAX_MS, so that neither an agent that has died, nor a clock of a
 * container that differs from the host's, holds a job for longer. */

#include <stdint.h>

#define HOLD_PAGE_PATH "%s/holds/%s/%s" /* RUNDIR, COJOB, JOB. */
#define HOLD_PAGE_BYTES 4096            /* Of the file. */
#define HOLD_MAX_MS 100

struct hold_page {
    uint64_t until_ms; /* Of CLOCK_MONOTONIC; in the past: send.  Written and
                        * read atomically. */
};

#endif /* wire/hold-page.h */
