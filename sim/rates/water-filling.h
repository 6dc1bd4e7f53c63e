/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WATER_FILLING_H
#define WATER_FILLING_H 1

/* Max-min fair shares of what flows have in common.
 *
 * Max-min rates come from water-filling: the port that can give its flows
 * least is a bottleneck and gives them that, then the next.  Each such step
 * only takes what earlier ones have left, so when a flow ends, the steps
 * before the one that gave it its rate stay as they are: it had not been
 * looked at then.  Filling goes on from there.  Flows that begin may change
 * all steps of their level and later ones.
 *
 *    water_filling_init(&w, &bundles);
 *    ...a flow is added to bundle 'b', or removed...
 *    water_filling_count(&w, b, 1);
 *    water_filling_undo(&w, water_filling_first_step(&w, b->level));
 *    for (size_t l = b->level; l < bundles.n_levels; l++) {
 *        water_filling_fill(&w, l);
 *    }
 *    ...'share' of all bundles in w.filled is right...
 *    water_filling_uninit(&w);
 *
 * Part of rates-share.c.  The bundles are the caller's; of them, this sets
 * 'floor', 'share', 'step' and their lanes' 'n_waiting'.  One thread. */

#include <stddef.h>
#include <stdint.h>

#include "sim/rates/bundle.h"

/* A lane that gave its waiting bundles what it could. */
struct step {
    uint32_t lane;
    size_t first;               /* Of its bundles in 'filled'. */
    double end;                 /* When the first flow of them ends; the
                                 * caller's. */
};

/* A lane that waits for its step. */
struct tight {
    uint32_t lane;
    double share;               /* It can give its flows that, or more. */
};

struct water_filling {
    struct bundles *bundles;
    double *left;               /* Of each port, bytes per second. */
    size_t n_steps, allocated_steps;
    struct step *steps;
    size_t n_filled, allocated_filled;
    uint32_t *filled;           /* Bundles, by step. */
    size_t n_tight, allocated_tight;
    struct tight *tight;        /* Heap, the smallest share first. */
};

void water_filling_init(struct water_filling *, struct bundles *);
void water_filling_uninit(struct water_filling *);

/* Forgets all steps; all of each port is left. */
void water_filling_clear(struct water_filling *);

/* Counts 'n' more flows in a bundle, or less. */
void water_filling_count(struct water_filling *, const struct bundle *, int n);

/* Returns the first step of 'level' or a later one. */
size_t water_filling_first_step(const struct water_filling *, int level);

/* Forgets the steps from 'first' on. */
void water_filling_undo(struct water_filling *, size_t first);

/* Gives the flows of 'level' shares of what is left, after those of the
 * levels before it. */
void water_filling_fill(struct water_filling *, size_t level);

/* Gives each level 'min_share' of each port before any level gets the rest, so
 * that no level starves. */
void water_filling_fill_min_shares(struct water_filling *, double min_share);

/* Behind the last of the bundles of 'step' in 'filled'. */
static inline size_t
water_filling_end(const struct water_filling *w, size_t step)
{
    return step + 1 < w->n_steps ? w->steps[step + 1].first : w->n_filled;
}

#endif /* sim/rates/water-filling.h */
