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

#include "order/baselines/baselines.h"

#include <math.h>
#include <string.h>

#include "order/by-key.h"
#include "order/order-internal.h"
#include "order/scratch.h"

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

static void
bssi_init(struct bssi *bssi, const struct order_problem *op)
{
    bssi->op = op;
    bssi->left = scratch_take(op->scratch, op->n_stages, sizeof *bssi->left);
    bssi->n_left = op->n_stages;
    bssi->weight = scratch_take(op->scratch, op->n_stages, sizeof *bssi->weight);
    bssi->load = scratch_take(op->scratch, op->n_ports, sizeof *bssi->load);
    memcpy(bssi->left, op->by_id, op->n_stages * sizeof *bssi->left);
    for (size_t i = 0; i < op->n_stages; i++) {
        bssi->weight[i] = op->stages[i].weight;
    }
}

static void
bssi_uninit(struct bssi *bssi)
{
    struct scratch *scratch = bssi->op->scratch;

    scratch_give(scratch, bssi->load);
    scratch_give(scratch, bssi->weight);
    scratch_give(scratch, bssi->left);
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

/* The stages of a problem that are orphans, or those that are not. */
struct part {
    struct order_problem op;    /* Has the memory and the demands of the
                                 * whole. */
    int *whole;                 /* What each is there. */
};

static void
part_init(struct part *part, const struct order_options *options,
          const struct order_problem *op, bool orphans)
{
    struct order_problem *p = &part->op;

    *p = *op;
    p->n_stages = 0;
    p->stages = scratch_take(op->scratch, op->n_stages, sizeof *p->stages);
    p->by_id = scratch_take(op->scratch, op->n_stages, sizeof *p->by_id);
    p->n_on_port = scratch_take(op->scratch, op->n_ports,
                                sizeof *p->n_on_port);
    part->whole = scratch_take(op->scratch, op->n_stages,
                               sizeof *part->whole);
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[op->by_id[i]];
        size_t s = p->n_stages;

        if (is_orphan(op, stage, options->epoch_s) == orphans) {
            p->stages[s] = *stage;
            p->by_id[s] = s;
            part->whole[s] = op->by_id[i];
            for (size_t j = 0; j < stage->n_demands; j++) {
                p->n_on_port[stage->demands[j].port]++;
            }
            p->n_stages++;
        }
    }
}

static void
part_uninit(struct part *part)
{
    scratch_give(part->op.scratch, part->whole);
    scratch_give(part->op.scratch, part->op.n_on_port);
    scratch_give(part->op.scratch, part->op.by_id);
    scratch_give(part->op.scratch, part->op.stages);
}

/* Orders one part of 'op'.  Returns how many it has. */
static size_t
order_part(const struct order_options *options,
           const struct order_problem *op, bool orphans, int *order)
{
    struct part part;

    part_init(&part, options, op, orphans);
    if (orphans) {
        sort_by_key(&part.op, options, orphan_key, order);
    } else {
        bssi_order(&part.op, order);
    }
    for (size_t k = 0; k < part.op.n_stages; k++) {
        order[k] = part.whole[order[k]];
    }
    part_uninit(&part);
    return part.op.n_stages;
}

/* The stages that an epoch found are ordered by what they have left now, not
 * by what they had when it began. */
void
order_compute_sincronia(const struct order_options *options,
                        const struct order_problem *op,
                        struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);

    if (options->epoch_s > 0) {
        size_t n = order_part(options, op, false, order);

        order_part(options, op, true, &order[n]);
    } else {
        bssi_order(op, order);
    }
    order_result_ranked(options, op, order, result);
    scratch_give(op->scratch, order);
}
