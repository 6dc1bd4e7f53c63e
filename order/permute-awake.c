/* SPDX-License-Identifier: Apache-2.0 */

#include "order/permute-awake.h"

#include <math.h>
#include <string.h>

#include "order/memory.h"
#include "order/port-load.h"

/* Who is woken although it could sleep until the highest price is so many
 * times as high: for each time that stages wake, a port is searched again. */
#define AHEAD 1.25

/* How many stages before they are read they are brought near. */
#define PREFETCH 4

/* A stage's key: its 'sum' as a float's upper bits, which sort as the sum
 * does, inverted, so that larger sums go first.  Equal keys for different sums
 * only wake a stage too early. */
static uint64_t
sum_to_key(double sum)
{
    float f = sum;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return 0xffff - (bits >> 15);
}

void
awake_uninit(struct awake *a)
{
    free(a->stages);
    free(a->left);
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
allocate_stages(struct awake *a, size_t n)
{
    if (!a->left || n > a->allocated_stages) {
        a->allocated_stages = n;
        a->stages = order_renew(a->stages, n, sizeof *a->stages);
        a->left = order_renew(a->left, n + 1, sizeof *a->left);
        a->items = order_renew(a->items, n, sizeof *a->items);
        a->spare = order_renew(a->spare, n, sizeof *a->spare);
    }
}

static void
allocate_ports(struct awake *a, size_t n)
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
allocate_demands(struct awake *a, size_t n)
{
    if (n > a->allocated_demands) {
        n += n / 4;
        a->allocated_demands = n;
        a->stage = order_renew(a->stage, n, sizeof *a->stage);
        a->inverse = order_renew(a->inverse, n, sizeof *a->inverse);
        a->share = order_renew(a->share, n, sizeof *a->share);
    }
}

/* Looks at all stages by rising id, so that sums are the same whatever their
 * indexes, and adds their demands to 'load'.  Returns how many there are. */
static size_t
start_stages(struct awake *a, struct port_load *load)
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
        a->left[s] = 1;
        a->stages[s] = (struct awake_stage) {
            stage->demands, stage->n_demands, stage->weight,
        };
    }
    a->left[op->n_stages] = INFINITY;
    return n;
}

/* Starts the prices of all ports at 0.  Returns the largest load. */
static double
start_prices(struct awake *a, const struct port_load *load)
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
    a->highest = a->passed = 0;
    return most;
}

/* Lets all stages sleep.  'most' is the largest load. */
static void
start_sleepers(struct awake *a, const struct port_load *load, double most)
{
    size_t n = a->op->n_stages;

    for (size_t i = 0; i < n; i++) {
        int s = a->op->by_id[i];
        const struct awake_stage *stage = &a->stages[s];
        double sum = 0;

        for (size_t j = 0; j < stage->n_demands; j++) {
            double seconds = load->seconds[stage->demands[j].port];

            sum += stage->demands[j].seconds * seconds * seconds;
        }
        a->items[i].key = sum_to_key(sum / (most * most) / stage->weight);
        a->items[i].stage = s;
    }
    a->sleepers = radix_sort(a->items, a->spare, n, 2);
    a->n_woken = 0;
}

/* Gives each port room for all that 'load' has on it, and to fill up. */
static void
start_lists(struct awake *a, const struct port_load *load)
{
    size_t first = 0;

    for (int p = 0; p < a->op->n_ports; p++) {
        a->first[p] = a->end[p] = first;
        first += load->n[p] + PERMUTE_LANES;
    }
}

/* Prepares 'a' for the problem 'op', with all stages asleep and nothing
 * charged, and adds all demands to 'load', which must have been started. */
void
awake_start(struct awake *a, const struct order_problem *op,
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
    start_sleepers(a, load, start_prices(a, load));
}

/* Stores in '*list' the awake stages on 'port', filled up with one that is
 * placed. */
void
awake_list(struct awake *a, int port, struct permute_list *list)
{
    size_t n = a->end[port] - a->first[port];

    *list = (struct permute_list) {
        .stage = a->stage + a->first[port],
        .inverse = a->inverse + a->first[port],
        .share = a->share + a->first[port],
        .n = (n + PERMUTE_LANES - 1) / PERMUTE_LANES * PERMUTE_LANES,
    };
    for (; n < list->n; n++) {
        list->stage[n] = a->op->n_stages;
        list->inverse[n] = 1;
        list->share[n] = 0;
    }
}

/* Takes the placed stages off the list of 'port' and updates '*list'. */
void
awake_tidy(struct awake *a, int port, struct permute_list *list)
{
    size_t n = a->first[port];

    for (size_t i = n; i < a->end[port]; i++) {
        a->stage[n] = a->stage[i];
        a->inverse[n] = a->inverse[i];
        a->share[n] = a->share[i];
        n += a->left[a->stage[i]] <= 1;
    }
    a->end[port] = n;
    awake_list(a, port, list);
}

/* Returns the share of its weight that 'stage', unplaced, has left. */
double
awake_left(const struct awake *a, int stage)
{
    const struct awake_stage *s = &a->stages[stage];
    double paid = 0;

    for (size_t i = 0; i < s->n_demands; i++) {
        paid += s->demands[i].seconds * a->prices[s->demands[i].port];
    }
    return 1 - paid / s->weight;
}

static void
wake(struct awake *a, int s)
{
    const struct awake_stage *stage = &a->stages[s];
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
    a->left[s] = 1 - paid * inverse;
}

/* Wakes the next stage.  Returns false if all are awake. */
bool
awake_wake_next(struct awake *a)
{
    int s;

    if (a->n_woken == a->op->n_stages) {
        return false;
    }
    if (a->n_woken + PREFETCH < a->op->n_stages) {
        const struct awake_stage *later
            = &a->stages[a->sleepers[a->n_woken + PREFETCH].stage];

        order_prefetch(later->demands,
                       later->n_demands * sizeof *later->demands);
    }
    s = a->sleepers[a->n_woken++].stage;
    if (!isinf(a->left[s])) {
        wake(a, s);
    }
    return true;
}

/* Wakes who cannot sleep if the prices at 'port' rise by 'price'.  Returns
 * true if that is anybody. */
bool
awake_raise(struct awake *a, int port, double price)
{
    double highest = fmax((a->prices[port] + price) * a->scale[port],
                          a->passed);
    size_t n = a->op->n_stages;
    uint32_t key;

    if (highest <= a->highest) {
        return false;
    }
    a->highest = highest;
    key = sum_to_key((1 - 1e-6) / highest);
    if (a->n_woken == n || a->sleepers[a->n_woken].key > key) {
        return false;
    }
    key = sum_to_key((1 - 1e-6) / highest / AHEAD);
    while (a->n_woken < n && a->sleepers[a->n_woken].key <= key) {
        awake_wake_next(a);
    }
    return true;
}

/* Takes note of the prices at 'port' without waking anybody, as long as nobody
 * is awake: the next awake_raise() will. */
void
awake_pass(struct awake *a, int port)
{
    a->passed = fmax(a->passed, a->prices[port] * a->scale[port]);
}
