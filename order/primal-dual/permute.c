/* SPDX-License-Identifier: Apache-2.0 */

/* The primal-dual permutation, from the last rank to the first.
 *
 * The busiest port bounds the completion of the last of the remaining stages.
 * The stage that is cheapest to delay there (weight per second) goes last.
 * Its price, y = weight / seconds, is charged to all remaining stages on the
 * port in proportion to their seconds, which changes which stage is the
 * cheapest next.  The charges are a solution of the dual of the linear program
 * over completion times C
 *
 *     min sum w_s C_s
 *     sum_{s in A} d_sp C_s >= ((sum_A d_sp)^2 + sum_A d_sp^2) / 2,  all p, A
 *     C_s >= isolated end of s
 *
 * which every schedule satisfies, so their value is a lower bound.  Without
 * releases the order costs at most twice the bound if ports are independent
 * machines.  With releases and computing, a stage with an isolated end that is
 * late compared with the load of the busiest port goes last and pays its whole
 * weight for its own end.
 *
 * The permutation places large stages first, from the last rank on, and
 * charges all others on the port.  Most of those are far from being placed,
 * and their charges matter only when they come near.
 *
 * Let Y_p be the sum of all prices at port p so far.  A stage of weight w that
 * needs d_p seconds of each port and is not placed has
 *
 *     w - sum_p d_p Y_p
 *
 * of its weight remaining.  Take any a_p > 0, and Y so large that Y_p + price
 * is at most a_p Y on all ports.  A stage with Y sum_p d_p a_p < w has more
 * remaining weight than d_p times any of these prices, so it is not the
 * cheapest on any port: it is inactive.  As Y rises, stages become active by
 * falling sum_p d_p a_p / w, compute their remaining weight from all Y_p at
 * once, and join the lists of their ports.  The closer a_p is to the final
 * Y_p, the longer stages stay inactive.  Prices add up where loads are large;
 * the square of a port's load at the start was found to be close. */

#include "order/primal-dual/primal-dual.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "order/primal-dual/permute-kernel.h"
#include "order/primal-dual/port-load.h"
#include "order/problem/memory.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/problem/sort.h"

/* Stages become active although they could stay inactive until the highest
 * price is this factor higher, because each activation repeats the search of a
 * port. */
#define LOOKAHEAD 1.25

/* Number of stages by which prefetching precedes reading. */
#define PREFETCH 4

/* Placed stages are removed from a list of 'N' when there are more of them. */
#define MAX_PLACED(N) ((N) / 4 + PERMUTE_LANES)

/* Frequently read members of a stage, close together. */
struct active_stage {
    const struct order_demand *demands;
    size_t n_demands;
    double weight;
};

struct active_set {
    const struct order_problem *op;
    const struct permute_kernel *kernel;

    struct active_stage *stages;        /* All stages of the problem. */
    double *remaining;          /* For each active stage: unpaid share of its
                                 * weight; INFINITY once it is placed.  One
                                 * more element is always placed; it fills up
                                 * lists. */
    double *prices;             /* For each port: Y_p, weight per second. */
    double *scale;              /* For each port: 1 / a_p, at least 1 for
                                 * ports with demand. */
    double highest;             /* Y: at least all 'prices' times 'scale',
                                 * except for those in 'deferred'. */
    double deferred;            /* Largest price times scale for which no stage
                                 * has become active yet. */
    struct radix_item *items, *spare;   /* For sorting. */
    const struct radix_item *by_activation;     /* Stages by falling
                                                 * sum_p d_p a_p / w. */
    size_t n_active;            /* The first ones of 'by_activation' that are
                                 * active. */

    size_t *first, *end;        /* For each port: range of its active stages in
                                 * the next three arrays. */
    int *stage;
    double *inverse, *share;    /* As in struct permute_list. */
    size_t allocated_stages, allocated_ports, allocated_demands;
};

/* Placement of one stage. */
struct step {
    int stage;
    int port;                   /* The busiest port, -1 for none. */
    double load;                /* Remaining seconds of 'port'. */
    double price;               /* Charged for a second of 'port'. */
};

