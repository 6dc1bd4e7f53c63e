/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRIALS_H
#define TRIALS_H 1

/* Trials of a search that judges them one by one.
 *
 * Most searches are asynchronous (ASHA and Hyperband in their stopping form,
 * as Optuna and Ray Tune run them): a trial that reaches a rung is stopped or
 * goes on, judged against those that have been there before it, and in the
 * place of one that has ended the next one begins.  Nothing waits for the last
 * job of a rung, so the whole search is one stage, in which trials come and
 * go.
 *
 *    if (trial_rung_judge(rung, metric, eta)) {
 *        ...the trial goes on...
 *    }
 *
 * Such a search shares a cluster with those that judge in stages.  In both
 * kinds an iteration has the weight (iteration-weight.h)
 *
 *     weight of the search x share x size of the iteration / work
 *
 * where 'work' is what the search still needs: of an asynchronous one, the way
 * of its trials to their next rungs and, because a rung lets 1 / eta of them
 * pass, trials_after() of each.  So weights, aging, lateness and plans, which
 * act on searches, mean the same for both.  'share' is what differs.  In
 * stages it is the cube of the urgency: a stage ends with its slowest job.  An
 * asynchronous search has one of two orders.
 *
 * "neutral" is the default: the share is 1, and those of its trials that
 * follow one another have one level (struct order_traits).  So the network
 * decides when a search has its turn and nothing about which of its trials is
 * first at a rung.
 *
 * By "promising" the share is a power (CHANCE_POWER) of the chance of the
 * trial to pass its next rung, times the root of that rung's iterations, over
 * the work until it is there, relative to the trial of the search that has
 * most.  With the chance itself, the work alone, or both, more trials have
 * begun before a good one has done many iterations, and a search reaches a
 * target later. The chance is the probability of a normal distribution around
 * the predicted metric to be among the best 1 / eta of the metrics that were
 * seen at the rung and of those that are predicted of the trials on their way
 * to it.  A trial without a prediction has the chance 1 / eta.  Few others are
 * weak evidence, so that one counts as eta of them.
 *
 *    struct trial trials[8] = { { .rung = rung, .work = work } };
 *
 *    trials_promise(trials, n, eta);
 *
 * A search learns from the trials that arrive, so an order that lets some
 * arrive first changes it: by "promising", good trials raise the cut for those
 * behind them.  Bench async has the time and GPU hours to a target, the loss
 * of the best trial, and the searches that miss the target.
 *
 * A rung owns its metrics.  Times are seconds.  No other state. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The metrics with which trials have arrived at a rung. */
struct trial_rung {
    int64_t iterations; /* Of a trial, since its beginning. */
    size_t n, allocated;
    double *metrics; /* The best, which is the largest, first. */
};

void trial_rung_uninit(struct trial_rung *);

/* Adds the metric of a trial that arrives.  Returns true if it is one of the
 * best 1 / eta, or the best, of those that have arrived. */
bool trial_rung_judge(struct trial_rung *, double metric, double eta);

/* Returns the iterations that a trial is expected to do after the first of
 * these 'n' rungs, to which it is on its way. */
double trials_after(const struct trial_rung *, size_t n, double eta);

/* A running trial, on its way to a rung. */
struct trial {
    const struct trial_rung *rung;
    double work;     /* Seconds of all ports until it arrives, > 0. */
    bool known;      /* There is a prediction: */
    double mean, sd; /* its metric at the rung; 'sd' > 0. */
    double chance;   /* To pass the rung, above 0. */
    double promise;  /* Above 0; 1 for the most promising one. */
};

/* Sets 'chance' and 'promise' of the 'n' running trials of a search.
 * O(n^2). */
void trials_promise(struct trial *, size_t n, double eta);

#endif /* order/problem/trials.h */
