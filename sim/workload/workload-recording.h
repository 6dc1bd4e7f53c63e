/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_RECORDING_H
#define WORKLOAD_RECORDING_H 1

/* Reads what a controller has recorded of the stages that ran under it.
 *
 * Whether another policy would have served a cluster better is best asked of
 * what that cluster did.  The controller says it as "controller/stages" on its
 * socket and as /v1/stages, and of months as "controller/history": when each
 * stage began and ended, how many seconds of each port it took, in how many
 * iterations, and how long an iteration computed.
 *
 * A recorded stage becomes a cojob of one rung, "COJOB/RUNG", that begins when
 * the stage began.  Its one job computes and exchanges as often as the stage's
 * jobs iterated, so that each port carries what was measured.  Which host sent
 * to which was not recorded: the host with most left to send sends to the one
 * with most left to receive until nothing is left.  What then has no partner
 * came from or went to hosts that were not measured: each host gets one such
 * peer, so that they are no bottleneck.
 *
 * More than RECORDING_MAX_ITERATIONS in all stages are merged: fewer
 * iterations with more bytes, so that a simulation ends.  Stages that have not
 * ended are left out.  The jobs of a stage iterate in step here, and a stage
 * begins when it was recorded to begin, whatever the policy.
 *
 * The workload is the caller's. */

#define RECORDING_MAX_ITERATIONS 50000

struct workload;

/* 'name' is what messages begin with.  Returns NULL and stores the workload in
 * '*wp', or returns a malloc()'d message and stores NULL. */
char *workload_recording_from_string(const char *name, const char *text,
                                     struct workload **wp);

#endif /* sim/workload/workload-recording.h */