struct permuter {
    const struct order_problem *op;
    double kappa;
    struct step *steps;         /* By rank, of the last order for kappa 0. */
    struct port_load load;      /* Of unplaced stages. */
    struct active_set active;
    double value;               /* Value of the dual so far. */
    double product;             /* Sum of prices times the port's load. */
    double most;                /* Load of the busiest port at the start. */
    double least_remaining;     /* Smallest remaining share of weight of a
                                 * placed stage; less than 0 has been charged
                                 * in excess. */

    double *price;              /* Prices of the stages of a list. */
    int *match;                 /* Indexes in a list. */

    double *end;                /* Isolated end of each stage. */
    struct radix_item *items, *spare;   /* For sorting. */
    const struct radix_item *by_end;    /* Stages by falling 'end'; unplaced
                                         * ones are at or after 'latest'. */
    size_t latest;
    size_t youngest;            /* Above all unplaced stages in the problem's
                                 * 'by_id'. */
    size_t allocated;           /* Number of stages that arrays have space
                                 * for. */
};

/* Returns the sort key of a stage: the upper bits of 'sum' as a float, which
 * sort as the sum does, inverted, so that larger sums go first.  Equal keys
 * for different sums only activate a stage too early. */
static uint64_t
sum_to_key(double sum)
{
    float f = sum;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return 0xffff - (bits >> 15);
}

static void
active_uninit(struct active_set *a)
{
    free(a->stages);
    free(a->remaining);
    free(a->prices);
    free(a->scale);
    free(a->items);
    free(a->spare);
    free(a->first);
    free(a->end);
    free(a->stage);
    free(a->inverse);
    free(a->share);
}

static void
allocate_stages(struct active_set *a, size_t n)
{
    if (!a->remaining || n > a->allocated_stages) {
        a->allocated_stages = n;
        a->stages = order_renew(a->stages, n, sizeof *a->stages);
        a->remaining = order_renew(a->remaining, n + 1, sizeof *a->remaining);
        a->items = order_renew(a->items, n, sizeof *a->items);
        a->spare = order_renew(a->spare, n, sizeof *a->spare);
    }
}

static void
allocate_ports(struct active_set *a, size_t n)
{
    if (n > a->allocated_ports) {
        a->allocated_ports = n;
        a->prices = order_renew(a->prices, n, sizeof *a->prices);
        a->scale = order_renew(a->scale, n, sizeof *a->scale);
        a->first = order_renew(a->first, n, sizeof *a->first);
        a->end = order_renew(a->end, n, sizeof *a->end);
    }
}

static void
allocate_demands(struct active_set *a, size_t n)
{
    if (n > a->allocated_demands) {
        n += n / 4;
        a->allocated_demands = n;
        a->stage = order_renew(a->stage, n, sizeof *a->stage);
        a->inverse = order_renew(a->inverse, n, sizeof *a->inverse);
        a->share = order_renew(a->share, n, sizeof *a->share);
    }
}

/* Adds the demands of all stages to 'load', by rising id, so that sums do not
 * depend on indexes.  Returns the number of demands. */
static size_t
start_stages(struct active_set *a, struct port_load *load)
{
    const struct order_problem *op = a->op;
    size_t n = 0;

    for (size_t i = 0; i < op->n_stages; i++) {
        int s = op->by_id[i];
        const struct order_stage *stage = &op->stages[s];

        for (size_t j = 0; j < stage->n_demands; j++) {
            port_load_add(load, stage->demands[j].port,
                          stage->demands[j].seconds);
        }
        n += stage->n_demands;
        a->remaining[s] = 1;
        a->stages[s] = (struct active_stage){ stage->demands, stage->n_demands,
                                              stage->weight };
    }
    a->remaining[op->n_stages] = INFINITY;
    return n;
}

/* Starts the prices of all ports at 0.  Returns the largest load. */
static double
start_prices(struct active_set *a, const struct port_load *load)
{
    double most = 0;

    for (int p = 0; p < a->op->n_ports; p++) {
        a->prices[p] = 0;
        most = fmax(most, load->seconds[p]);
    }
    for (int p = 0; p < a->op->n_ports; p++) {
        double share = load->seconds[p] / most;

        a->scale[p] = load->n[p] ? 1 / (share * share) : 1;
    }
    a->highest = a->deferred = 0;
    return most;
}

