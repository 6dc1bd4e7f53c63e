/* SPDX-License-Identifier: Apache-2.0 */

/* Rates by levels, shared inside.
 *
 * Switches and shims serve levels strictly: a level gets the bandwidth that
 * the levels before it leave.  Inside a level, flows share as TCP does, with
 * max-min fairness as the usual model: no flow can get more without reducing a
 * flow that has no more.  With all flows on one level there is no order.
 *
 * Results that an event does not change are kept: when a flow ends, the steps
 * of the water-filling before its own; when a flow begins, the levels before
 * its own. */

#include "sim/rates/rates.h"

#include <math.h>
#include <stdbool.h>

#include "order/problem/memory.h"
#include "sim/rates/bundle.h"
#include "sim/rates/water-filling.h"

struct share {
    struct rates up;
    struct bundles bundles;
    struct water_filling water;
    size_t n_emptied, allocated_emptied;
    uint32_t *emptied;          /* Bundles that the last flow has left. */
    size_t n_moved, allocated_moved;
    struct flow **moved;        /* Flows that change their level. */
    size_t restart;             /* First step to compute. */
    int restart_level;          /* First level to compute. */
    size_t popped;              /* No flow of a step before that has ended. */
};

static struct share *
share_cast(const struct rates *r)
{
    return (struct share *) r;
}

static struct rates *
share_create(const struct paths *paths)
{
    struct share *s = order_alloc(1, sizeof *s);

    bundles_init(&s->bundles, paths);
    water_filling_init(&s->water, &s->bundles);
    s->restart = NO_STEP;
    return &s->up;
}

static void
share_destroy(struct rates *r)
{
    struct share *s = share_cast(r);

    water_filling_uninit(&s->water);
    bundles_uninit(&s->bundles);
    free(s->emptied);
    free(s->moved);
    free(s);
}

/* Lets filling begin at 'step' of 'level' or earlier. */
static void
restart_at(struct share *s, size_t step, int level)
{
    if (s->restart == NO_STEP || level < s->restart_level) {
        s->restart_level = level;
    }
    s->restart = step < s->restart ? step : s->restart;
}

/* Puts 'flow' on the bundle of its level. */
static void
attach(struct share *s, struct flow *flow, double now)
{
    int level = flow->unit->level;
    uint32_t i = bundles_find(&s->bundles, flow->path, level, now);
    struct bundle *b = &s->bundles.bundles[i];

    flow->node.key = bundle_served(b, now) + flow->remaining;
    node_heap_push(&b->flows, &flow->node);
    water_filling_count(&s->water, b, 1);
    if (s->up.watches) {
        unit_change_rate(flow->unit, now, b->rate);
    }
    restart_at(s, water_filling_first_step(&s->water, level), level);
}

/* Takes 'flow' off bundle 'i'. */
static void
detach(struct share *s, struct flow *flow, uint32_t i, double now)
{
    struct bundle *b = &s->bundles.bundles[i];

    node_heap_remove(&b->flows, &flow->node);
    water_filling_count(&s->water, b, -1);
    if (s->up.watches) {
        unit_change_rate(flow->unit, now, -b->rate);
    }
    restart_at(s, b->step, b->level);
    if (!b->flows.n && !b->emptied) {
        b->emptied = true;
        s->emptied = order_grow(s->emptied, s->n_emptied + 1,
                                &s->allocated_emptied, sizeof *s->emptied);
        s->emptied[s->n_emptied++] = i;
    }
}

static void
share_add(struct rates *r, struct flow *flow, double now)
{
    flow->since = now;
    attach(share_cast(r), flow, now);
}

static void
remove_emptied(struct share *s)
{
    for (size_t i = 0; i < s->n_emptied; i++) {
        struct bundle *b = &s->bundles.bundles[s->emptied[i]];

        b->emptied = false;
        if (!b->flows.n) {
            bundles_remove(&s->bundles, s->emptied[i]);
        }
    }
    s->n_emptied = 0;
}

/* Computes the first end of a flow of 'b'. */
static void
expect_end(struct bundle *b)
{
    b->end = b->flows.n && b->rate > 0
        ? b->since + (b->flows.nodes[0]->key - b->served) / b->rate
        : INFINITY;
}

static void
set_rate(struct share *s, struct bundle *b, double rate, double now)
{
    if (rate != b->rate) {
        b->served = bundle_served(b, now);
        b->since = now;
        for (size_t i = 0; s->up.watches && i < b->flows.n; i++) {
            unit_change_rate(flow_of(b->flows.nodes[i])->unit, now,
                             rate - b->rate);
        }
        b->rate = rate;
    }
    expect_end(b);
}

