/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_FAULTS_H
#define LAB_FAULTS_H 1

/* Takes away what leads, in turn, and sees how long nobody does.
 *
 *
 * Motivation
 * ==========
 *
 * That a controller may die is only true if one does, in the middle of a run.
 * In turn the active controller, the leading members of both databases, and
 * all three at once are killed, and at last the databases' leaders while the
 * active controller stands still, so that it goes on in the belief that it
 * leads when another does; the next fault comes some seconds after
 * everything is back: a controller leads, of a newer generation if that was
 * killed, reaches both databases, and all hosts follow its order.  Meanwhile
 * nobody else may command the switch, as the switch has it, and the switch
 * keeps its flows.
 *
 *
 * Usage
 * =====
 *
 *    f = faults_create(plan, cluster);
 *    while (...) {
 *        faults_run(f);
 *        faults_wait(f);
 *        poll_block();
 *    }
 *    faults_finish(f, policy);         // Writes policy->ha.
 *    faults_destroy(f);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

struct cluster;
struct faults;
struct plan;
struct report_policy;

struct faults *faults_create(const struct plan *, const struct cluster *);
void faults_destroy(struct faults *);

void faults_run(struct faults *);
void faults_wait(const struct faults *);
void faults_finish(struct faults *, struct report_policy *);

#endif /* lab/run/faults.h */