/* Makes all stages inactive.  'most' is the largest load. */
static void
start_inactive(struct active_set *a, const struct port_load *load, double most)
{
    size_t n = a->op->n_stages;

    for (size_t i = 0; i < n; i++) {
        int s = a->op->by_id[i];
        const struct active_stage *stage = &a->stages[s];
        double sum = 0;

        for (size_t j = 0; j < stage->n_demands; j++) {
            double seconds = load->seconds[stage->demands[j].port];

            sum += stage->demands[j].seconds * seconds * seconds;
        }
        a->items[i].key = sum_to_key(sum / (most * most) / stage->weight);
        a->items[i].stage = s;
    }
    a->by_activation = radix_sort(a->items, a->spare, n, 2);
    a->n_active = 0;
}

/* Reserves space for the demands of each port in 'load', plus padding. */
static void
start_lists(struct active_set *a, const struct port_load *load)
{
    size_t first = 0;

    for (int p = 0; p < a->op->n_ports; p++) {
        a->first[p] = a->end[p] = first;
        first += load->n[p] + PERMUTE_LANES;
    }
}

/* Prepares 'a' for the problem 'op', with all stages inactive and no charges,
 * and adds all demands to 'load', which must have been started. */
static void
active_start(struct active_set *a, const struct order_problem *op,
             struct port_load *load)
{
    size_t n_demands;

    a->op = op;
    a->kernel = permute_kernel();
    allocate_stages(a, op->allocated_stages);
    allocate_ports(a, op->n_ports);
    n_demands = start_stages(a, load);
    allocate_demands(a, n_demands + op->n_ports * PERMUTE_LANES);
    start_lists(a, load);
    start_inactive(a, load, start_prices(a, load));
}

/* Stores the active stages on 'port' in '*list', padded with a placed one. */
static void
active_list(struct active_set *a, int port, struct permute_list *list)
{
    size_t n = a->end[port] - a->first[port];

    *list = (struct permute_list){ .stage = a->stage + a->first[port],
                                   .inverse = a->inverse + a->first[port],
                                   .share = a->share + a->first[port],
                                   .n = (n + PERMUTE_LANES - 1) / PERMUTE_LANES
                                        * PERMUTE_LANES };
    for (; n < list->n; n++) {
        list->stage[n] = a->op->n_stages;
        list->inverse[n] = 1;
        list->share[n] = 0;
    }
}

/* Removes the placed stages from the list of 'port' and updates '*list'. */
static void
active_remove_placed(struct active_set *a, int port, struct permute_list *list)
{
    size_t n = a->first[port];

    for (size_t i = n; i < a->end[port]; i++) {
        a->stage[n] = a->stage[i];
        a->inverse[n] = a->inverse[i];
        a->share[n] = a->share[i];
        n += a->remaining[a->stage[i]] <= 1;
    }
    a->end[port] = n;
    active_list(a, port, list);
}

/* Returns the remaining share of the weight of 'stage', which is not
 * placed. */
static double
remaining_share(const struct active_set *a, int stage)
{
    const struct active_stage *s = &a->stages[stage];
    double paid = 0;

    for (size_t i = 0; i < s->n_demands; i++) {
        paid += s->demands[i].seconds * a->prices[s->demands[i].port];
    }
    return 1 - paid / s->weight;
}

static void
activate(struct active_set *a, int s)
{
    const struct active_stage *stage = &a->stages[s];
    const struct order_demand *demands = stage->demands;
    double weight = stage->weight, inverse = 1 / weight, paid = 0;
    const double *prices = a->prices;
    size_t *end = a->end;

    for (size_t i = 0; i < stage->n_demands; i++) {
        int port = demands[i].port;
        size_t j = end[port]++;

        a->stage[j] = s;
        a->inverse[j] = weight * demands[i].inverse;
        a->share[j] = demands[i].seconds * inverse;
        paid += demands[i].seconds * prices[port];
    }
    a->remaining[s] = 1 - paid * inverse;
}

