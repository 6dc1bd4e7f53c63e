/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/water-filling.h"

#include <math.h>

#include "order/problem/memory.h"

/* A sum that has shrunk to this share is computed again. */
#define RESUM 1e-3

/* Returns what each flow of 'b' counts. */
static double
weigh(const struct water_filling *w, const struct bundle *b, double now)
{
    switch (w->rule) {
    case RATES_FILL:
        return fmax(b->keys / b->flows.n - bundle_served(b, now),
                    b->keys / b->flows.n * RATES_RESIDUE);
    case RATES_MLTCP:
        return 0.25 + 1.75 * b->unit->sent / (b->unit->sent + b->unit->left);
    default:
        return 1;
    }
}

static void
add_tight(struct water_filling *w, struct lane *lane, struct work *turn)
{
    w->tight = order_grow(w->tight, w->n + 1, &w->allocated, sizeof *w->tight);
    w->tight[w->n++] = (struct tight){ lane, turn, 0 };
}

/* Lets 'b' wait for its step. */
static void
await_step(struct water_filling *w, struct bundle *b, double now)
{
    double load;

    b->each = weigh(w, b, now);
    b->waits = true;
    load = b->flows.n * b->each;
    for (int k = b->turn ? 1 : 0; k < b->n_hops; k++) {
        struct lane *lane = b->hops[k].lane;

        if (!lane->n_waiting++) {
            add_tight(w, lane, NULL);
            lane->load = 0;
        }
        lane->load += load;
        lane->exact = lane->load;
    }
    if (b->turn) {
        if (!b->turn->n_waiting) {
            add_tight(w, b->hops[0].lane, b->turn);
            b->turn->granted = 0;
            b->hops[0].lane->n_waiting++;
        }
        b->turn->n_waiting += b->flows.n;
    }
}

/* Returns true if every port of 'b' has something left. */
static bool
is_open(const struct bundle *b)
{
    for (int k = 0; k < b->n_hops; k++) {
        if (b->hops[k].lane->left <= 0) {
            return false;
        }
    }
    return true;
}

/* Lets the bundles of 'g' wait that have no step and only ports that have
 * something left. */
static void
gather(struct water_filling *w, struct group *g, double now)
{
    w->n = 0;
    for (size_t i = 0; i < g->n_used; i++) {
        struct lane *lane = g->used[i];

        /* Each path begins at a host's port with an even number. */
        if (lane->port >= w->n_host_ports || lane->port % 2
            || (lane->left <= 0 && !w->fills_all)) {
            continue;
        }
        for (size_t j = 0; j < lane->n; j++) {
            struct bundle *b = lane->guests[j].bundle;

            if ((lane->guests[j].far->left > 0 && b->step == NO_STEP
                 && is_open(b))
                || (w->fills_all && b->step == NO_STEP)) {
                await_step(w, b, now);
            }
        }
    }
}

/* Adds the load of 'lane' up again: after many subtractions rounding errors
 * dominate. */
static void
sum_load(struct lane *lane)
{
    lane->load = 0;
    for (size_t i = 0; i < lane->n; i++) {
        const struct bundle *b = lane->guests[i].bundle;

        lane->load += b->waits ? b->flows.n * b->each : 0;
    }
    lane->exact = lane->load;
}

static size_t
n_waiting(const struct tight *t)
{
    return t->turn ? (size_t) t->turn->n_waiting : t->lane->n_waiting;
}

/* Returns the least that a bundle counts that waits on 'lane', if that decides
 * which is first. */
static double
least_weight(const struct water_filling *w, const struct lane *lane)
{
    double least = INFINITY;

    if (w->rule != RATES_MLTCP) {
        return 1;
    }
    for (size_t i = 0; i < lane->n; i++) {
        const struct bundle *b = lane->guests[i].bundle;

        least = b->waits ? fmin(least, b->each) : least;
    }
    return least;
}

