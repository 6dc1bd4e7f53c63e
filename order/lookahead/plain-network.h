/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOOKAHEAD_PLAIN_NETWORK_H
#define LOOKAHEAD_PLAIN_NETWORK_H 1

/* What the same searches would have done without an order.
 *
 * A policy promises that no search ends much later than if all shared the
 * network as TCP does (problem/lateness.h).  What that would have been is not
 * measured: the order is in force.  So the judge (judge.h) simulates a second
 * network, with one level.  A search arrives there when it does in the real
 * one, and each of its stages begins when the stage before has ended there,
 * which may be earlier or later than in the real network.
 *
 *    p = plain_network_create();
 *    plain_network_follow(p, &situation, now);
 *    ...the 'plain' of each search of the situation is up to date...
 *    ...a stage ends; the next one of its search has plain_next()...
 *    plain_network_destroy(p);
 *
 * A simulation begins at the arrival of the oldest search that still runs in
 * either network, with what is known now.  So times improve while stages run:
 * they rise when other searches arrive, and follow what is measured of jobs.
 * Of the rungs to come a search is simulated to the end of those that it has
 * announced, with one guess of the jobs that survive.  A search that has ended
 * in the real network goes on until it ends in the plain one, and has no times
 * any more.
 *
 * The network is ideal: TCP's losses and start are not simulated, and pauses
 * between stages do not count.  More than PLAIN_ITERATIONS iterations of a job
 * are simulated as fewer and longer ones.  A stage that would be more than
 * PLAIN_MAX_JOBS jobs is left out, and has no times.
 *
 * It copies what it needs.  One thread. */

struct judge_situation;
struct plain_network;

#define PLAIN_ITERATIONS 30
#define PLAIN_MAX_JOBS 200

struct plain_network *plain_network_create(void);
void plain_network_destroy(struct plain_network *);

/* Lets the searches of the situation begin in the plain network, too, and
 * sets their times in it.  'now' is seconds of the caller's clock. */
void plain_network_follow(struct plain_network *,
                          const struct judge_situation *, double now);

#endif /* order/lookahead/plain-network.h */
