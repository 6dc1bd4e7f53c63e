/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/water-filling.h"

#include <math.h>
#include <stdbool.h>

#include "order/problem/memory.h"

/* What is left of a port below this share of its capacity is a rounding
 * error, not bandwidth for the next level. */
#define RESIDUE 1e-11

void
water_filling_init(struct water_filling *w, struct bundles *bundles)
{
    *w = (struct water_filling) {
        .bundles = bundles,
        .left = order_alloc(bundles->paths->fabric->n_ports, sizeof *w->left),
    };
    water_filling_clear(w);
}

void
water_filling_uninit(struct water_filling *w)
{
    free(w->left);
    free(w->steps);
    free(w->filled);
    free(w->tight);
}

void
water_filling_clear(struct water_filling *w)
{
    const struct sim_fabric *fabric = w->bundles->paths->fabric;

    water_filling_undo(w, 0);
    memcpy(w->left, fabric->capacity, fabric->n_ports * sizeof *w->left);
}

size_t
water_filling_first_step(const struct water_filling *w, int level)
{
    size_t low = 0;
    size_t high = w->n_steps;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (w->bundles->lanes[w->steps[middle].lane].level < level) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void
water_filling_count(struct water_filling *w, const struct bundle *b, int n)
{
    for (int k = 0; k < b->n_hops; k++) {
        struct lane *lane = &w->bundles->lanes[b->hops[k].lane];

        if (b->step == NO_STEP) {
            lane->n_waiting += n;
        } else {
            w->left[lane->port] -= n * b->share;
        }
    }
}

void
water_filling_undo(struct water_filling *w, size_t first)
{
    size_t begin;

    if (first >= w->n_steps) {
        return;
    }
    begin = w->steps[first].first;
    for (size_t i = begin; i < w->n_filled; i++) {
        struct bundle *b = &w->bundles->bundles[w->filled[i]];
        int n = b->flows.n;

        water_filling_count(w, b, -n);
        b->step = NO_STEP;
        water_filling_count(w, b, n);
    }
    w->n_steps = first;
    w->n_filled = begin;
}

static double
lane_share(const struct water_filling *w, uint32_t lane)
{
    const struct lane *l = &w->bundles->lanes[lane];

    return w->left[l->port] / l->n_waiting;
}

/* Lets the heap be one again below 'i'. */
static void
sift_down(struct water_filling *w, size_t i)
{
    struct tight moving = w->tight[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < w->n_tight
            && w->tight[child + 1].share < w->tight[child].share) {
            child++;
        }
        if (child >= w->n_tight || w->tight[child].share >= moving.share) {
            break;
        }
        w->tight[i] = w->tight[child];
        i = child;
    }
    w->tight[i] = moving;
}

/* Gathers the lanes of 'level' that flows wait for. */
static void
gather_tight(struct water_filling *w, const struct level *level)
{
    w->tight = order_grow(w->tight, level->n, &w->allocated_tight,
                          sizeof *w->tight);
    w->n_tight = 0;
    for (size_t i = 0; i < level->n; i++) {
        uint32_t lane = level->lanes[i];

        if (w->bundles->lanes[lane].n_waiting) {
            w->tight[w->n_tight].lane = lane;
            w->tight[w->n_tight++].share = lane_share(w, lane);
        }
    }
    for (size_t i = w->n_tight / 2; i-- > 0; ) {
        sift_down(w, i);
    }
}

/* Takes the lane that can give its flows least off the heap.  Shares only
 * grow as others take less than theirs.  Returns false if none is left. */
static bool
pop_tight(struct water_filling *w, struct tight *tightest)
{
    while (w->n_tight) {
        struct tight *top = &w->tight[0];
        bool waits = w->bundles->lanes[top->lane].n_waiting > 0;
        double share = waits ? lane_share(w, top->lane) : 0;

        if (waits && share > top->share) {
            top->share = share;
        } else {
            *tightest = *top;
            tightest->share = share;
            *top = w->tight[--w->n_tight];
            if (waits) {
                sift_down(w, 0);
                return true;
            }
        }
        sift_down(w, 0);
    }
    return false;
}

/* Gives the waiting flows of 'tight' their share. */
static void
fill_lane(struct water_filling *w, const struct tight *tight)
{
    const double *capacity = w->bundles->paths->fabric->capacity;
    struct lane *lane = &w->bundles->lanes[tight->lane];

    w->steps = order_grow(w->steps, w->n_steps + 1, &w->allocated_steps,
                          sizeof *w->steps);
    w->steps[w->n_steps] =
        (struct step){ .lane = tight->lane, .first = w->n_filled };
    w->filled = order_grow(w->filled, w->n_filled + lane->n,
                           &w->allocated_filled, sizeof *w->filled);
    for (size_t i = 0; i < lane->n; i++) {
        struct bundle *b = &w->bundles->bundles[lane->bundles[i]];

        if (b->step == NO_STEP) {
            int n = b->flows.n;

            water_filling_count(w, b, -n);
            b->step = w->n_steps;
            b->share = tight->share;
            water_filling_count(w, b, n);
            w->filled[w->n_filled++] = lane->bundles[i];
            for (int k = 0; k < b->n_hops; k++) {
                int p = w->bundles->lanes[b->hops[k].lane].port;

                if (w->left[p] < capacity[p] * RESIDUE) {
                    w->left[p] = 0;
                }
            }
        }
    }
    w->n_steps++;
}

void
water_filling_fill(struct water_filling *w, size_t level)
{
    struct tight tight;

    gather_tight(w, &w->bundles->levels[level]);
    while (pop_tight(w, &tight)) {
        fill_lane(w, &tight);
    }
}

void
water_filling_fill_min_shares(struct water_filling *w, double min_share)
{
    const struct sim_fabric *fabric = w->bundles->paths->fabric;
    double *taken = order_alloc(fabric->n_ports, sizeof *taken);
    double share = fmin(min_share, 1.0 / w->bundles->n_levels);

    for (size_t l = 0; l < w->bundles->n_levels; l++) {
        for (int p = 0; p < fabric->n_ports; p++) {
            w->left[p] = share * fabric->capacity[p];
        }
        water_filling_fill(w, l);
        for (size_t i = 0; i < w->n_filled; i++) {
            struct bundle *b = &w->bundles->bundles[w->filled[i]];

            b->floor = b->share;
            for (int k = 0; k < b->n_hops; k++) {
                taken[w->bundles->lanes[b->hops[k].lane].port]
                    += b->flows.n * b->floor;
            }
        }
        water_filling_undo(w, 0);
    }
    for (int p = 0; p < fabric->n_ports; p++) {
        w->left[p] = fmax(fabric->capacity[p] - taken[p], 0);
    }
    free(taken);
}