/* Sets the rates of what has been filled from step 'first' on. */
static void
set_rates(struct share *s, size_t first, double now)
{
    for (size_t i = first; i < s->water.n_steps; i++) {
        struct step *step = &s->water.steps[i];
        size_t end = water_filling_end(&s->water, i);

        step->end = INFINITY;
        for (size_t j = step->first; j < end; j++) {
            struct bundle *b = &s->bundles.bundles[s->water.filled[j]];

            set_rate(s, b, b->floor + b->share, now);
            step->end = b->end < step->end ? b->end : step->end;
        }
    }
}

static void
share_update(struct rates *r, double now)
{
    struct share *s = share_cast(r);
    size_t restart = s->restart;
    size_t level = s->restart_level;

    s->popped = 0;
    if (restart == NO_STEP) {
        return;
    }
    s->restart = NO_STEP;
    if (r->min_share > 0) {
        restart = level = 0;
    }
    water_filling_undo(&s->water, restart);
    remove_emptied(s);
    if (r->min_share > 0) {
        water_filling_fill_min_shares(&s->water, r->min_share);
    }
    for (; level < s->bundles.n_levels; level++) {
        water_filling_fill(&s->water, level);
    }
    set_rates(s, restart, now);
}

/* Adds the flows of bundle 'i' whose units have changed their level to
 * 'moved'. */
static void
take_moved(struct share *s, uint32_t i, double now)
{
    const struct bundle *b = &s->bundles.bundles[i];
    double served = bundle_served(b, now);

    for (size_t j = b->flows.n; j-- > 0; ) {
        struct flow *flow = flow_of(b->flows.nodes[j]);

        if (flow->unit->level != b->level) {
            flow_settle_at(flow, rates_path(&s->up, flow), now,
                           flow->node.key - served);
            s->moved = order_grow(s->moved, s->n_moved + 1,
                                  &s->allocated_moved, sizeof *s->moved);
            s->moved[s->n_moved++] = flow;
        }
    }
}

static void
share_reorder(struct rates *r, double now, bool kept)
{
    struct share *s = share_cast(r);
    size_t begin = 0;

    (void) kept;
    water_filling_clear(&s->water);
    s->n_moved = 0;
    for (uint32_t i = 0; i < s->bundles.n_bundles; i++) {
        if (r->watches) {
            struct bundle *b = &s->bundles.bundles[i];

            b->served = bundle_served(b, now);
            b->since = now;
            b->rate = 0;
        }
        take_moved(s, i, now);
        for (; begin < s->n_moved; begin++) {
            detach(s, s->moved[begin], i, now);
        }
    }
    for (size_t i = 0; i < s->n_moved; i++) {
        attach(s, s->moved[i], now);
    }
    restart_at(s, 0, 0);
}

static double
share_next(const struct rates *r)
{
    const struct share *s = share_cast(r);
    double next = INFINITY;

    for (size_t i = 0; i < s->water.n_steps; i++) {
        next = s->water.steps[i].end < next ? s->water.steps[i].end : next;
    }
    return next;
}

static struct flow *
share_pop(struct rates *r, double now)
{
    struct share *s = share_cast(r);
    double until = now + now * RATES_TOGETHER;

    for (; s->popped < s->water.n_steps; s->popped++) {
        const struct step *step = &s->water.steps[s->popped];
        size_t end = water_filling_end(&s->water, s->popped);

        for (size_t i = step->first; step->end <= until && i < end; i++) {
            struct bundle *b = &s->bundles.bundles[s->water.filled[i]];

            if (b->end <= until) {
                struct flow *flow = flow_of(b->flows.nodes[0]);

                detach(s, flow, s->water.filled[i], now);
                expect_end(b);
                flow_finish(flow, rates_path(r, flow));
                return flow;
            }
        }
    }
    return NULL;
}

static void
share_settle(struct rates *r, double now)
{
    struct share *s = share_cast(r);

    for (size_t i = 0; i < s->water.n_filled; i++) {
        const struct bundle *b = &s->bundles.bundles[s->water.filled[i]];
        double served = bundle_served(b, now);

        for (size_t j = 0; j < b->flows.n; j++) {
            struct flow *flow = flow_of(b->flows.nodes[j]);

            flow_settle_at(flow, rates_path(r, flow), now,
                           flow->node.key - served);
        }
    }
}

static size_t
share_list(const struct rates *r, struct sim_flow **flows, size_t *allocated)
{
    const struct share *s = share_cast(r);
    size_t n = 0;

    *flows = order_grow(*flows, s->water.n_filled, allocated, sizeof **flows);
    for (size_t i = 0; i < s->water.n_filled; i++) {
        const struct bundle *b = &s->bundles.bundles[s->water.filled[i]];

        if (b->rate > 0) {
            rates_show(&r->paths->paths[b->path], b->flows.n * b->rate,
                       &(*flows)[n++]);
        }
    }
    return n;
}

const struct rates_class rates_share = {
    .create = share_create, .destroy = share_destroy, .add = share_add,
    .reorder = share_reorder, .update = share_update, .next = share_next,
    .pop = share_pop, .settle = share_settle, .list = share_list
};
