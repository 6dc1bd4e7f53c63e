/* SPDX-License-Identifier: Apache-2.0 */

/* The primal-dual permutation, from the last rank to the first.
 *
 * Of the stages that are left, the busiest port is the one that decides when
 * the last of them can end; the stage that is cheapest to delay there (weight
 * per second) goes last.  What it pays, y = weight / seconds, is charged to
 * all that are left on the port in proportion to their seconds, which changes
 * who is cheap next.  The charges are a solution of the dual of the linear
 * program over completion times C
 *
 *     min sum w_s C_s
 *     sum_{s in A} d_sp C_s >= ((sum_A d_sp)^2 + sum_A d_sp^2) / 2,  all p, A
 *     C_s >= earliest end of s alone
 *
 * which every schedule satisfies, so their value is a lower bound.  Without
 * releases the order costs at most twice the bound when ports are independent
 * machines.  With releases and computing, a stage whose earliest end is late
 * against the busiest port goes last and pays its whole weight for itself. */

#include "controller/order/order.h"

#include <float.h>
#include <math.h>

#include "controller/order/by-port.h"
#include "controller/order/memory.h"

/* Relative difference below which two numbers are the same number, computed
 * twice: what decides between them must not be the last bit. */
#define TIE 1e-12

struct end_index {
    double end;
    int stage;
};

struct permuter {
    const struct order_problem *op;
    double kappa;
    struct by_port bp;

    double *load;               /* Of each port: seconds of unplaced stages. */
    size_t *n_left;             /* Of each port: unplaced stages. */
    bool *placed;               /* Of each stage. */
    double *paid;               /* Of each stage: what the dual charges it,
                                 * from 0 to its weight. */

    double *end;                /* Of each stage: earliest end alone. */
    struct end_index *by_end;   /* Stages by falling 'end'; unplaced ones
                                 * begin at or after 'latest'. */
    size_t latest;
    size_t youngest;            /* Above all unplaced in bp.by_id. */
    double bound;               /* Value of the dual so far. */
};

static int
compare_ends(const void *a_, const void *b_)
{
    const struct end_index *a = a_, *b = b_;

    if (a->end != b->end) {
        return a->end > b->end ? -1 : 1;
    }
    return (a->stage > b->stage) - (a->stage < b->stage);
}

static void
sort_ends(struct permuter *pm)
{
    size_t n = pm->op->n_stages;

    for (size_t i = 0; i < n; i++) {
        pm->end[i] = order_stage_earliest_end(&pm->op->stages[i]);
        pm->by_end[i].end = pm->end[i];
        pm->by_end[i].stage = i;
    }
    qsort(pm->by_end, n, sizeof *pm->by_end, compare_ends);
}

static void
permuter_init(struct permuter *pm, const struct order_problem *op,
              double kappa)
{
    size_t n = op->n_stages;

    pm->op = op;
    pm->kappa = kappa;
    by_port_init(&pm->bp, op);
    pm->load = order_alloc(op->n_ports, sizeof *pm->load);
    pm->n_left = order_alloc(op->n_ports, sizeof *pm->n_left);
    pm->placed = order_alloc(n, sizeof *pm->placed);
    pm->paid = order_alloc(n, sizeof *pm->paid);
    pm->end = order_alloc(n, sizeof *pm->end);
    pm->by_end = order_alloc(n, sizeof *pm->by_end);
    pm->latest = 0;
    pm->youngest = n;
    pm->bound = 0;

    for (int p = 0; p < op->n_ports; p++) {
        const struct by_port_demand *d = by_port_demands(&pm->bp, p,
                                                         &pm->n_left[p]);

        for (size_t i = 0; i < pm->n_left[p]; i++) {
            pm->load[p] += d[i].seconds;
        }
    }
    if (kappa > 0) {
        sort_ends(pm);
    }
}

static void
permuter_uninit(struct permuter *pm)
{
    by_port_uninit(&pm->bp);
    free(pm->load);
    free(pm->n_left);
    free(pm->placed);
    free(pm->paid);
    free(pm->end);
    free(pm->by_end);
}

/* Returns the port with the most left to do, -1 if nobody needs any. */
static int
busiest_port(const struct permuter *pm)
{
    int busiest = -1;

    for (int p = 0; p < pm->op->n_ports; p++) {
        if (pm->n_left[p]
            && (busiest < 0
                || pm->load[p] > pm->load[busiest] * (1 + TIE))) {
            busiest = p;
        }
    }
    return busiest;
}

/* Returns the unplaced stage with the largest id. */
static int
youngest_stage(struct permuter *pm)
{
    while (pm->placed[pm->bp.by_id[pm->youngest - 1]]) {
        pm->youngest--;
    }
    return pm->bp.by_id[pm->youngest - 1];
}

