/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOLDS_H
#define HOLDS_H 1

/* Holds the sends of jobs back that their plug-ins of NCCL control.
 *
 * Packets of RDMA pass neither the kernel nor a shim.  Where a job uses the
 * network plug-in (agent/launch/nccl/net-gate.c), its sends wait as long as a
 * job before it in the order sends: each datagram about transfers is progress
 * of its job, and holds those behind it for HOLD_MS.  So a job that computes,
 * waits for its peers, or has ended, holds no other, nor does an agent that
 * has ended, or an order after its lease.  In each HOLD_PERIOD_MS of the
 * clock, all may send for the policy's minimum share: hosts have the same
 * clock, so the hosts of a job send together.
 *
 * A job has a page (wire/hold-page.h) from its first datagram about transfers
 * on.  Others are not known here: they hold no job, and are not held.
 *
 *    holds_init(&holds, rundir);
 *    holds_moved(&holds, "asha/t0", time_msec());
 *    holds_run(&holds, &order, time_msec(), time_wall_msec());
 *    holds_remove(&holds, "asha/t0");
 *
 * Main thread only. */

#include <stdint.h>

#include "openvswitch/shash.h"

#define HOLD_MS 90 /* Less than HOLD_MAX_MS by what a thread may be late. */
#define HOLD_PERIOD_MS 2000
#define HOLD_LAST UINT64_MAX /* Place of jobs that are not in the order. */

struct holds {
    char *dir;        /* RUNDIR/holds. */
    struct shash all; /* Contains struct hold, by name of the job. */
};

struct holds_order {
    long long until;    /* End of the lease, time_msec(). */
    uint32_t min_share; /* As in struct shim_min_share. */

    /* Returns the place of the job, the first one having the lowest. */
    uint64_t (*place)(const char *job, void *aux);
    void *aux;
};

/* Removes the pages of an earlier agent. */
void holds_init(struct holds *, const char *rundir);
void holds_uninit(struct holds *);

void holds_moved(struct holds *, const char *job, long long now);
void holds_remove(struct holds *, const char *job);
void holds_run(struct holds *, const struct holds_order *, long long now,
               long long wall);

#endif /* agent/actuate/holds.h */
