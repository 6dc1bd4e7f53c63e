/* SPDX-License-Identifier: Apache-2.0 */

#include "order/order.h"

#include <math.h>
#include <string.h>

#include "order/by-port.h"
#include "order/improve.h"
#include "order/memory.h"
#include "order/order-internal.h"
#include "order/baselines/baselines.h"
#include "order/scratch.h"

const struct order_class order_classes[ORDER_N_KINDS] = {
    [ORDER_FAIR] = {
        "fair", "No order: all flows share.",
        ORDER_UNIT_STAGE, ORDER_SERVICE_SHARE, false,
    },
    [ORDER_STAGE] = {
        "stage", "Whole stages, so that their mean completion time is least.",
        ORDER_UNIT_STAGE, ORDER_SERVICE_FILL, true,
    },
    [ORDER_EARLY] = {
        "early", "Jobs whose metric still grows fast go first.",
        ORDER_UNIT_JOB, ORDER_SERVICE_RANK, false,
    },
    [ORDER_STAGE_EARLY] = {
        "stage+early", "Whole stages, those with early jobs preferred.",
        ORDER_UNIT_STAGE, ORDER_SERVICE_FILL, true,
    },
    [ORDER_FIFO] = {
        "fifo", "First come, first served.",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_RANK, false,
    },
    [ORDER_FIFO_LM] = {
        "fifo-lm",
        "First come, first served; heavy ones share with the next (Baraat).",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_SHARE, false,
    },
    [ORDER_SINCRONIA] = {
        "sincronia",
        "Coflows by bottleneck, largest weighted last (Sincronia).",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_RANK, true,
    },
    [ORDER_SEBF_STATIC] = {
        "sebf-static", "Smallest bottleneck at arrival first (Varys).",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_MADD, false,
    },
    [ORDER_SEBF] = {
        "sebf", "Smallest remaining bottleneck first (Varys).",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_MADD, false,
    },
    [ORDER_DCLAS] = {
        "dclas", "Few queues by bytes sent so far (Aalo).",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_SHARE, false,
    },
    [ORDER_LAS] = {
        "las", "Least bytes sent so far first.",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_SHARE, false,
    },
    [ORDER_TCF] = {
        "tcf", "Least bytes left first.",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_RANK, false,
    },
    [ORDER_INTENSITY] = {
        "intensity", "Most computing per communication first (Crux).",
        ORDER_UNIT_JOB, ORDER_SERVICE_RANK, false,
    },
    [ORDER_INTERLEAVE] = {
        "interleave",
        "As stage; periodic jobs on a port take turns (CASSINI).",
        ORDER_UNIT_STAGE, ORDER_SERVICE_FILL, true,
    },
};

const char *const order_names[] = {
    [ORDER_FAIR] = "fair",
    [ORDER_STAGE] = "stage",
    [ORDER_EARLY] = "early",
    [ORDER_STAGE_EARLY] = "stage+early",
    [ORDER_FIFO] = "fifo",
    [ORDER_FIFO_LM] = "fifo-lm",
    [ORDER_SINCRONIA] = "sincronia",
    [ORDER_SEBF_STATIC] = "sebf-static",
    [ORDER_SEBF] = "sebf",
    [ORDER_DCLAS] = "dclas",
    [ORDER_LAS] = "las",
    [ORDER_TCF] = "tcf",
    [ORDER_INTENSITY] = "intensity",
    [ORDER_INTERLEAVE] = "interleave",
    [ORDER_N_KINDS] = NULL,
};

void
order_result_init(struct order_result *result)
{
    memset(result, 0, sizeof *result);
}

void
order_result_uninit(struct order_result *result)
{
    free(result->order);
    free(result->rank);
    free(result->level);
    free(result->completion);
    free(result->sent_limit);
    if (result->improver) {
        improver_uninit(result->improver);
        free(result->improver);
    }
    order_result_init(result);
}

