/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_RECORDING_H
#define WORKLOAD_RECORDING_H 1

/* Reads what a controller has recorded of the stages that ran under it.
 *
 * Whether another policy would have served a cluster better is best asked of
 * what that cluster did.  The controller replies with it to
 * "controller/stages" on its socket and as /v1/stages, and for months to
 * "controller/history": when each stage began and ended, how many seconds of
 * each port it took, in how many iterations, and how long an iteration
 * computed.
 *
 * Stages of a search that followed each other, a rung after the one before it,
 * with some of its jobs, become a cojob: its first stage, which names it
 * "COJOB/RUNG", begins when it was recorded to begin, and each later one when
 * the one before it ends.  An iteration of a job puts on each port the mean of
 * what it took there, at each stage's mean computing time.  So the ports carry
 * what was measured.
 *
 * Which host sent to which was not recorded.  If the host with most bytes of a
 * job took longer for them than for those of one direction, the servers that
 * it has announced, or the hosts that sent most, receive from all others, in
 * as many parts as explain that time, and answer each part.  In other jobs the
 * host with most left to send sends to the one with most left to receive until
 * nothing is left.  What then has no partner came from or went to hosts that
 * were not measured: each host gets one such peer, so that they are no
 * bottleneck.
 *
 * More than RECORDING_MAX_ITERATIONS in all stages are merged: fewer
 * iterations with more bytes, so that a simulation ends.  Stages that have not
 * ended are left out.
 *
 * That later stages begin when those before them end matters: in the scenario
 * "main", with stages that complete in 0.695 of their time without Stagecoach,
 * a replay in which all stages begin as recorded gives 0.98, one in which the
 * jobs of a rung are one job gives 0.75, and this one 0.705 (test-replay.c).
 *
 * The workload is the caller's. */

#define RECORDING_MAX_ITERATIONS 50000

struct workload;

/* 'name' is what messages begin with.  Returns NULL and stores the workload in
 * '*wp', or returns a malloc()'d message and stores NULL. */
char *workload_recording_from_string(const char *name, const char *text,
                                     struct workload **wp);

#endif /* sim/workload/workload-recording.h */
