/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_UP_H
#define LAB_UP_H 1

/* A lab that stays: "stagecoach lab" up, down and exec.
 *
 * "up" leaves a process in the background that holds the lab's lock and looks
 * after the cluster.  "down" and "exec" find it, and its run directory, by
 * that lock, so they need no scenario.  Each returns an exit status. */

struct lab_options;

int lab_up(const struct lab_options *);
int lab_down(const struct lab_options *);
int lab_exec(const struct lab_options *);

#endif /* cli/lab/lab-up.h */