/* Activates the next stage.  Returns false if all stages are active. */
static bool
activate_next(struct active_set *a)
{
    int s;

    if (a->n_active == a->op->n_stages) {
        return false;
    }
    if (a->n_active + PREFETCH < a->op->n_stages) {
        const struct active_stage *later
            = &a->stages[a->by_activation[a->n_active + PREFETCH].stage];

        order_prefetch(later->demands,
                       later->n_demands * sizeof *later->demands);
    }
    s = a->by_activation[a->n_active++].stage;
    if (!isinf(a->remaining[s])) {
        activate(a, s);
    }
    return true;
}

/* Activates the stages that 'price' more at 'port' could make the cheapest.
 * Returns true if there are any. */
static bool
active_raise(struct active_set *a, int port, double price)
{
    double highest = fmax((a->prices[port] + price) * a->scale[port],
                          a->deferred);
    size_t n = a->op->n_stages;
    uint32_t key;

    if (highest <= a->highest) {
        return false;
    }
    a->highest = highest;
    key = sum_to_key((1 - 1e-6) / highest);
    if (a->n_active == n || a->by_activation[a->n_active].key > key) {
        return false;
    }
    key = sum_to_key((1 - 1e-6) / highest / LOOKAHEAD);
    while (a->n_active < n && a->by_activation[a->n_active].key <= key) {
        activate_next(a);
    }
    return true;
}

/* Notes the price at 'port' without activating stages; the next
 * active_raise() does that.  No stage may be active. */
static void
active_defer(struct active_set *a, int port)
{
    a->deferred = fmax(a->deferred, a->prices[port] * a->scale[port]);
}

static void
permuter_uninit(void *pm_)
{
    struct permuter *pm = pm_;

    port_load_uninit(&pm->load);
    active_uninit(&pm->active);
    free(pm->steps);
    free(pm->price);
    free(pm->match);
    free(pm->end);
    free(pm->items);
    free(pm->spare);
}

static struct permuter *
get_permuter(const struct order_problem *op)
{
    return scratch_keep(op->scratch, sizeof(struct permuter), permuter_uninit);
}

/* Sorts the stages by their isolated ends, then by id. */
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
allocate_permuter(struct permuter *pm, size_t n)
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
permuter_start(struct permuter *pm, const struct order_problem *op,
               double kappa)
{
    pm->op = op;
    pm->kappa = kappa;
    allocate_permuter(pm, op->allocated_stages);
    port_load_start(&pm->load, op->n_ports, op->n_on_port);
    active_start(&pm->active, op, &pm->load);
    pm->value = pm->product = pm->most = 0;
    pm->least_remaining = 0;
    pm->latest = 0;
    pm->youngest = op->n_stages;
    if (kappa > 0) {
        sort_ends(pm);
    }
}

