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

#include "order/permute.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "order/memory.h"
#include "order/order.h"
#include "order/permute-awake.h"
#include "order/permute-kernel.h"
#include "order/port-load.h"

/* A list of 'N' stages is tidied when so many of it are placed. */
#define MAX_PLACED(N) ((N) / 4 + PERMUTE_LANES)

/* What happened when a stage was placed. */
struct step {
    int stage;
    int port;                   /* The busiest, -1 for none, */
    double load;                /* what it had left, in seconds, */
    double price;               /* and what it charged for a second. */
};

struct permuter {
    const struct order_problem *op;
    double kappa;
    struct step *steps;         /* By rank, of the last order for kappa 0. */
    struct port_load load;      /* Of unplaced stages. */
    struct awake awake;
    double value;               /* Of the dual so far. */
    double product;             /* Sum of prices times the port's load. */
    double most;                /* Load of the busiest port at the start. */
    double least_left;          /* Of any placed stage, as a share of its
                                 * weight: what is below 0 was charged in
                                 * excess. */

    double *price;              /* Of a list's stages. */
    int *match;                 /* Indexes in a list. */

    double *end;                /* Of each stage: earliest end alone. */
    struct radix_item *items, *spare;   /* For sorting. */
    const struct radix_item *by_end;    /* Stages by falling 'end'; unplaced
                                         * ones are at or after 'latest'. */
    size_t latest;
    size_t youngest;            /* Above all unplaced in the problem's
                                 * 'by_id'. */
    size_t allocated;           /* Stages that all arrays have room for. */
};

struct permuter *
permuter_create(void)
{
    return order_alloc(1, sizeof(struct permuter));
}

void
permuter_destroy(struct permuter *pm)
{
    port_load_uninit(&pm->load);
    awake_uninit(&pm->awake);
    free(pm->steps);
    free(pm->price);
    free(pm->match);
    free(pm->end);
    free(pm->items);
    free(pm->spare);
    free(pm);
}

/* Sorts the stages by their ends, those with the same by id. */
static void
sort_ends(struct permuter *pm)
{
    size_t n = pm->op->n_stages;

    for (size_t i = 0; i < n; i++) {
        int s = pm->op->by_id[i];

        pm->end[s] = order_stage_earliest_end(&pm->op->stages[s]);
        pm->items[i].key = radix_falling(pm->end[s]);
        pm->items[i].stage = s;
    }
    pm->by_end = radix_sort(pm->items, pm->spare, n, sizeof(uint64_t));
}

static void
allocate(struct permuter *pm, size_t n)
{
    if (n > pm->allocated) {
        pm->allocated = n;
        pm->price = order_renew(pm->price, n + PERMUTE_LANES,
                                sizeof *pm->price);
        pm->match = order_renew(pm->match, n + PERMUTE_LANES,
                                sizeof *pm->match);
        pm->steps = order_renew(pm->steps, n, sizeof *pm->steps);
        pm->end = order_renew(pm->end, n, sizeof *pm->end);
        pm->items = order_renew(pm->items, n, sizeof *pm->items);
        pm->spare = order_renew(pm->spare, n, sizeof *pm->spare);
    }
}

static void
start(struct permuter *pm, const struct order_problem *op, double kappa)
{
    pm->op = op;
    pm->kappa = kappa;
    allocate(pm, op->allocated_stages);
    port_load_start(&pm->load, op->n_ports, op->n_on_port);
    awake_start(&pm->awake, op, &pm->load);
    pm->value = pm->product = pm->most = 0;
    pm->least_left = 0;
    pm->latest = 0;
    pm->youngest = op->n_stages;
    if (kappa > 0) {
        sort_ends(pm);
    }
}

static bool
is_placed(const struct permuter *pm, int stage)
{
    return isinf(pm->awake.left[stage]);
}

