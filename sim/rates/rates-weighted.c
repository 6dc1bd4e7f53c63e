/* SPDX-License-Identifier: Apache-2.0 */

/* Rates of networks without ranks whose flows do not all count the same.
 *
 * rates_turns: as shims serve jobs of equal rank.  On its host's uplink each
 * job with flows gets an equal share, which its flows there divide equally,
 * and what a job cannot use goes to the others.  On all other ports flows
 * share as TCP does.
 *
 * rates_mltcp: MLTCP, a congestion control of hosts without shims.  A flow
 * counts 0.25 + 1.75 r on each port, r being the share of its iteration's
 * bytes that its job has sent, so that jobs that are about to end an exchange
 * get more and jobs drift apart.
 *
 * The flow that gets least gets its rate first, and what it leaves raises the
 * shares of others.  All rates are computed at each event, so traces with many
 * thousand flows take long. */

#include "sim/rates/rates.h"

#include <math.h>

#include "order/problem/memory.h"

/* A job's r grows by at most this between two updates. */
#define MLTCP_STEP 0.05

/* Candidates that differ by less are equal. */
#define EQUAL 1e-12

/* What a port still has for flows without a rate. */
struct left {
    double rate;    /* Bytes per second. */
    double waiting; /* Jobs with such flows on an uplink that jobs
                     * share, otherwise the sum of the weights. */
};

struct weighted {
    struct rates up;
    struct left *left; /* By port. */
    size_t n, allocated, allocated_waiting;
    struct flow **flows, **waiting;
    double next; /* Next end of a flow or update, seconds. */
    bool turns, changed;
};

static struct weighted *
weighted_cast(const struct rates *r)
{
    return (struct weighted *) r;
}

static struct rates *
weighted_create(const struct paths *paths, bool turns)
{
    struct weighted *w = order_alloc(1, sizeof *w);

    w->left = order_alloc(paths->fabric->n_ports, sizeof *w->left);
    w->turns = turns;
    w->next = INFINITY;
    return &w->up;
}

static struct rates *
turns_create(const struct paths *paths)
{
    return weighted_create(paths, true);
}

static struct rates *
mltcp_create(const struct paths *paths)
{
    return weighted_create(paths, false);
}

static void
weighted_destroy(struct rates *r)
{
    struct weighted *w = weighted_cast(r);

    free(w->left);
    free(w->flows);
    free(w->waiting);
    free(w);
}

static void
weighted_add(struct rates *r, struct flow *flow, double now)
{
    struct weighted *w = weighted_cast(r);

    flow->since = now;
    flow->rate = 0;
    flow->node.key = INFINITY;
    w->flows = order_grow(w->flows, w->n + 1, &w->allocated, sizeof *w->flows);
    w->flows[w->n++] = flow;
    w->changed = true;
}

static void
weighted_reorder(struct rates *r, double now, bool kept)
{
    (void) r;
    (void) now;
    (void) kept;
}

/* What 'flow' counts on a port whose flows share. */
static double
weight_of(const struct weighted *w, const struct flow *flow)
{
    const struct unit *unit = flow->unit;

    return w->turns ? 1 : 0.25 + 1.75 * unit->sent / (unit->sent + unit->left);
}

static struct work *
uplink_of(const struct flow *flow)
{
    return &flow->unit->work[flow->work[0]];
}

/* Counts the flows that wait for a rate, which are all. */
static void
begin_filling(struct weighted *w)
{
    const struct sim_fabric *fabric = w->up.paths->fabric;

    for (int p = 0; p < fabric->n_ports; p++) {
        w->left[p] = (struct left){ .rate = fabric->capacity[p] };
    }
    w->waiting = order_grow(w->waiting, w->n, &w->allocated_waiting,
                            sizeof *w->waiting);
    for (size_t i = 0; i < w->n; i++) {
        w->waiting[i] = w->flows[i];
        uplink_of(w->flows[i])->n_waiting = 0;
        uplink_of(w->flows[i])->granted = 0;
    }
    for (size_t i = 0; i < w->n; i++) {
        const struct path *path = rates_path(&w->up, w->flows[i]);
        double weight = weight_of(w, w->flows[i]);

        for (int k = w->turns; k < path->n_ports; k++) {
            w->left[path->ports[k]].waiting += weight;
        }
        if (w->turns && !uplink_of(w->flows[i])->n_waiting++) {
            w->left[path->ports[0]].waiting++;
        }
    }
}

