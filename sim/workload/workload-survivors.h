/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_SURVIVORS_H
#define WORKLOAD_SURVIVORS_H 1

/* Lets simulated searches keep the jobs that they kept in the lab.
 *
 * Which trials of a search go on is up to their training.  Other trials on
 * other hosts put other bytes on each link, so a simulation is compared with
 * a run of the lab only if it keeps the same ones:
 *
 *    char *error = workload_keep_as(w, "out/placement-1/stage/report.json");
 *
 * The jobs of each search are sorted by their last iterations in the report,
 * the longest first. */

struct workload;

/* Reads 'file', a report of "stagecoach lab run", by its first policy.
 * Returns NULL, or a message that the caller frees: the report is not one, or
 * it has a search or a job that 'w' lacks. */
char *workload_keep_as(struct workload *w, const char *file);

#endif /* sim/workload/workload-survivors.h */