/* Returns the unplaced stage with the largest id. */
static int
youngest_stage(struct permuter *pm)
{
    while (is_placed(pm, pm->op->by_id[pm->youngest - 1])) {
        pm->youngest--;
    }
    return pm->op->by_id[pm->youngest - 1];
}

/* Returns the unplaced stage that ends last even if it is alone; of equals the
 * youngest. */
static int
latest_stage(struct permuter *pm)
{
    const struct order_stage *stages = pm->op->stages;
    double first;
    int latest;

    while (is_placed(pm, pm->by_end[pm->latest].stage)) {
        pm->latest++;
    }
    latest = pm->by_end[pm->latest].stage;
    first = pm->end[latest];
    for (size_t i = pm->latest + 1; i < pm->op->n_stages; i++) {
        int s = pm->by_end[i].stage;

        if (pm->end[s] < first * (1 - PERMUTE_TIE)) {
            break;
        }
        if (!is_placed(pm, s) && stages[s].id > stages[latest].id) {
            latest = s;
        }
    }
    return latest;
}

/* Stores in '*list' the stages on 'port' of which one may be the cheapest, in
 * 'price' their prices, and returns the lowest. */
static double
lowest_price(struct permuter *pm, int port, struct permute_list *list)
{
    struct awake *a = &pm->awake;
    size_t n_placed;
    double price;

    do {
        awake_list(a, port, list);
        price = a->kernel->price(list, a->left, pm->price, &n_placed);
        if (n_placed > MAX_PLACED(list->n)) {
            awake_tidy(a, port, list);
            price = a->kernel->price(list, a->left, pm->price, &n_placed);
        }
    } while (isinf(price) ? awake_wake_next(a)
             : awake_raise(a, port, price));
    return price;
}

/* Returns which stage on 'list' goes last of those with 'price' or less: the
 * largest, of equals the youngest. */
static int
choose_match(struct permuter *pm, const struct permute_list *list,
             double price)
{
    const struct order_stage *stages = pm->op->stages;
    size_t n = pm->awake.kernel->match(pm->price, list->n,
                                       price * (1 + PERMUTE_TIE), pm->match);
    int last = list->stage[pm->match[0]];
    double most = 0;

    if (n == 1) {
        return last;
    }
    for (size_t i = 0; i < n; i++) {
        int j = pm->match[i];

        most = fmax(most, list->share[j] * stages[list->stage[j]].weight);
    }
    last = -1;
    for (size_t i = 0; i < n; i++) {
        int j = pm->match[i], s = list->stage[j];

        if (list->share[j] * stages[s].weight >= most * (1 - PERMUTE_TIE)
            && (last < 0 || stages[s].id > stages[last].id)) {
            last = s;
        }
    }
    return last;
}

/* Raises the dual variable of ('port', stages left) by 'price'; 'load' is what
 * the port has left. */
static void
raise_price(struct permuter *pm, int port, double load, double price)
{
    pm->awake.prices[port] += price;
    pm->value += price * load * load / 2;
    pm->product += price * load;
}

/* Chooses the stage that goes last of those left on the busiest port, raises
 * the dual variable of (port, stages left) until that stage has paid its
 * weight, and fills in 'step'. */
static void
charge_port(struct permuter *pm, struct step *step)
{
    const struct awake_stage *stage;
    struct permute_list list;

    step->price = lowest_price(pm, step->port, &list);
    step->stage = choose_match(pm, &list, step->price);
    stage = &pm->awake.stages[step->stage];
    order_prefetch(stage->demands,
                   stage->n_demands * sizeof *stage->demands);
    if (step->price > 0) {
        pm->awake.kernel->charge(&list, step->price, pm->awake.left);
        raise_price(pm, step->port, step->load, step->price);
    }
    pm->least_left = fmin(pm->least_left, pm->awake.left[step->stage]);
}

/* Lets 'stage' pay what it has left for its own earliest end. */
static void
charge_stage(struct permuter *pm, int stage)
{
    double left = awake_left(&pm->awake, stage);

    pm->value += fmax(left, 0) * pm->op->stages[stage].weight
        * pm->end[stage];
    pm->least_left = fmin(pm->least_left, left);
}