/* Returns the rate that the ports of 'flow' have for it. */
static double
candidate(const struct weighted *w, const struct flow *flow)
{
    const struct path *path = rates_path(&w->up, flow);
    double weight = weight_of(w, flow);
    double rate = INFINITY;

    for (int k = w->turns; k < path->n_ports; k++) {
        const struct left *left = &w->left[path->ports[k]];

        rate = fmin(rate, left->rate / left->waiting * weight);
    }
    if (w->turns) {
        const struct left *left = &w->left[path->ports[0]];
        const struct work *work = uplink_of(flow);

        rate = fmin(rate, (left->rate / left->waiting - work->granted)
                              / work->n_waiting);
    }
    return fmax(rate, 0);
}

static void
grant(struct weighted *w, struct flow *flow, double rate)
{
    const struct path *path = rates_path(&w->up, flow);
    double weight = weight_of(w, flow);

    flow->rate = rate;
    for (int k = w->turns; k < path->n_ports; k++) {
        w->left[path->ports[k]].rate -= rate;
        w->left[path->ports[k]].waiting -= weight;
    }
    if (w->turns) {
        struct work *work = uplink_of(flow);

        work->granted += rate;
        if (!--work->n_waiting) {
            w->left[path->ports[0]].rate -= work->granted;
            w->left[path->ports[0]].waiting--;
        }
    }
}

static void
fill(struct weighted *w)
{
    size_t n = w->n;

    begin_filling(w);
    while (n) {
        double least = INFINITY;
        size_t n_left = 0;

        for (size_t i = 0; i < n; i++) {
            least = fmin(least, candidate(w, w->waiting[i]));
        }
        for (size_t i = 0; i < n; i++) {
            struct flow *flow = w->waiting[i];

            if (candidate(w, flow) <= least * (1 + EQUAL)) {
                grant(w, flow, least);
            } else {
                w->waiting[n_left++] = flow;
            }
        }
        n = n_left;
    }
}

static void
weighted_settle(struct rates *r, double now)
{
    struct weighted *w = weighted_cast(r);

    for (size_t i = 0; i < w->n; i++) {
        flow_settle(w->flows[i], rates_path(r, w->flows[i]), now);
    }
}

static void
weighted_update(struct rates *r, double now)
{
    struct weighted *w = weighted_cast(r);

    if (!w->changed && now < w->next) {
        return;
    }
    weighted_settle(r, now);
    fill(w);
    for (size_t i = 0; i < w->n; i++) {
        w->flows[i]->unit->rate = 0;
    }
    for (size_t i = 0; i < w->n; i++) {
        w->flows[i]->unit->rate += w->flows[i]->rate;
    }
    w->changed = false;
    w->next = INFINITY;
    for (size_t i = 0; i < w->n; i++) {
        struct flow *flow = w->flows[i];
        const struct unit *unit = flow->unit;

        flow->node.key = now + flow->remaining / flow->rate;
        w->next = fmin(w->next, flow->node.key);
        if (!w->turns) {
            w->next = fmin(
                w->next,
                now + MLTCP_STEP * (unit->sent + unit->left) / unit->rate);
        }
    }
}

static double
weighted_next(const struct rates *r)
{
    return weighted_cast(r)->next;
}

static struct flow *
weighted_pop(struct rates *r, double now)
{
    struct weighted *w = weighted_cast(r);
    double until = now + now * RATES_TOGETHER;

    for (size_t i = 0; w->next <= until && i < w->n; i++) {
        struct flow *flow = w->flows[i];

        if (flow->node.key <= until) {
            w->flows[i] = w->flows[--w->n];
            w->changed = true;
            flow_finish(flow, rates_path(r, flow));
            return flow;
        }
    }
    return NULL;
}

static size_t
weighted_list(const struct rates *r, struct sim_flow **flows,
              size_t *allocated)
{
    const struct weighted *w = weighted_cast(r);

    *flows = order_grow(*flows, w->n, allocated, sizeof **flows);
    for (size_t i = 0; i < w->n; i++) {
        rates_show(rates_path(r, w->flows[i]), w->flows[i]->rate,
                   &(*flows)[i]);
    }
    return w->n;
}

#define WEIGHTED(CREATE)                                                    \
    {                                                                       \
        .create = CREATE, .destroy = weighted_destroy, .add = weighted_add, \
        .reorder = weighted_reorder, .update = weighted_update,             \
        .next = weighted_next, .pop = weighted_pop,                         \
        .settle = weighted_settle, .list = weighted_list,                   \
    }

const struct rates_class rates_turns = WEIGHTED(turns_create);
const struct rates_class rates_mltcp = WEIGHTED(mltcp_create);
