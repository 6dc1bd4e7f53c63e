/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_FAULTS_H
#define LAB_FAULTS_H 1

/* Kills leaders in turn, and measures the time without a leader.
 *
 * High availability must be tested by killing a leader in the middle of a run.
 * In turn, the active controller, the leaders of both databases, and all three
 * at once are killed; last, the leaders of the databases are killed while the
 * active controller is stopped, so that it continues after another one has
 * become active.  The next fault follows some seconds after recovery: a
 * controller is active, with a newer generation if it was killed, both
 * databases are connected, and all hosts follow its order.  During all of this
 * only one controller may change the switch, according to the switch, and the
 * switch must keep its flows.
 *
 *    f = faults_create(plan, cluster);
 *    while (...) {
 *        faults_run(f);
 *        faults_wait(f);
 *        poll_block();
 *    }
 *    faults_finish(f, policy);         // Writes policy->ha.
 *    free(f);
 *
 * Main thread only. */

struct cluster;
struct faults;
struct plan;
struct report_policy;

struct faults *faults_create(const struct plan *, const struct cluster *);

void faults_run(struct faults *);
void faults_wait(const struct faults *);
void faults_finish(struct faults *, struct report_policy *);

#endif /* lab/run/faults.h */