/* Returns the unplaced stage that ends last even if it is alone; of equals the
 * youngest. */
static int
latest_stage(struct permuter *pm)
{
    const struct order_stage *stages = pm->op->stages;
    const struct end_index *first;
    int latest;

    while (pm->placed[pm->by_end[pm->latest].stage]) {
        pm->latest++;
    }
    first = &pm->by_end[pm->latest];
    latest = first->stage;
    for (size_t i = pm->latest + 1; i < pm->op->n_stages; i++) {
        const struct end_index *e = &pm->by_end[i];

        if (e->end < first->end * (1 - TIE)) {
            break;
        }
        if (!pm->placed[e->stage] && stages[e->stage].id > stages[latest].id) {
            latest = e->stage;
        }
    }
    return latest;
}

/* Returns what 'stage' has left of its weight. */
static double
weight_left(const struct permuter *pm, int stage)
{
    double weight = pm->op->stages[stage].weight;
    double left = weight - pm->paid[stage];

    return left > TIE * weight ? left : 0;
}

/* Returns true if the stage with 'd' seconds at 'price' goes after the older
 * one with 'best_d' and 'best_price': it is cheaper to delay or, at the same
 * price, larger or, at the same size, younger. */
static bool
goes_after(double price, double d, double best_price, double best_d)
{
    if (fabs(price - best_price) > TIE * fmax(price, best_price)) {
        return price < best_price;
    }
    return d >= best_d * (1 - TIE);
}

/* Chooses the stage that goes last of those left on 'port', raises the dual
 * variable of (port, stages left) until that stage has paid its weight, and
 * returns it. */
static int
charge_port(struct permuter *pm, int port)
{
    double sum = 0, squares = 0, price = INFINITY, seconds = 0;
    const struct by_port_demand *d;
    int last = -1;
    size_t n;

    d = by_port_demands(&pm->bp, port, &n);
    for (size_t i = 0; i < n; i++) {
        if (!pm->placed[d[i].stage]) {
            double p = weight_left(pm, d[i].stage) / d[i].seconds;

            sum += d[i].seconds;
            squares += d[i].seconds * d[i].seconds;
            if (last < 0 || goes_after(p, d[i].seconds, price, seconds)) {
                last = d[i].stage;
                price = p;
                seconds = d[i].seconds;
            }
        }
    }

    pm->bound += price * (sum * sum + squares) / 2;
    for (size_t i = 0; i < n; i++) {
        if (!pm->placed[d[i].stage]) {
            pm->paid[d[i].stage] += price * d[i].seconds;
        }
    }
    return last;
}

/* Lets 'stage' pay what it has left for its own earliest end. */
static void
charge_stage(struct permuter *pm, int stage)
{
    double left = weight_left(pm, stage);

    pm->bound += left * pm->end[stage];
    pm->paid[stage] += left;
}

static int
choose_last(struct permuter *pm)
{
    int port = busiest_port(pm);
    double load = port < 0 ? 0 : pm->load[port];

    if (pm->kappa > 0) {
        int stage = latest_stage(pm);

        if (pm->end[stage] > pm->kappa * load * (1 + TIE)) {
            charge_stage(pm, stage);
            return stage;
        }
    }
    return port < 0 ? youngest_stage(pm) : charge_port(pm, port);
}

static void
place(struct permuter *pm, int s)
{
    const struct order_stage *stage = &pm->op->stages[s];

    pm->placed[s] = true;
    for (size_t i = 0; i < stage->n_demands; i++) {
        int p = stage->demands[i].port;

        pm->load[p] -= stage->demands[i].seconds;
        pm->n_left[p]--;
    }
}

/* Returns the bound, made a bound in spite of rounding: charges that exceed a
 * stage's weight scale all of them down, and sums of 'n' positive terms are
 * off by at most 'n' roundings each. */
static double
certify(const struct permuter *pm)
{
    size_t n = pm->op->n_stages;
    double worst = 1;

    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, pm->paid[i] / pm->op->stages[i].weight);
    }
    return pm->bound / worst * (1 - 8 * (n + 1) * DBL_EPSILON);
}

double
permute(const struct order_problem *op, double kappa, int *order)
{
    struct permuter pm;
    double bound;

    permuter_init(&pm, op, kappa);
    for (size_t k = op->n_stages; k-- > 0; ) {
        order[k] = choose_last(&pm);
        place(&pm, order[k]);
    }
    bound = certify(&pm);
    permuter_uninit(&pm);
    return bound;
}
