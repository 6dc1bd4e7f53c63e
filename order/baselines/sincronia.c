/* SPDX-License-Identifier: Apache-2.0 */

/* The order of Sincronia (Agarwal et al., SIGCOMM 2018).
 *
 * Bottleneck, select, scale, iterate (BSSI) is the plain permutation; see
 * permute.c.  If some coflows are released later, the one with the latest
 * release goes last if that is late compared with the busiest port (their
 * Algorithm 3, after Ahmadi et al.).
 *
 * Sincronia orders at the beginning of an epoch.  Coflows that arrive during
 * an epoch are orphans.  They go after all others, by bottleneck relative to
 * the time waited. */

#include "order/baselines/baselines.h"

#include <math.h>
#include <string.h>

#include "order/primal-dual/primal-dual.h"
#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/problem/sort.h"
#include "order/result/result.h"

/* The latest release goes last if it is after this share of the busiest port's
 * load. */
#define RELEASE_SHARE 0.5

struct bssi {
    const struct order_problem *op;
    int *remaining;             /* Unplaced stages, by id. */
    size_t n_remaining;
    double *weight;             /* Remaining weight of each stage. */
    double *load;               /* For each port: seconds of the unplaced
                                 * stages. */
};

static void
bssi_init(struct bssi *bssi, const struct order_problem *op)
{
    bssi->op = op;
    bssi->remaining = scratch_alloc(op->scratch, op->n_stages,
                                   sizeof *bssi->remaining);
    bssi->n_remaining = op->n_stages;
    bssi->weight = scratch_alloc(op->scratch, op->n_stages,
                                sizeof *bssi->weight);
    bssi->load = scratch_alloc(op->scratch, op->n_ports, sizeof *bssi->load);
    memcpy(bssi->remaining, op->by_id, op->n_stages * sizeof *bssi->remaining);
    for (size_t i = 0; i < op->n_stages; i++) {
        bssi->weight[i] = op->stages[i].weight;
    }
}

static void
bssi_uninit(struct bssi *bssi)
{
    struct scratch *scratch = bssi->op->scratch;

    scratch_free(scratch, bssi->load);
    scratch_free(scratch, bssi->weight);
    scratch_free(scratch, bssi->remaining);
}

/* Returns the port with the largest load of unplaced stages, or -1 without a
 * load. */
static int
busiest_port(struct bssi *bssi)
{
    int busiest = -1;

    for (int p = 0; p < bssi->op->n_ports; p++) {
        bssi->load[p] = 0;
    }
    for (size_t i = 0; i < bssi->n_remaining; i++) {
        const struct order_stage *stage
            = &bssi->op->stages[bssi->remaining[i]];

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

/* Returns the index in 'remaining' of the stage with the latest release, of
 * equals the youngest. */
static size_t
find_latest(const struct bssi *bssi)
{
    const struct order_stage *stages = bssi->op->stages;
    size_t latest = 0;

    for (size_t i = 1; i < bssi->n_remaining; i++) {
        if (stages[bssi->remaining[i]].release
            >= stages[bssi->remaining[latest]].release) {
            latest = i;
        }
    }
    return latest;
}

/* Returns the index in 'remaining' of the stage with the least weight per
 * second of 'port', of equals the largest, then the youngest.  Charges all
 * remaining stages the same price. */
static size_t
select_and_scale(struct bssi *bssi, int port)
{
    const struct order_stage *stages = bssi->op->stages;
    double least = INFINITY, largest = 0;
    size_t cheapest = 0;

    for (size_t i = 0; i < bssi->n_remaining; i++) {
        int s = bssi->remaining[i];
        double seconds = seconds_on(&stages[s], port);
        double price = seconds > 0 ? bssi->weight[s] / seconds : INFINITY;

        if (price < least || (price == least && seconds >= largest)) {
            least = price;
            largest = seconds;
            cheapest = i;
        }
    }
    for (size_t i = 0; i < bssi->n_remaining; i++) {
        double *weight = &bssi->weight[bssi->remaining[i]];
        double paid = least * seconds_on(&stages[bssi->remaining[i]], port);

        *weight = fmax(*weight - paid, 0);
    }
    return cheapest;
}

static size_t
choose_last(struct bssi *bssi)
{
    int port = busiest_port(bssi);
    size_t latest = find_latest(bssi);
    double release = bssi->op->stages[bssi->remaining[latest]].release;

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

        order[k] = bssi.remaining[last];
        bssi.n_remaining--;
        for (size_t i = last; i < bssi.n_remaining; i++) {
            bssi.remaining[i] = bssi.remaining[i + 1];
        }
    }
    bssi_uninit(&bssi);
}

static void
bssi_order(const struct order_problem *op, int *order)
{
    if (order_problem_has_releases(op)) {
        bssi_with_releases(op, order);
    } else {
        permute(op, 0, order);
    }
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
        /* All epochs have ended because of rounding. */
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
    return op->now + order_stage_arrival(stage) > begin + 1e-9 * epoch_s;
}

/* Sorts orphans by their bottleneck divided by the time waited plus the
 * longest epoch. */
static struct order_key
orphan_key(const struct order_stage *stage,
           const struct order_options *options)
{
    double longest = options->epoch_s * (1 << (SINCRONIA_EPOCHS - 1));
    double waited = fmax(-order_stage_arrival(stage), 0);

    return (struct order_key){ { order_stage_bottleneck(stage)
                                 / (longest + waited) } };
}

/* Part of a problem: the orphans, or all other stages. */
struct part {
    struct order_problem op;    /* Uses the memory and the demands of the
                                 * whole problem. */
    int *whole;                 /* Index of each stage in the whole problem. */
};

static void
part_init(struct part *part, const struct order_options *options,
          const struct order_problem *op, bool orphans)
{
    struct order_problem *p = &part->op;

    *p = *op;
    p->n_stages = 0;
    p->stages = scratch_alloc(op->scratch, op->n_stages, sizeof *p->stages);
    p->by_id = scratch_alloc(op->scratch, op->n_stages, sizeof *p->by_id);
    p->n_on_port = scratch_alloc(op->scratch, op->n_ports,
                                sizeof *p->n_on_port);
    part->whole = scratch_alloc(op->scratch, op->n_stages,
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
    scratch_free(part->op.scratch, part->whole);
    scratch_free(part->op.scratch, part->op.n_on_port);
    scratch_free(part->op.scratch, part->op.by_id);
    scratch_free(part->op.scratch, part->op.stages);
}

/* Orders one part of 'op' and returns its number of stages. */
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

/* The stages that are not orphans are ordered by their remaining demand, not
 * by that at the beginning of the epoch. */
void
order_compute_sincronia(const struct order_options *options,
                        const struct order_problem *op,
                        struct order_result *result)
{
    int *order = scratch_alloc(op->scratch, op->n_stages, sizeof *order);

    if (options->epoch_s > 0) {
        size_t n = order_part(options, op, false, order);

        order_part(options, op, true, &order[n]);
    } else {
        bssi_order(op, order);
    }
    order_result_ranked(options, op, order, result);
    scratch_free(op->scratch, order);
}
