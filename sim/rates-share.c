/* SPDX-License-Identifier: Apache-2.0 */

/* Rates by levels, shared inside.
 *
 * Switches and shims serve levels strictly: a level gets what those before it
 * leave.  Inside a level TCP shares, of which max-min fairness is the usual
 * idealisation: no flow can be given more without taking from one that has no
 * more than it.  All flows on one level is no order at all.
 *
 * Max-min rates come from water-filling: the port that can give its flows
 * least is a bottleneck and gives them that, then the next.  Each such step
 * only takes what earlier ones have left, so when a flow ends, the steps
 * before the one that gave it its rate stay as they are: it had not been
 * looked at then.  Filling goes on from there.  Flows that begin may change
 * all steps of their level and later ones. */

#include "sim/rates.h"

#include <math.h>
#include <stdbool.h>

#include "sim/bundle.h"
#include "sim/memory.h"

/* What is left of a port below this share of its capacity is a rounding
 * error, not bandwidth for the next level. */
#define RESIDUE 1e-11

/* A lane that gave its waiting bundles what it could. */
struct step {
    uint32_t lane;
    double share;               /* For each of its flows. */
    size_t first;               /* Of its bundles in 'filled'. */
    double end;                 /* When the first flow of them ends. */
};

/* A lane that waits for its step. */
struct tight {
    uint32_t lane;
    double share;               /* It can give its flows that, or more. */
};

struct share {
    struct rates up;
    struct bundles bundles;
    double *left;               /* Of each port, bytes per second. */
    size_t n_steps, allocated_steps;
    struct step *steps;
    size_t n_filled, allocated_filled;
    uint32_t *filled;           /* Bundles, by step. */
    size_t n_tight, allocated_tight;
    struct tight *tight;        /* Heap, the smallest share first. */
    size_t n_emptied, allocated_emptied;
    uint32_t *emptied;          /* Bundles that the last flow has left. */
    size_t n_moved, allocated_moved;
    struct flow **moved;        /* To another level. */
    size_t restart;             /* First step to be done anew, and */
    int restart_level;          /* first level. */
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
    struct share *s = sim_calloc(1, sizeof *s);
    const struct sim_fabric *fabric = paths->fabric;

    bundles_init(&s->bundles, paths);
    s->left = sim_calloc(fabric->n_ports, sizeof *s->left);
    memcpy(s->left, fabric->capacity, fabric->n_ports * sizeof *s->left);
    s->restart = NO_STEP;
    return &s->up;
}

