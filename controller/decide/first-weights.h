/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FIRST_WEIGHTS_H
#define FIRST_WEIGHTS_H 1

/* Puts jobs that still move their first parameters first.
 *
 * All jobs of a stage wait for the last one to start, and starting moves
 * little, whatever rank the stage has.  Measured in the main scenario: with
 * the rank of their stage, jobs take 1.6 times as long as in a plain network
 * until their first iteration.
 *
 * The jobs of a stage that start go before the first job that has more bytes
 * to its end than an iteration of all of them.  So a large model goes first
 * only before longer work, and one that moves more than its announced model
 * has the rank of its demand again, see demand_is_starting().  Overrides and
 * idle stages keep their places.  Neither policies that serve all jobs alike
 * nor orders of whole stages are affected.
 *
 * Pure computation. */

struct job_assignments;
struct policy;

void first_weights_place(struct job_assignments *, const struct policy *);

#endif /* controller/decide/first-weights.h */