static void
resize(struct order_result *result, size_t n)
{
    if (n > result->allocated) {
        size_t m = 2 * n;

        result->order = order_renew(result->order, m, sizeof *result->order);
        result->rank = order_renew(result->rank, m, sizeof *result->rank);
        result->level = order_renew(result->level, m, sizeof *result->level);
        result->completion = order_renew(result->completion, m,
                                         sizeof *result->completion);
        result->sent_limit = order_renew(result->sent_limit, m,
                                         sizeof *result->sent_limit);
        result->allocated = m;
    }
    result->n = n;
}

void
order_result_set_order(struct order_result *result, const int *order)
{
    for (size_t k = 0; k < result->n; k++) {
        result->order[k] = order[k];
        result->rank[order[k]] = k;
    }
}

void
order_result_set_levels(const struct order_options *options,
                        const struct order_problem *op,
                        struct order_result *result)
{
    int last = options->n_levels - 1;

    if (!options->truncate) {
        levels_assign(op, result->order, options->n_levels, result->level);
        return;
    }
    for (size_t k = 0; k < result->n; k++) {
        result->level[result->order[k]] = k < last ? k : last;
    }
}

void
order_result_ranked(const struct order_options *options,
                    const struct order_problem *op, const int *order,
                    struct order_result *result)
{
    order_result_set_order(result, order);
    order_result_set_levels(options, op, result);
    order_result_estimate(op, ONE_PORT_RANK, result);
}

void
order_result_shared(const struct order_options *options,
                    const struct order_problem *op, const int *order,
                    const int *group, struct order_result *result)
{
    int last = options->n_levels - 1;

    order_result_set_order(result, order);
    for (size_t k = 0; k < result->n; k++) {
        result->level[order[k]] = group[k] < last ? group[k] : last;
    }
    order_result_estimate(op, ONE_PORT_SHARE, result);
}

/* No order: all at level 0, listed by id.  The estimate is that of a fluid
 * that each port shares equally among the stages on it, each port on its own;
 * real flows, which two ports limit and of which stages have more or fewer,
 * do worse or differently. */
static void
compute_fair(const struct order_options *options,
             const struct order_problem *op, struct order_result *result)
{
    int *group = scratch_take(op->scratch, op->n_stages, sizeof *group);
    struct by_port bp;

    by_port_init(&bp, op);
    order_result_shared(options, op, bp.by_id, group, result);
    by_port_uninit(&bp);
    scratch_give(op->scratch, group);
}

/* Sets all of a result but its bound. */
static void (*const compute[ORDER_N_KINDS])(const struct order_options *,
                                            const struct order_problem *,
                                            struct order_result *) = {
    [ORDER_FAIR] = compute_fair,
    [ORDER_STAGE] = order_compute_stage,
    [ORDER_EARLY] = order_compute_early,
    [ORDER_STAGE_EARLY] = order_compute_stage_early,
    [ORDER_FIFO] = order_compute_fifo,
    [ORDER_FIFO_LM] = order_compute_fifo_lm,
    [ORDER_SINCRONIA] = order_compute_sincronia,
    [ORDER_SEBF_STATIC] = order_compute_sebf_static,
    [ORDER_SEBF] = order_compute_sebf,
    [ORDER_DCLAS] = order_compute_dclas,
    [ORDER_LAS] = order_compute_las,
    [ORDER_TCF] = order_compute_tcf,
    [ORDER_INTENSITY] = order_compute_intensity,
    [ORDER_INTERLEAVE] = order_compute_interleave,
};

/* Orders the stages of 'op' as 'options' say and stores what comes out in
 * 'result', which must be initialized. */
void
order_compute(const struct order_options *options,
              const struct order_problem *op, struct order_result *result)
{
    resize(result, op->n_stages);
    result->gained = 0;
    for (size_t i = 0; i < op->n_stages; i++) {
        result->sent_limit[i] = INFINITY;
    }
    compute[options->kind](options, op, result);
    result->bound = options->uncertified ? 0 : certificate_bound(op);
}
