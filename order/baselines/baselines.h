/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASELINES_H
#define BASELINES_H 1

/* Published orders to compare with.
 *
 * Each baseline is a key by which stages are sorted, or one function from a
 * problem to a result, so that all orders are compared on the same problem,
 * with the same certificate and in the same simulator.  A baseline implements
 * the published ordering rule, not the system around it.  Where the
 * publication leaves a choice, the comment above the function names it.
 *
 * Baselines keep no state between calls: what a baseline remembers of a stage
 * is part of the stage's traits.  order_compute() calls them. */

#include "order/problem/sort.h"

struct order_result;

typedef void order_compute_func(const struct order_options *,
                                const struct order_problem *,
                                struct order_result *);

order_compute_func order_compute_early;
order_compute_func order_compute_stage_early;
order_compute_func order_compute_fifo_lm;
order_compute_func order_compute_grouper;
order_compute_func order_compute_sincronia;
order_compute_func order_compute_dclas;
order_compute_func order_compute_las;
order_compute_func order_compute_tcf;

order_key_func order_key_arrival;
order_key_func order_key_gain;
order_key_func order_key_initial;
order_key_func order_key_intensity;
order_key_func order_key_remaining;
order_key_func order_key_weighted_work;

/* Stores the begin and end of the sincronia epoch that contains 'now' in
 * '*begin' and '*end', all in seconds of the same clock.  The first epoch
 * takes 'epoch_s' > 0, each next one twice as long.  After SINCRONIA_EPOCHS
 * epochs, counted from 0, the sequence repeats. */
void sincronia_epoch(double epoch_s, double now, double *begin, double *end);

#define SINCRONIA_EPOCHS 8

#endif /* order/baselines/baselines.h */
