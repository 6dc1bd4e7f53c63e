/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_TRAINING_H
#define WORKLOAD_TRAINING_H 1

/* Makes a workload of a lab scenario.
 *
 * What the lab measures in minutes the simulator tells in a moment, from the
 * same file: every search becomes a cojob, every trial a job with the model's
 * size and the placement that the search gives it.  In an iteration each
 * worker computes its share of the batch at the emulated cost of a sample,
 * then pushes each server the gradient of its range of parameters, in parts; a
 * server that has a part of all workers sends every worker the new parameters
 * of it, while the next part arrives; when all have arrived the next iteration
 * begins.
 *
 * A trial learns as the recorded one that resembles it most (trial-curve.h).
 *
 * Not simulated: processes that share a host's cores, real computing beyond
 * the emulated cost, evaluation and the time that programs take to start.
 * What a host sends itself takes no time.
 *
 * The workload is the caller's and keeps nothing of the scenario. */

struct scenario;
struct workload;

struct workload *workload_training_create(const struct scenario *);

#endif /* sim/workload/workload-training.h */
