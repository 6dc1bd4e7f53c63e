/* SPDX-License-Identifier: Apache-2.0 */

#include "order/baselines/interleave.h"

#include <math.h>

#include "order/problem/memory.h"
#include "order/problem/problem.h"
#include "order/problem/sort.h"

/* Slots of the shortest period, and maximum number of slots of the circle. */
#define PERIOD_SLOTS 32
#define MAX_SLOTS 2048

/* Maximum number of shifts tried for a stage, and number of passes over all
 * stages. */
#define MAX_SHIFTS 64
#define N_PASSES 3

/* Smaller relative differences are rounding errors. */
#define TIE 1e-9

struct circle {
    const struct order_problem *op;
    struct interleave *il;
    int *index;                 /* Of each port: index in 'il->ports', or
                                 * -1. */
    bool *shared;               /* Of each stage: it is on one of these
                                 * ports. */
    double slot_s;              /* Seconds of a slot. */
    int n_slots;
    int *period;                /* Period of each shared stage, in slots,
                                 * >= 1. */
    int *shift;                 /* First slot of each shared stage, 0 .. period
                                 * - 1. */
    double *load;               /* For each of 'il->ports': load of each slot,
                                 * relative to the port's rate. */
};

double
interleave_duty(const struct order_stage *stage)
{
    const struct order_traits *t = &stage->traits;

    return t->period > 0 && t->burst > 0 ? fmin(t->burst / t->period, 1) : 0;
}

bool
interleave_fits(const struct order_stage *a, const struct order_stage *b)
{
    double most_a = order_stage_bottleneck(a);
    double most_b = order_stage_bottleneck(b);
    double duty_a = interleave_duty(a), duty_b = interleave_duty(b);
    bool meet = false;

    if (duty_a <= 0 || duty_b <= 0) {
        return false;
    }
    for (size_t i = 0, j = 0; i < a->n_demands && j < b->n_demands; ) {
        const struct order_demand *x = &a->demands[i], *y = &b->demands[j];

        if (x->port == y->port) {
            double share_a = x->seconds / most_a;
            double share_b = y->seconds / most_b;

            if (share_a * duty_a + share_b * duty_b > 1 + TIE) {
                return false;
            }
            meet |= share_a >= 1 - TIE && share_b >= 1 - TIE;
        }
        i += x->port <= y->port;
        j += y->port <= x->port;
    }
    return meet;
}

/* Finds the ports that periodic stages share. */
static void
find_ports(struct circle *c)
{
    const struct order_problem *op = c->op;
    size_t *n = order_alloc(op->n_ports, sizeof *n);

    for (size_t s = 0; s < op->n_stages; s++) {
        const struct order_stage *stage = &op->stages[s];

        for (size_t i = 0; i < stage->n_demands; i++) {
            n[stage->demands[i].port] += interleave_duty(stage) > 0;
        }
    }
    c->il->ports = order_alloc(op->n_ports, sizeof *c->il->ports);
    for (int p = 0; p < op->n_ports; p++) {
        c->index[p] = -1;
        if (n[p] > 1) {
            struct interleave_port *port = &c->il->ports[c->il->n_ports];

            c->index[p] = c->il->n_ports++;
            port->port = p;
            port->stages = order_alloc(n[p], sizeof *port->stages);
        }
    }
    free(n);
}

/* Adds each periodic stage to the ports that it shares with others. */
static void
find_stages(struct circle *c)
{
    for (size_t s = 0; s < c->op->n_stages; s++) {
        const struct order_stage *stage = &c->op->stages[s];
        double duty = interleave_duty(stage);
        double most = order_stage_bottleneck(stage);

        for (size_t i = 0; i < stage->n_demands && duty > 0; i++) {
            const struct order_demand *d = &stage->demands[i];
            int index = c->index[d->port];

            if (index >= 0) {
                struct interleave_port *port = &c->il->ports[index];

                port->stages[port->n_stages++] = s;
                port->utilisation += duty * d->seconds / most;
                c->shared[s] = true;
            }
        }
    }
    for (size_t i = 0; i < c->il->n_ports; i++) {
        struct interleave_port *port = &c->il->ports[i];

        port->compatible = port->utilisation <= 1 + TIE;
    }
}

static int
common_divisor(int a, int b)
{
    return b ? common_divisor(b, a % b) : a;
}

/* Rounds periods to slots and computes the number of slots of the circle. */
static void
draw_circle(struct circle *c)
{
    double shortest = INFINITY, longest = 0;

    for (size_t s = 0; s < c->op->n_stages; s++) {
        if (c->shared[s]) {
            shortest = fmin(shortest, c->op->stages[s].traits.period);
            longest = fmax(longest, c->op->stages[s].traits.period);
        }
    }
    c->slot_s = fmax(shortest / PERIOD_SLOTS, 2 * longest / MAX_SLOTS);
    c->n_slots = 1;
    for (size_t s = 0; s < c->op->n_stages; s++) {
        if (c->shared[s]) {
            int period = fmax(round(c->op->stages[s].traits.period
                                    / c->slot_s), 1);
            int times = period / common_divisor(period, c->n_slots);

            c->period[s] = period;
            c->n_slots = times > MAX_SLOTS / c->n_slots ? MAX_SLOTS
                         : c->n_slots * times;
        }
    }
}

