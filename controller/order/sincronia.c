/* SPDX-License-Identifier: Apache-2.0 */

/* The order of Sincronia (Agarwal et al., SIGCOMM 2018).
 *
 * Bottleneck, select, scale, iterate is the plain permutation; see permute.c.
 * If some coflows come later, the one that comes last goes last when that is
 * late against the busiest port (their Algorithm 3, after Ahmadi et al.).
 *
 * Sincronia orders at the beginning of an epoch.  Coflows that come while it
 * runs are orphans: after all that were there, those that waited long for
 * their size first. */

#include "controller/order/peers.h"

#include <math.h>

#include "controller/order/by-key.h"
#include "controller/order/memory.h"
#include "controller/order/order-internal.h"

/* The largest share of the busiest port's seconds that the last release may be
 * for that port to decide who is last. */
#define RELEASE_SHARE 0.5

struct bssi {
    const struct order_problem *op;
    int *left;                  /* Stages not placed yet, by id. */
    size_t n_left;
    double *weight;             /* What each stage has left of its weight. */
    double *load;               /* Of each port: seconds of those left. */
};

static struct order_key
id_key(const struct order_stage *stage, const struct order_options *options)
{
    return (struct order_key) { { 0 } };
}

static void
bssi_init(struct bssi *bssi, const struct order_problem *op)
{
    bssi->op = op;
    bssi->left = order_alloc(op->n_stages, sizeof *bssi->left);
    bssi->n_left = op->n_stages;
    bssi->weight = order_alloc(op->n_stages, sizeof *bssi->weight);
    bssi->load = order_alloc(op->n_ports, sizeof *bssi->load);
    sort_by_key(op, NULL, id_key, bssi->left);
    for (size_t i = 0; i < op->n_stages; i++) {
        bssi->weight[i] = op->stages[i].weight;
    }
}

static void
bssi_uninit(struct bssi *bssi)
{
    free(bssi->left);
    free(bssi->weight);
    free(bssi->load);
}

/* Returns the port of which the stages left need most, or -1 if they need
 * nothing. */
static int
busiest_port(struct bssi *bssi)
{
    int busiest = -1;

    for (int p = 0; p < bssi->op->n_ports; p++) {
        bssi->load[p] = 0;
    }
    for (size_t i = 0; i < bssi->n_left; i++) {
        const struct order_stage *stage = &bssi->op->stages[bssi->left[i]];

        for (size_t j = 0; j < stage->n_demands; j++) {
            bssi->load[stage->demands[j].port] += stage->demands[j].seconds;
        }
    }
    for (int p = 0; p < bssi->op->n_ports; p++) {
        if (bssi->load[p] > (busiest < 0 ? 0 : bssi->load[busiest])) {
            busiest = p;
        }
    }
    return busiest;
}

static double
seconds_on(const struct order_stage *stage, int port)
{
    for (size_t i = 0; i < stage->n_demands; i++) {
        if (stage->demands[i].port == port) {
            return stage->demands[i].seconds;
        }
    }
    return 0;
}

/* Returns the place in 'left' of the stage that comes last, of equals the
 * youngest. */
static size_t
find_latest(const struct bssi *bssi)
{
    const struct order_stage *stages = bssi->op->stages;
    size_t latest = 0;

    for (size_t i = 1; i < bssi->n_left; i++) {
        if (stages[bssi->left[i]].release
            >= stages[bssi->left[latest]].release) {
            latest = i;
        }
    }
    return latest;
}

/* Returns the place in 'left' of the stage that has the least weight per
 * second of 'port', of equals the largest, then the youngest, and takes from
 * all others what that one had at the same price. */
static size_t
select_and_scale(struct bssi *bssi, int port)
{
    const struct order_stage *stages = bssi->op->stages;
    double least = INFINITY, largest = 0;
    size_t cheapest = 0;

    for (size_t i = 0; i < bssi->n_left; i++) {
        int s = bssi->left[i];
        double seconds = seconds_on(&stages[s], port);
        double price = seconds > 0 ? bssi->weight[s] / seconds : INFINITY;

        if (price < least || (price == least && seconds >= largest)) {
            least = price;
            largest = seconds;
            cheapest = i;
        }
    }
    for (size_t i = 0; i < bssi->n_left; i++) {
        double *weight = &bssi->weight[bssi->left[i]];
        double paid = least * seconds_on(&stages[bssi->left[i]], port);

        *weight = fmax(*weight - paid, 0);
    }
    return cheapest;
}

