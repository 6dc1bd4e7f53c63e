/* SPDX-License-Identifier: Apache-2.0 */

#include "order/order.h"

#include "order/baselines/baselines.h"
#include "order/primal-dual/primal-dual.h"
#include "order/problem/scratch.h"

/* Puts all stages at level 0, listed by id.  The estimate assumes that each
 * port is shared equally among its stages, each port regarded alone.  Real
 * flows compete on two ports, and stages have different numbers of flows. */
static void
compute_fair(const struct order_options *options,
             const struct order_problem *op, struct order_result *result)
{
    int *group = scratch_alloc(op->scratch, op->n_stages, sizeof *group);

    order_result_shared(options, op, op->by_id, group, result);
    scratch_free(op->scratch, group);
}

const struct order_class order_classes[ORDER_N_KINDS] = {
    [ORDER_FAIR] = { "No order: jobs take turns.", ORDER_UNIT_STAGE,
                     ORDER_UNIT_STAGE, ORDER_SERVICE_SHARE, false,
                     compute_fair },
    [ORDER_PLAIN] = { "No shims: flows share, as TCP does.", ORDER_UNIT_STAGE,
                      ORDER_UNIT_STAGE, ORDER_SERVICE_SHARE, false,
                      compute_fair, "it is the network without shims" },
    [ORDER_MLTCP] = { "No shims: flows near the end of an iteration get more.",
                      ORDER_UNIT_COFLOW, ORDER_UNIT_COFLOW,
                      ORDER_SERVICE_SHARE, false, compute_fair,
                      "it is a congestion control that kernels do not have" },
    [ORDER_STAGE] = { "Stages, to minimize their mean completion time.",
                      ORDER_UNIT_STAGE, ORDER_UNIT_ITERATION,
                      ORDER_SERVICE_FILL, true, order_compute_stage },
    [ORDER_EARLY] = { "Jobs whose metric still grows fast first, "
                      "then as stage.",
                      ORDER_UNIT_STAGE, ORDER_UNIT_ITERATION,
                      ORDER_SERVICE_FILL, true, order_compute_early },
    [ORDER_MAIF] = { "Jobs whose metric improves most go first (JPAS).",
                     ORDER_UNIT_JOB, ORDER_UNIT_JOB, ORDER_SERVICE_FILL, false,
                     .key = order_key_gain },
    [ORDER_STAGE_EARLY] = { "Stages, and early jobs within them, "
                            "by one weight.",
                            ORDER_UNIT_STAGE, ORDER_UNIT_ITERATION,
                            ORDER_SERVICE_FILL, true,
                            order_compute_stage_early },
    [ORDER_FIFO] = { "First come, first served.", ORDER_UNIT_COFLOW,
                     ORDER_UNIT_COFLOW, ORDER_SERVICE_FILL, false,
                     .key = order_key_arrival },
    [ORDER_FIFO_LM] = { "First come, first served; "
                        "heavy ones share with the next (Baraat).",
                        ORDER_UNIT_COFLOW, ORDER_UNIT_COFLOW,
                        ORDER_SERVICE_SHARE, false, order_compute_fifo_lm },
    [ORDER_GROUPER] = { "Whole stages by the primal-dual permutation "
                        "(Grouper).",
                        ORDER_UNIT_STAGE, ORDER_UNIT_STAGE, ORDER_SERVICE_FILL,
                        true, order_compute_grouper },
    [ORDER_SINCRONIA] = { "Coflows by bottleneck, largest weighted last "
                          "(Sincronia).",
                          ORDER_UNIT_COFLOW, ORDER_UNIT_COFLOW,
                          ORDER_SERVICE_FILL, true, order_compute_sincronia },
    [ORDER_SEBF_STATIC] = { "Smallest bottleneck at arrival first (Varys).",
                            ORDER_UNIT_COFLOW, ORDER_UNIT_COFLOW,
                            ORDER_SERVICE_MADD, false,
                            .key = order_key_initial },
    [ORDER_SEBF] = { "Smallest remaining bottleneck first (Varys).",
                     ORDER_UNIT_COFLOW, ORDER_UNIT_COFLOW, ORDER_SERVICE_MADD,
                     false, .key = order_key_remaining },
    [ORDER_DCLAS] = { "Few queues by bytes sent so far (Aalo).",
                      ORDER_UNIT_COFLOW, ORDER_UNIT_COFLOW,
                      ORDER_SERVICE_SHARE, false, order_compute_dclas },
    [ORDER_LAS] = { "Least bytes sent so far first.", ORDER_UNIT_COFLOW,
                    ORDER_UNIT_COFLOW, ORDER_SERVICE_SHARE, false,
                    order_compute_las },
    [ORDER_TCF] = { "Least remaining bytes first.", ORDER_UNIT_COFLOW,
                    ORDER_UNIT_COFLOW, ORDER_SERVICE_FILL, false,
                    order_compute_tcf },
    [ORDER_WORK] = { "Stages with the least remaining work first.",
                     ORDER_UNIT_STAGE, ORDER_UNIT_STAGE, ORDER_SERVICE_FILL,
                     false, .key = order_key_weighted_work },
    [ORDER_INTENSITY] = { "Most computing per communication first "
                          "(Crux, in part).",
                          ORDER_UNIT_JOB, ORDER_UNIT_JOB, ORDER_SERVICE_FILL,
                          false, .key = order_key_intensity },
};

const char *const order_names[] = {
    [ORDER_FAIR] = "fair",
    [ORDER_PLAIN] = "plain",
    [ORDER_MLTCP] = "mltcp",
    [ORDER_STAGE] = "stage",
    [ORDER_EARLY] = "early",
    [ORDER_MAIF] = "maif",
    [ORDER_STAGE_EARLY] = "stage+early",
    [ORDER_FIFO] = "fifo",
    [ORDER_FIFO_LM] = "fifo-lm",
    [ORDER_GROUPER] = "grouper",
    [ORDER_SINCRONIA] = "sincronia",
    [ORDER_SEBF_STATIC] = "sebf-static",
    [ORDER_SEBF] = "sebf",
    [ORDER_DCLAS] = "dclas",
    [ORDER_LAS] = "las",
    [ORDER_TCF] = "tcf",
    [ORDER_WORK] = "work",
    [ORDER_INTENSITY] = "intensity",
    [ORDER_N_KINDS] = NULL,
};

enum order_unit
order_unit(enum order_kind kind, bool iterates)
{
    return iterates ? order_classes[kind].iterating : order_classes[kind].unit;
}

bool
order_uses_metrics(enum order_kind kind)
{
    return kind == ORDER_EARLY || kind == ORDER_MAIF
           || kind == ORDER_STAGE_EARLY;
}

bool
order_looks_ahead(enum order_kind kind)
{
    return kind == ORDER_STAGE || kind == ORDER_STAGE_EARLY;
}

void
order_compute(const struct order_options *options,
              const struct order_problem *op, struct order_result *result)
{
    const struct order_class *class = &order_classes[options->kind];

    order_result_resize(result, op->n_stages);
    if (class->key) {
        order_result_by_key(options, op, class->key, result);
    } else {
        class->compute(options, op, result);
    }
    result->bound = 0;
    result->bound_kind = ORDER_BOUND_NONE;
    if (!options->uncertified) {
        result->bound = certificate_bound(op, &result->bound_kind);
    }
}
