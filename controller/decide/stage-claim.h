/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STAGE_CLAIM_H
#define STAGE_CLAIM_H 1

/* Compares what a search announced of an iteration with what is counted.
 *
 * An announcement helps until a job has been counted (demand.h has its bytes,
 * job-progress.h its pace); from then on what is counted decides.  One that is
 * wrong also costs the search its word: its other jobs are expected to move as
 * many times what was announced as those that have been counted, bytes that
 * were too few are a debt (announcement.h), and no computing time that it
 * announces is used any more.  "controller/status" has an alarm.
 *
 * Both count as wrong beyond STAGE_CLAIM_TOLERANCE: headers add up to 6 % to
 * what is announced, what was lost is sent again, and a measurement of eight
 * iterations begins and ends in the middle of one.
 *
 * A stage announces the mean of what its jobs send, so this is compared when
 * all of them have been counted.  An iteration cannot take less than its
 * computing time.  In a job that no other one delays it takes no more than
 * this and its transfers, at most two after each other at the busiest port.
 * The slowest job of the stage is compared. */

#include <stddef.h>

struct decide_job;
struct stage;

#define STAGE_CLAIM_TOLERANCE 1.25

/* Updates the claim of 'stage', which has 'n' jobs with iterations left. */
void stage_claim_check(struct stage *, const struct decide_job *, size_t n);

#endif /* controller/decide/stage-claim.h */