/* Lets the stage that ends last alone go last and fills in 'step' if that is
 * late against 'step->load'; returns false if not. */
static bool
place_latest(struct permuter *pm, struct step *step)
{
    int stage;

    if (pm->kappa <= 0) {
        return false;
    }
    stage = latest_stage(pm);
    if (pm->end[stage] <= pm->kappa * step->load * (1 + PERMUTE_TIE)) {
        return false;
    }
    charge_stage(pm, stage);
    step->stage = stage;
    return true;
}

static void
choose_last(struct permuter *pm, struct step *step)
{
    step->port = port_load_busiest(&pm->load);
    step->load = step->port < 0 ? 0 : pm->load.seconds[step->port];
    step->price = 0;
    pm->most = fmax(pm->most, step->load);
    if (!place_latest(pm, step)) {
        if (step->port < 0) {
            step->stage = youngest_stage(pm);
        } else {
            charge_port(pm, step);
        }
    }
}

/* Takes 's' out of what is left.  The squares of its seconds are in the value
 * of all charges that it was part of, which are its ports' prices now. */
static void
place(struct permuter *pm, int s)
{
    const struct awake_stage *stage = &pm->awake.stages[s];
    const double *prices = pm->awake.prices;
    double squares = 0;

    pm->awake.left[s] = INFINITY;
    for (size_t i = 0; i < stage->n_demands; i++) {
        int port = stage->demands[i].port;
        double seconds = stage->demands[i].seconds;

        squares += seconds * seconds * prices[port];
        port_load_remove(&pm->load, port, seconds);
    }
    pm->value += squares / 2;
}

/* Returns the bound, made a bound in spite of rounding.  Charges that exceed a
 * stage's weight scale all of them down.  Loads are off by a rounding of the
 * largest for each stage that came and went, and what else is summed up by at
 * most one of its own for each term. */
static double
certify(const struct permuter *pm)
{
    double n = pm->op->n_stages + pm->op->n_ports + 1;
    double value = pm->value
        - pm->product * pm->most * 2 * n * DBL_EPSILON;

    return fmax(value / (1 - pm->least_left) * (1 - 8 * n * DBL_EPSILON), 0);
}

/* Fills the first 'k' ranks of 'order' and returns the bound. */
static double
finish(struct permuter *pm, size_t k, int *order)
{
    while (k-- > 0) {
        struct step step;

        choose_last(pm, &step);
        place(pm, step.stage);
        order[k] = step.stage;
        if (pm->kappa == 0) {
            pm->steps[k] = step;
        }
    }
    return certify(pm);
}

double
permute(const struct order_problem *op, double kappa, int *order)
{
    struct permuter *pm = op->permuter;

    start(pm, op, kappa);
    return finish(pm, op->n_stages, order);
}

/* Places stages as the last order for kappa 0 did, from the last rank on,
 * until one that ends late alone has to go before.  Returns how many are left
 * then.  Nobody wakes up: who does later finds out all charges at once. */
static size_t
repeat(struct permuter *pm, int *order)
{
    size_t k = pm->op->n_stages;

    while (k > 0) {
        struct step *step = &pm->steps[k - 1], late = *step;

        pm->most = fmax(pm->most, step->load);
        if (place_latest(pm, &late)) {
            order[--k] = late.stage;
            place(pm, late.stage);
            break;
        }
        order[--k] = step->stage;
        if (step->price > 0) {
            raise_price(pm, step->port, step->load, step->price);
            awake_pass(&pm->awake, step->port);
        }
        place(pm, step->stage);
    }
    return k;
}

double
permute_again(const struct order_problem *op, double kappa, int *order)
{
    struct permuter *pm = op->permuter;

    start(pm, op, kappa);
    return finish(pm, repeat(pm, order), order);
}