static void
share_destroy(struct rates *r)
{
    struct share *s = share_cast(r);

    bundles_uninit(&s->bundles);
    free(s->left);
    free(s->steps);
    free(s->filled);
    free(s->tight);
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

/* Returns the first step of 'level' or a later one. */
static size_t
first_step(const struct share *s, int level)
{
    size_t low = 0;
    size_t high = s->n_steps;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (s->bundles.lanes[s->steps[middle].lane].level < level) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Counts 'n' more flows in 'b', or less. */
static void
count_flows(struct share *s, const struct bundle *b, int n)
{
    for (int k = 0; k < b->n_hops; k++) {
        struct lane *lane = &s->bundles.lanes[b->hops[k].lane];

        if (b->step == NO_STEP) {
            lane->n_waiting += n;
        } else {
            s->left[lane->port] -= n * b->share;
        }
    }
}

/* Puts 'flow' on the bundle of its level. */
static void
attach(struct share *s, struct flow *flow, double now)
{
    int level = flow->unit->level;
    uint32_t i = bundles_find(&s->bundles, flow->path, level, now);
    struct bundle *b = &s->bundles.bundles[i];

    flow->key = bundle_served(b, now) + flow->remaining;
    flow_heap_push(&b->flows, flow);
    count_flows(s, b, 1);
    if (s->up.watches) {
        unit_change_rate(flow->unit, now, b->rate);
    }
    restart_at(s, first_step(s, level), level);
}

/* Takes 'flow' off bundle 'i'. */
static void
detach(struct share *s, struct flow *flow, uint32_t i, double now)
{
    struct bundle *b = &s->bundles.bundles[i];

    flow_heap_remove(&b->flows, flow);
    count_flows(s, b, -1);
    if (s->up.watches) {
        unit_change_rate(flow->unit, now, -b->rate);
    }
    restart_at(s, b->step, b->level);
    if (!b->flows.n && !b->emptied) {
        b->emptied = true;
        s->emptied = sim_grow(s->emptied, s->n_emptied + 1,
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

/* Forgets the steps from 'first' on. */
static void
undo(struct share *s, size_t first)
{
    size_t begin;

    if (first >= s->n_steps) {
        return;
    }
    begin = s->steps[first].first;
    for (size_t i = begin; i < s->n_filled; i++) {
        struct bundle *b = &s->bundles.bundles[s->filled[i]];
        int n = b->flows.n;

        count_flows(s, b, -n);
        b->step = NO_STEP;
        count_flows(s, b, n);
    }
    s->n_steps = first;
    s->n_filled = begin;
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

static double
lane_share(const struct share *s, uint32_t lane)
{
    const struct lane *l = &s->bundles.lanes[lane];

    return s->left[l->port] / l->n_waiting;
}

/* Lets the heap be one again below 'i'. */
static void
sift_down(struct share *s, size_t i)
{
    struct tight moving = s->tight[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < s->n_tight
            && s->tight[child + 1].share < s->tight[child].share) {
            child++;
        }
        if (child >= s->n_tight || s->tight[child].share >= moving.share) {
            break;
        }
        s->tight[i] = s->tight[child];
        i = child;
    }
    s->tight[i] = moving;
}

/* Gathers the lanes of 'level' that flows wait for. */
static void
gather_tight(struct share *s, const struct level *level)
{
    s->tight = sim_grow(s->tight, level->n, &s->allocated_tight,
                        sizeof *s->tight);
    s->n_tight = 0;
    for (size_t i = 0; i < level->n; i++) {
        uint32_t lane = level->lanes[i];

        if (s->bundles.lanes[lane].n_waiting) {
            s->tight[s->n_tight].lane = lane;
            s->tight[s->n_tight++].share = lane_share(s, lane);
        }
    }
    for (size_t i = s->n_tight / 2; i-- > 0; ) {
        sift_down(s, i);
    }
}

/* Takes the lane that can give its flows least off the heap.  Shares only
 * grow as others take less than theirs.  Returns false if none is left. */
static bool
pop_tight(struct share *s, struct tight *tightest)
{
    while (s->n_tight) {
        struct tight *top = &s->tight[0];
        bool waits = s->bundles.lanes[top->lane].n_waiting > 0;
        double share = waits ? lane_share(s, top->lane) : 0;

        if (waits && share > top->share) {
            top->share = share;
        } else {
            *tightest = *top;
            tightest->share = share;
            *top = s->tight[--s->n_tight];
            if (waits) {
                sift_down(s, 0);
                return true;
            }
        }
        sift_down(s, 0);
    }
    return false;
}

/* Gives the waiting flows of 'tight' their share. */
static void
fill_lane(struct share *s, const struct tight *tight)
{
    const double *capacity = s->up.paths->fabric->capacity;
    struct lane *lane = &s->bundles.lanes[tight->lane];

    s->steps = sim_grow(s->steps, s->n_steps + 1, &s->allocated_steps,
                        sizeof *s->steps);
    s->steps[s->n_steps] = (struct step) {
        .lane = tight->lane, .share = tight->share, .first = s->n_filled,
    };
    s->filled = sim_grow(s->filled, s->n_filled + lane->n,
                         &s->allocated_filled, sizeof *s->filled);
    for (size_t i = 0; i < lane->n; i++) {
        struct bundle *b = &s->bundles.bundles[lane->bundles[i]];

        if (b->step == NO_STEP) {
            int n = b->flows.n;

            count_flows(s, b, -n);
            b->step = s->n_steps;
            b->share = tight->share;
            count_flows(s, b, n);
            s->filled[s->n_filled++] = lane->bundles[i];
            for (int k = 0; k < b->n_hops; k++) {
                int p = s->bundles.lanes[b->hops[k].lane].port;

                if (s->left[p] < capacity[p] * RESIDUE) {
                    s->left[p] = 0;
                }
            }
        }
    }
    s->n_steps++;
}

static void
fill_level(struct share *s, const struct level *level)
{
    struct tight tight;

    gather_tight(s, level);
    while (pop_tight(s, &tight)) {
        fill_lane(s, &tight);
    }
}

/* Gives each level a small part of each port before any level gets the rest,
 * so that none starves. */
static void
fill_floors(struct share *s)
{
    const struct sim_fabric *fabric = s->up.paths->fabric;
    double *taken = sim_calloc(fabric->n_ports, sizeof *taken);
    double guard = fmin(s->up.guard_share, 1.0 / s->bundles.n_levels);

    for (size_t l = 0; l < s->bundles.n_levels; l++) {
        for (int p = 0; p < fabric->n_ports; p++) {
            s->left[p] = guard * fabric->capacity[p];
        }
        fill_level(s, &s->bundles.levels[l]);
        for (size_t i = 0; i < s->n_filled; i++) {
            struct bundle *b = &s->bundles.bundles[s->filled[i]];

            b->floor = b->share;
            for (int k = 0; k < b->n_hops; k++) {
                taken[s->bundles.lanes[b->hops[k].lane].port]
                    += b->flows.n * b->floor;
            }
        }
        undo(s, 0);
    }
    for (int p = 0; p < fabric->n_ports; p++) {
        s->left[p] = fmax(fabric->capacity[p] - taken[p], 0);
    }
    free(taken);
}

static void
set_rate(struct share *s, struct bundle *b, double rate, double now)
{
    if (rate != b->rate) {
        b->served = bundle_served(b, now);
        b->since = now;
        for (size_t i = 0; s->up.watches && i < b->flows.n; i++) {
            unit_change_rate(b->flows.flows[i]->unit, now, rate - b->rate);
        }
        b->rate = rate;
    }
    b->end = rate > 0
        ? b->since + (b->flows.flows[0]->key - b->served) / rate : INFINITY;
}

/* Sets the rates of what has been filled from step 'first' on. */
static void
set_rates(struct share *s, size_t first, double now)
{
    for (size_t i = first; i < s->n_steps; i++) {
        struct step *step = &s->steps[i];
        size_t end = i + 1 < s->n_steps ? step[1].first : s->n_filled;

        step->end = INFINITY;
        for (size_t j = step->first; j < end; j++) {
            struct bundle *b = &s->bundles.bundles[s->filled[j]];

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
    if (r->guard_share > 0) {
        restart = level = 0;
    }
    undo(s, restart);
    remove_emptied(s);
    if (r->guard_share > 0) {
        fill_floors(s);
    }
    for (; level < s->bundles.n_levels; level++) {
        fill_level(s, &s->bundles.levels[level]);
    }
    set_rates(s, restart, now);
}

/* Lists the flows of bundle 'i' whose units have another level now. */
static void
take_moved(struct share *s, uint32_t i, double now)
{
    const struct bundle *b = &s->bundles.bundles[i];
    double served = bundle_served(b, now);

    for (size_t j = b->flows.n; j-- > 0; ) {
        struct flow *flow = b->flows.flows[j];

        if (flow->unit->level != b->level) {
            flow_settle_at(flow, rates_path(&s->up, flow), now,
                           flow->key - served);
            s->moved = sim_grow(s->moved, s->n_moved + 1, &s->allocated_moved,
                                sizeof *s->moved);
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
    undo(s, 0);
    memcpy(s->left, r->paths->fabric->capacity,
           r->paths->fabric->n_ports * sizeof *s->left);
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

    for (size_t i = 0; i < s->n_steps; i++) {
        next = s->steps[i].end < next ? s->steps[i].end : next;
    }
    return next;
}

static struct flow *
share_pop(struct rates *r, double now)
{
    struct share *s = share_cast(r);
    double until = now + now * RATES_TOGETHER;

    for (; s->popped < s->n_steps; s->popped++) {
        const struct step *step = &s->steps[s->popped];
        size_t end = s->popped + 1 < s->n_steps ? step[1].first : s->n_filled;

        for (size_t i = step->first; step->end <= until && i < end; i++) {
            struct bundle *b = &s->bundles.bundles[s->filled[i]];

            if (b->end <= until) {
                struct flow *flow = b->flows.flows[0];

                detach(s, flow, s->filled[i], now);
                b->end = b->flows.n ? b->since + (b->flows.flows[0]->key
                                                  - b->served) / b->rate
                    : INFINITY;
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

    for (size_t i = 0; i < s->n_filled; i++) {
        const struct bundle *b = &s->bundles.bundles[s->filled[i]];
        double served = bundle_served(b, now);

        for (size_t j = 0; j < b->flows.n; j++) {
            struct flow *flow = b->flows.flows[j];

            flow_settle_at(flow, rates_path(r, flow), now,
                           flow->key - served);
        }
    }
}

static size_t
share_list(const struct rates *r, struct sim_flow **flows, size_t *allocated)
{
    const struct share *s = share_cast(r);
    size_t n = 0;

    *flows = sim_grow(*flows, s->n_filled, allocated, sizeof **flows);
    for (size_t i = 0; i < s->n_filled; i++) {
        const struct bundle *b = &s->bundles.bundles[s->filled[i]];

        if (b->rate > 0) {
            rates_show(&r->paths->paths[b->path], b->flows.n * b->rate,
                       &(*flows)[n++]);
        }
    }
    return n;
}

const struct rates_class rates_share = {
    .create = share_create,
    .destroy = share_destroy,
    .add = share_add,
    .reorder = share_reorder,
    .update = share_update,
    .next = share_next,
    .pop = share_pop,
    .settle = share_settle,
    .list = share_list,
};