/* Returns what 't' can give each of its flows, of what that counts. */
static double
share_of(const struct water_filling *w, const struct tight *t)
{
    struct lane *lane = t->lane;

    if (t->turn) {
        return fmax(lane->left / lane->n_waiting - t->turn->granted, 0)
               / t->turn->n_waiting;
    }
    if (lane->load < lane->exact * RESUM) {
        sum_load(lane);
    }
    return lane->left / lane->load * least_weight(w, lane);
}

/* Lets the heap be one again below 'i'. */
static void
sift_down(struct water_filling *w, size_t i)
{
    struct tight moving = w->tight[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < w->n
            && w->tight[child + 1].share < w->tight[child].share) {
            child++;
        }
        if (child >= w->n || w->tight[child].share >= moving.share) {
            break;
        }
        w->tight[i] = w->tight[child];
        i = child;
    }
    w->tight[i] = moving;
}

/* Returns what can give its flows least, or NULL.  Shares only grow as others
 * take less than theirs. */
static const struct tight *
find_tightest(struct water_filling *w)
{
    while (w->n) {
        struct tight *top = &w->tight[0];
        double share = n_waiting(top) ? share_of(w, top) : 0;

        if (!n_waiting(top)) {
            *top = w->tight[--w->n];
        } else if (share > top->share) {
            top->share = share;
        } else {
            top->share = share;
            return top;
        }
        sift_down(w, 0);
    }
    return NULL;
}

static void
take(const struct water_filling *w, struct lane *lane, double rate)
{
    lane->left -= rate;
    if (lane->left < w->capacity[lane->port] * WATER_RESIDUE) {
        lane->left = 0;
    }
}

/* Gives each flow of 'b' 'share' of what it counts. */
static void
grant(const struct water_filling *w, struct bundle *b, double share)
{
    double load = b->flows.n * b->each;

    b->waits = false;
    b->granted = share * load;
    for (int k = b->turn ? 1 : 0; k < b->n_hops; k++) {
        b->hops[k].lane->n_waiting--;
        b->hops[k].lane->load -= load;
        take(w, b->hops[k].lane, b->granted);
    }
    if (b->turn) {
        b->turn->granted += b->granted;
        b->turn->n_waiting -= b->flows.n;
        if (!b->turn->n_waiting) {
            b->hops[0].lane->n_waiting--;
            take(w, b->hops[0].lane, b->turn->granted);
        }
    }
}

/* Gives what waits for 'tight' its share. */
static void
fill_lane(const struct water_filling *w, struct group *g,
          const struct tight *tight)
{
    const struct lane *lane = tight->lane;
    double least = least_weight(w, lane);

    g->steps = order_grow(g->steps, g->n_steps + 1, &g->allocated_steps,
                          sizeof *g->steps);
    g->steps[g->n_steps] = (struct step){ .first = g->n_filled };
    g->filled = order_grow(g->filled, g->n_filled + lane->n,
                           &g->allocated_filled, sizeof *g->filled);
    for (size_t i = 0; i < lane->n; i++) {
        struct bundle *b = lane->guests[i].bundle;

        if (lane->guests[i].far->n_waiting && b->waits
            && (!tight->turn || b->turn == tight->turn)
            && (w->rule != RATES_MLTCP || b->each <= least)) {
            grant(w, b, tight->share / least);
            b->step = g->n_steps;
            g->filled[g->n_filled++] = b;
        }
    }
    g->n_steps++;
}

void
water_filling_fill(struct water_filling *w, struct group *g, double now)
{
    const struct tight *tight;

    gather(w, g, now);
    for (size_t i = 0; i < w->n; i++) {
        w->tight[i].share = share_of(w, &w->tight[i]);
    }
    for (size_t i = w->n / 2; i-- > 0;) {
        sift_down(w, i);
    }
    while ((tight = find_tightest(w))) {
        fill_lane(w, g, tight);
    }
}
