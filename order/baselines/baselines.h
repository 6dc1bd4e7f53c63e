/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PEERS_H
#define PEERS_H 1

/* The orders that others published.
 *
 *
 * Motivation
 * ==========
 *
 * An order is judged against those that are known, on the same problem, with
 * the same certificate and in the same simulator.  So each of them is one
 * function from a problem to a result.  Each is the published rule for who
 * goes before whom and nothing of the system around it; what it does where its
 * authors do not say is written above it.
 *
 *
 * Usage
 * =====
 *
 * order_compute() calls them; see 'enum order_kind'.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * As order_compute().  They keep nothing from one call to the next: what a
 * peer remembers of a stage comes in its traits. */

#include "order/order.h"

typedef void order_compute_func(const struct order_options *,
                                const struct order_problem *,
                                struct order_result *);

order_compute_func order_compute_early;
order_compute_func order_compute_stage_early;
order_compute_func order_compute_fifo;
order_compute_func order_compute_fifo_lm;
order_compute_func order_compute_sincronia;
order_compute_func order_compute_sebf_static;
order_compute_func order_compute_sebf;
order_compute_func order_compute_dclas;
order_compute_func order_compute_las;
order_compute_func order_compute_tcf;
order_compute_func order_compute_intensity;
order_compute_func order_compute_interleave;

/* Stores in '*begin' and '*end' the epoch of sincronia that runs at 'now', all
 * in seconds of the same clock.  The first epoch takes 'epoch_s' > 0, each
 * next one twice as long; after SINCRONIA_EPOCHS of them, from 0 on, they
 * begin anew. */
void sincronia_epoch(double epoch_s, double now, double *begin, double *end);

#define SINCRONIA_EPOCHS 8

#endif /* order/baselines/baselines.h */
