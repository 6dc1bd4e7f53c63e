/* SPDX-License-Identifier: Apache-2.0 */

/* The order of Sincronia (Agarwal et al., SIGCOMM 2018).
 *
 * Bottleneck, select, scale, iterate (BSSI) is the plain permutation; see
 * permute.c.
 *
 * Sincronia orders at the beginning of an epoch.  Coflows that arrive during
 * an epoch are orphans.  They go after all others, by bottleneck relative to
 * the time waited. */

#include "order/baselines/baselines.h"

#include <math.h>
#include <stdbool.h>

#include "order/primal-dual/primal-dual.h"
#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/problem/sort.h"
#include "order/result/result.h"

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
        permute(&part.op, 0, order);
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
        permute(op, 0, order);
    }
    order_result_ranked(options, op, order, result);
    scratch_free(op->scratch, order);
}