/* Adds 'times' times the bursts of stage 's', which use 'share' of a port, to
 * the port's 'load'.  Returns by how much the bursts exceed the port's rate,
 * in slots. */
static double
add_on_port(const struct circle *c, int s, int shift, double share,
            double times, double *load)
{
    double burst = interleave_duty(&c->op->stages[s]) * c->period[s];
    double excess = 0;

    for (int from = shift - c->period[s]; from < c->n_slots;
         from += c->period[s]) {
        double to = from + burst;

        for (int i = from > 0 ? from : 0; i < c->n_slots && i < to; i++) {
            double more = share * fmin(to - i, 1);

            excess += fmax(load[i] + more - 1, 0) - fmax(load[i] - 1, 0);
            load[i] += times * more;
        }
    }
    return excess;
}

/* Calls add_on_port() for all shared ports of stage 's' and returns the sum.
 * */
static double
add_bursts(const struct circle *c, int s, int shift, double times)
{
    const struct order_stage *stage = &c->op->stages[s];
    double most = order_stage_bottleneck(stage);
    double excess = 0;

    for (size_t i = 0; i < stage->n_demands; i++) {
        const struct order_demand *d = &stage->demands[i];
        int index = c->index[d->port];

        if (index >= 0) {
            excess += add_on_port(c, s, shift, d->seconds / most, times,
                                  &c->load[(size_t) index * c->n_slots]);
        }
    }
    return excess;
}

/* Sets the shift of stage 's', whose bursts are not in the load, to the one
 * that exceeds the ports' rates least, of equals the smallest. */
static void
choose_shift(struct circle *c, int s)
{
    int step = (c->period[s] + MAX_SHIFTS - 1) / MAX_SHIFTS;
    double least = INFINITY;

    for (int shift = 0; shift < c->period[s]; shift += step) {
        double excess = add_bursts(c, s, shift, 0);

        if (excess < least - TIE) {
            least = excess;
            c->shift[s] = shift;
        }
    }
}

static struct order_key
duty_key(const struct order_stage *stage, const struct order_options *options)
{
    return (struct order_key) { { -interleave_duty(stage) } };
}

/* Adds all stages without a shift. */
static void
add_all(struct circle *c)
{
    for (size_t s = 0; s < c->op->n_stages; s++) {
        if (c->shared[s]) {
            add_bursts(c, s, 0, 1);
        }
    }
}

/* Shifts one stage after the other, the busiest last. */
static void
find_shifts(struct circle *c)
{
    int *order = order_alloc(c->op->n_stages, sizeof *order);

    sort_by_key(c->op, NULL, duty_key, order);
    for (int i = 0; i < N_PASSES; i++) {
        for (size_t k = c->op->n_stages; k-- > 0; ) {
            int s = order[k];

            if (c->shared[s]) {
                add_bursts(c, s, c->shift[s], -1);
                choose_shift(c, s);
                add_bursts(c, s, c->shift[s], 1);
            }
        }
    }
    free(order);
}

/* Returns the mean load of a port above its rate, relative to the rate. */
static double
port_excess(const struct circle *c, size_t index)
{
    const double *load = &c->load[index * c->n_slots];
    double excess = 0;

    for (int i = 0; i < c->n_slots; i++) {
        excess += load[i] > 1 + TIE ? load[i] - 1 : 0;
    }
    return excess / c->n_slots;
}

static void
report_shifts(const struct circle *c)
{
    for (size_t s = 0; s < c->op->n_stages; s++) {
        if (c->shared[s]) {
            c->il->shift[s] = c->op->stages[s].traits.period * c->shift[s]
                              / c->period[s];
        }
    }
}

struct interleave *
interleave_create(const struct order_problem *op)
{
    struct interleave *il = order_alloc(1, sizeof *il);
    struct circle c = {
        .op = op,
        .il = il,
        .index = order_alloc(op->n_ports, sizeof *c.index),
        .shared = order_alloc(op->n_stages, sizeof *c.shared),
        .period = order_alloc(op->n_stages, sizeof *c.period),
        .shift = order_alloc(op->n_stages, sizeof *c.shift),
    };

    il->n_stages = op->n_stages;
    il->shift = order_alloc(op->n_stages, sizeof *il->shift);
    find_ports(&c);
    find_stages(&c);
    draw_circle(&c);
    c.load = order_alloc(il->n_ports * c.n_slots, sizeof *c.load);
    add_all(&c);
    for (size_t i = 0; i < il->n_ports; i++) {
        il->ports[i].unshifted = port_excess(&c, i);
    }
    find_shifts(&c);
    for (size_t i = 0; i < il->n_ports; i++) {
        il->ports[i].excess = port_excess(&c, i);
    }
    report_shifts(&c);

    free(c.index);
    free(c.shared);
    free(c.period);
    free(c.shift);
    free(c.load);
    return il;
}

void
interleave_destroy(struct interleave *il)
{
    if (il) {
        for (size_t i = 0; i < il->n_ports; i++) {
            free(il->ports[i].stages);
        }
        free(il->ports);
        free(il->shift);
        free(il);
    }
}