static bool
is_placed(const struct permuter *pm, int stage)
{
    return isinf(pm->active.remaining[stage]);
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

/* Returns the unplaced stage with the latest isolated end; of equals the
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

/* Stores the stages on 'port' that may be the cheapest in '*list' and their
 * prices in 'pm->price'.  Returns the lowest price. */
static double
lowest_price(struct permuter *pm, int port, struct permute_list *list)
{
    struct active_set *a = &pm->active;
    size_t n_placed;
    double price;

    do {
        active_list(a, port, list);
        price = a->kernel->price(list, a->remaining, pm->price, &n_placed);
        if (n_placed > MAX_PLACED(list->n)) {
            active_remove_placed(a, port, list);
            price = a->kernel->price(list, a->remaining, pm->price, &n_placed);
        }
    } while (isinf(price) ? activate_next(a) : active_raise(a, port, price));
    return price;
}

/* Returns the stage of 'list' that goes last: of those with at most 'price'
 * the largest, of equals the youngest. */
static int
choose_match(struct permuter *pm, const struct permute_list *list,
             double price)
{
    const struct order_stage *stages = pm->op->stages;
    size_t n = pm->active.kernel->match(pm->price, list->n,
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

/* Raises the dual variable of ('port', remaining stages) by 'price'.  'load'
 * is the remaining load of the port. */
static void
raise_price(struct permuter *pm, int port, double load, double price)
{
    pm->active.prices[port] += price;
    pm->value += price * load * load / 2;
    pm->product += price * load;
}

/* Chooses the stage that goes last of those remaining on the busiest port,
 * raises the dual variable of (port, remaining stages) until that stage has
 * paid its weight, and fills in 'step'. */
static void
charge_port(struct permuter *pm, struct step *step)
{
    const struct active_stage *stage;
    struct permute_list list;

    step->price = lowest_price(pm, step->port, &list);
    step->stage = choose_match(pm, &list, step->price);
    stage = &pm->active.stages[step->stage];
    order_prefetch(stage->demands, stage->n_demands * sizeof *stage->demands);
    if (step->price > 0) {
        pm->active.kernel->charge(&list, step->price, pm->active.remaining);
        raise_price(pm, step->port, step->load, step->price);
    }
    pm->least_remaining = fmin(pm->least_remaining,
                               pm->active.remaining[step->stage]);
}

/* Charges the remaining weight of 'stage' for its isolated end. */
static void
charge_stage(struct permuter *pm, int stage)
{
    double remaining = remaining_share(&pm->active, stage);

    pm->value += fmax(remaining, 0) * pm->op->stages[stage].weight
        * pm->end[stage];
    pm->least_remaining = fmin(pm->least_remaining, remaining);
}

/* Places the stage with the latest isolated end last, and fills in 'step', if
 * that end is late compared with 'step->load'.  Returns false otherwise. */
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

/* Removes 's' from the remaining stages.  The squares of its seconds are part
 * of the value of all charges to it, the current prices of its ports. */
static void
place_stage(struct permuter *pm, int s)
{
    const struct active_stage *stage = &pm->active.stages[s];
    const double *prices = pm->active.prices;
    double squares = 0;

    pm->active.remaining[s] = INFINITY;
    for (size_t i = 0; i < stage->n_demands; i++) {
        int port = stage->demands[i].port;
        double seconds = stage->demands[i].seconds;

        squares += seconds * seconds * prices[port];
        port_load_remove(&pm->load, port, seconds);
    }
    pm->value += squares / 2;
}

/* Returns the dual's value minus the largest possible rounding error.  Charges
 * that exceed a stage's weight scale down all charges.  Loads are off by one
 * rounding of the largest load for each stage added and removed, other sums by
 * at most one rounding per term. */
static double
certify(const struct permuter *pm)
{
    double n = pm->op->n_stages + pm->op->n_ports + 1;
    double value = pm->value - pm->product * pm->most * 2 * n * DBL_EPSILON;

    return fmax(value / (1 - pm->least_remaining)
                * (1 - 8 * n * DBL_EPSILON), 0);
}

/* Fills the first 'k' ranks of 'order' and returns the bound. */
static double
fill_ranks(struct permuter *pm, size_t k, int *order)
{
    while (k-- > 0) {
        struct step step;

        choose_last(pm, &step);
        place_stage(pm, step.stage);
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
    struct permuter *pm = get_permuter(op);

    permuter_start(pm, op, kappa);
    return fill_ranks(pm, op->n_stages, order);
}

/* Places stages from the last rank on as the last order for kappa 0 did, until
 * a stage with a late isolated end must be placed instead.  Returns the number
 * of remaining stages.  No stage becomes active: a stage that does later
 * computes all its charges at once. */
static size_t
repeat_steps(struct permuter *pm, int *order)
{
    size_t k = pm->op->n_stages;

    while (k > 0) {
        struct step *step = &pm->steps[k - 1], late = *step;

        pm->most = fmax(pm->most, step->load);
        if (place_latest(pm, &late)) {
            order[--k] = late.stage;
            place_stage(pm, late.stage);
            break;
        }
        order[--k] = step->stage;
        if (step->price > 0) {
            raise_price(pm, step->port, step->load, step->price);
            active_defer(&pm->active, step->port);
        }
        place_stage(pm, step->stage);
    }
    return k;
}

double
permute_again(const struct order_problem *op, double kappa, int *order)
{
    struct permuter *pm = get_permuter(op);

    permuter_start(pm, op, kappa);
    return fill_ranks(pm, repeat_steps(pm, order), order);
}
