/* SPDX-License-Identifier: Apache-2.0 */

#include "controller/order/order.h"

#include <math.h>
#include <string.h>

#include "controller/order/by-port.h"
#include "controller/order/memory.h"
#include "controller/order/one-port.h"

/* The share of the busiest port from which on a stage's own earliest end is
 * what matters; the worst case is least at one half. */
#define KAPPA 0.5

const struct order_class order_classes[ORDER_N_KINDS] = {
    [ORDER_FAIR] = {
        "fair", "No order: all flows share.",
        ORDER_UNIT_STAGE, ORDER_SERVICE_SHARE, false,
    },
    [ORDER_STAGE] = {
        "stage", "Whole stages, so that their mean completion time is least.",
        ORDER_UNIT_STAGE, ORDER_SERVICE_RANK, true,
    },
    [ORDER_EARLY] = {
        "early", "Jobs whose metric still grows fast go first.",
        ORDER_UNIT_JOB, ORDER_SERVICE_RANK, false,
    },
    [ORDER_STAGE_EARLY] = {
        "stage+early", "Whole stages, those with early jobs preferred.",
        ORDER_UNIT_STAGE, ORDER_SERVICE_RANK, true,
    },
    [ORDER_FIFO] = {
        "fifo", "First come, first served.",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_RANK, false,
    },
    [ORDER_FIFO_LM] = {
        "fifo-lm", "First come, first served; heavy ones share with the next (Baraat).",
        ORDER_UNIT_COFLOW, ORDER_SERVICE_SHARE, false,
    },
    [ORDER_SINCRONIA] = {
        "sincronia", "Coflows by bottleneck, largest weighted last (Sincronia).",
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
        "interleave", "As stage; periodic jobs on a port take turns (CASSINI).",
        ORDER_UNIT_STAGE, ORDER_SERVICE_RANK, true,
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
    order_result_init(result);
}

static void
resize(struct order_result *result, size_t n)
{
    if (n > result->allocated) {
        order_result_uninit(result);
        result->order = order_alloc(n, sizeof *result->order);
        result->rank = order_alloc(n, sizeof *result->rank);
        result->level = order_alloc(n, sizeof *result->level);
        result->completion = order_alloc(n, sizeof *result->completion);
        result->sent_limit = order_alloc(n, sizeof *result->sent_limit);
        result->allocated = n;
    }
    result->n = n;
}

/* Takes 'order' as the result's. */
static void
set_order(struct order_result *result, const int *order)
{
    for (size_t k = 0; k < result->n; k++) {
        result->order[k] = order[k];
        result->rank[order[k]] = k;
    }
}

/* Returns true if all stages have begun. */
static bool
all_have_begun(const struct order_problem *op)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        if (op->stages[i].release > 0) {
            return false;
        }
    }
    return true;
}

/* Raises the result's completions to when the ports have served what comes
 * first, all being there. */
static void
serve_in_order(const struct order_problem *op, struct order_result *result)
{
    double *load = order_alloc(op->n_ports, sizeof *load);

    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[result->order[k]];
        double *completion = &result->completion[result->order[k]];

        for (size_t i = 0; i < stage->n_demands; i++) {
            int port = stage->demands[i].port;

            load[port] += stage->demands[i].seconds;
            if (load[port] > *completion) {
                *completion = load[port];
            }
        }
    }
    free(load);
}

/* Raises the result's completions to when each port has served its stages by
 * 'rule' and the result's ranks. */
static void
serve_by_port(const struct order_problem *op, enum one_port_rule rule,
              struct order_result *result)
{
    struct one_port_job *jobs = order_alloc(op->n_stages, sizeof *jobs);
    struct by_port bp;

    by_port_init(&bp, op);
    for (int p = 0; p < op->n_ports; p++) {
        const struct by_port_demand *d;
        size_t n;

        d = by_port_demands(&bp, p, &n);
        for (size_t i = 0; i < n; i++) {
            jobs[i].stage = d[i].stage;
            jobs[i].rank = result->rank[d[i].stage];
            jobs[i].release = op->stages[d[i].stage].release;
            jobs[i].seconds = d[i].seconds;
        }
        one_port_serve(rule, jobs, n);
        for (size_t i = 0; i < n; i++) {
            double *completion = &result->completion[jobs[i].stage];

            *completion = fmax(*completion, jobs[i].end);
        }
    }
    by_port_uninit(&bp);
    free(jobs);
}

/* Estimates when each stage ends if each port serves by 'rule' and the
 * result's ranks, and the weighted sum of that.  A stage ends when the last of
 * its ports has served it, and not before it would alone. */
static void
estimate(const struct order_problem *op, enum one_port_rule rule,
         struct order_result *result)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        result->completion[i] = order_stage_earliest_end(&op->stages[i]);
    }
    if (rule == ONE_PORT_RANK && all_have_begun(op)) {
        serve_in_order(op, result);
    } else {
        serve_by_port(op, rule, result);
    }

    result->estimate = 0;
    for (size_t i = 0; i < op->n_stages; i++) {
        result->estimate += op->stages[i].weight * result->completion[i];
    }
}

/* No order: all at level 0, listed by id.  The estimate is that of a fluid
 * that each port shares equally among the stages on it, each port on its own;
 * real flows, which two ports limit and of which stages have more or fewer,
 * do worse or differently. */
static void
compute_fair(const struct order_problem *op, struct order_result *result)
{
    set_order(result, op->by_id);
    if (op->n_stages) {
        memset(result->level, 0, op->n_stages * sizeof *result->level);
    }
    estimate(op, ONE_PORT_SHARE, result);
}

/* Returns true if some stage is held up by something else than ports. */
static bool
has_earliest_ends(const struct order_problem *op)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];

        if (stage->release > 0 || stage->isolated > 0) {
            return true;
        }
    }
    return false;
}

/* The primal-dual permutation.  Where stages come later or compute, the one
 * that looks at that has the guarantee, and the plain one is often better in
 * practice: the better estimate of the two wins. */
static void
compute_stage(const struct order_problem *op, int n_levels,
              struct order_result *result)
{
    int *order = order_alloc(op->n_stages, sizeof *order);

    permute(op, 0, order);
    set_order(result, order);
    estimate(op, ONE_PORT_RANK, result);
    if (has_earliest_ends(op)) {
        double plain = result->estimate;
        int *other = order_alloc(op->n_stages, sizeof *other);

        permute(op, KAPPA, other);
        set_order(result, other);
        estimate(op, ONE_PORT_RANK, result);
        if (plain <= result->estimate * (1 + 1e-12)) {
            set_order(result, order);
            estimate(op, ONE_PORT_RANK, result);
        }
        free(other);
    }
    levels_assign(op, result->order, n_levels, result->level);
    free(order);
}

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
    switch (options->kind) {
    case ORDER_FAIR:
        compute_fair(op, result);
        break;

    default:
        compute_stage(op, options->n_levels, result);
        break;
    }
    result->bound = certificate_bound(op);
}