static size_t
choose_last(struct bssi *bssi)
{
    int port = busiest_port(bssi);
    size_t latest = find_latest(bssi);
    double release = bssi->op->stages[bssi->left[latest]].release;

    if (port < 0 || release > RELEASE_SHARE * bssi->load[port]) {
        return latest;
    }
    return select_and_scale(bssi, port);
}

static void
bssi_with_releases(const struct order_problem *op, int *order)
{
    struct bssi bssi;

    bssi_init(&bssi, op);
    for (size_t k = op->n_stages; k-- > 0; ) {
        size_t last = choose_last(&bssi);

        order[k] = bssi.left[last];
        bssi.n_left--;
        for (size_t i = last; i < bssi.n_left; i++) {
            bssi.left[i] = bssi.left[i + 1];
        }
    }
    bssi_uninit(&bssi);
}

static void
bssi_order(const struct order_problem *op, int *order)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        if (op->stages[i].release > 0) {
            bssi_with_releases(op, order);
            return;
        }
    }
    permute(op, 0, order);
}

void
sincronia_epoch(double epoch_s, double now, double *begin, double *end)
{
    double cycle = epoch_s * ((1 << SINCRONIA_EPOCHS) - 1);
    double length = epoch_s;

    *begin = floor(now / cycle) * cycle;
    *end = *begin + length;
    for (int i = 1; i < SINCRONIA_EPOCHS && now >= *end; i++) {
        length *= 2;
        *begin = *end;
        *end = *begin + length;
    }
    if (now >= *end) {
        /* Rounding: all of them have ended. */
        *begin = *end;
        *end = *begin + epoch_s;
    }
}

static bool
is_orphan(const struct order_problem *op, const struct order_stage *stage,
          double epoch_s)
{
    double begin, end;

    if (epoch_s <= 0) {
        return false;
    }
    sincronia_epoch(epoch_s, op->now, &begin, &end);
    return op->now + order_stage_arrived(stage) > begin + 1e-9 * epoch_s;
}

/* Orphans by their bottleneck, in longest epochs that they have waited and
 * one more, ascending. */
static struct order_key
orphan_key(const struct order_stage *stage,
           const struct order_options *options)
{
    double longest = options->epoch_s * (1 << (SINCRONIA_EPOCHS - 1));
    double waited = fmax(-order_stage_arrived(stage), 0);

    return (struct order_key) { {
        order_stage_bottleneck(stage) / (longest + waited),
    } };
}

/* Returns a problem of the stages of 'op' that are orphans, or of those that
 * are not, and stores which they are. */
static struct order_problem *
problem_part(const struct order_options *options,
             const struct order_problem *op, bool orphans, int *stages)
{
    struct order_problem *part = order_problem_create(op->n_ports);

    part->now = op->now;
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];

        if (is_orphan(op, stage, options->epoch_s) == orphans) {
            int s = order_problem_add_stage(part, stage->weight, stage->id);

            stages[s] = i;
            order_problem_set_release(part, s, stage->release,
                                      stage->isolated);
            order_problem_set_traits(part, s, &stage->traits);
            for (size_t j = 0; j < stage->n_demands; j++) {
                order_problem_add_demand(part, s, stage->demands[j].port,
                                         stage->demands[j].seconds);
            }
        }
    }
    return part;
}

/* Orders one part of 'op'.  Returns how many it has. */
static size_t
order_part(const struct order_options *options,
           const struct order_problem *op, bool orphans, int *order)
{
    int *stages = order_alloc(op->n_stages, sizeof *stages);
    struct order_problem *part = problem_part(options, op, orphans, stages);
    size_t n = part->n_stages;

    if (orphans) {
        sort_by_key(part, options, orphan_key, order);
    } else {
        bssi_order(part, order);
    }
    for (size_t k = 0; k < n; k++) {
        order[k] = stages[order[k]];
    }
    order_problem_destroy(part);
    free(stages);
    return n;
}

/* The stages that an epoch found are ordered by what they have left now, not
 * by what they had when it began. */
void
order_compute_sincronia(const struct order_options *options,
                        const struct order_problem *op,
                        struct order_result *result)
{
    int *order = order_alloc(op->n_stages, sizeof *order);

    if (options->epoch_s > 0) {
        size_t n = order_part(options, op, false, order);

        order_part(options, op, true, &order[n]);
    } else {
        bssi_order(op, order);
    }
    order_result_ranked(options, op, order, result);
    free(order);
}
