/* SPDX-License-Identifier: Apache-2.0 */

/* Orders by the bytes that a stage has sent so far, for unknown demands: large
 * stages fall behind as they send.
 *
 * D-CLAS is the order of Aalo (Chowdhury and Stoica, SIGCOMM 2015): few queues
 * with geometrically growing limits, first come, first served inside a queue.
 * Queues are served strictly here.  D-CLAS approximates least attained
 * service, which is implemented as many queues: the stages in one have sent
 * about the same number of bytes and share. */

#include "order/baselines/baselines.h"

#include <math.h>

#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/problem/sort.h"
#include "order/result/result.h"

/* Grid of least attained service: limit of the first cell in bytes, growth of
 * the limit from cell to cell, and number of cells, which reach 1e25 bytes. */
#define LAS_FIRST 1e6
#define LAS_FACTOR 1.25
#define LAS_CELLS 200

/* Returns the queue of 'stage' and stores the queue's byte limit in '*limit',
 * INFINITY for the last queue.  The limit of queue 0 is 'first'; it grows by
 * 'factor' from queue to queue. */
static int
find_queue(const struct order_stage *stage, double first, double factor,
           int n_queues, double *limit)
{
    int queue = 0;

    *limit = first;
    while (queue < n_queues - 1 && order_stage_has_sent(stage, *limit)) {
        *limit *= factor;
        queue++;
    }
    if (queue == n_queues - 1) {
        *limit = INFINITY;
    }
    return queue;
}

static int
dclas_queue(const struct order_stage *stage,
            const struct order_options *options, double *limit)
{
    return find_queue(stage, options->first_bytes, options->factor,
                      options->n_queues, limit);
}

static struct order_key
dclas_key(const struct order_stage *stage, const struct order_options *options)
{
    double limit;

    return (struct order_key){ { dclas_queue(stage, options, &limit),
                                 order_stage_arrival(stage) } };
}

/* A queue is served in the order of arrival, so stages that share a port have
 * different levels. */
void
order_compute_dclas(const struct order_options *options,
                    const struct order_problem *op,
                    struct order_result *result)
{
    int *order = scratch_alloc(op->scratch, op->n_stages, sizeof *order);

    sort_by_key(op, options, dclas_key, order);
    order_result_set_order(result, order);
    order_result_set_levels(options, op, result);
    order_result_estimate_shared(op, result);
    for (size_t i = 0; i < op->n_stages; i++) {
        dclas_queue(&op->stages[i], options, &result->sent_limit[i]);
    }
    scratch_free(op->scratch, order);
}

static int
las_cell(const struct order_stage *stage, double *limit)
{
    return find_queue(stage, LAS_FIRST, LAS_FACTOR, LAS_CELLS, limit);
}

static struct order_key
las_key(const struct order_stage *stage, const struct order_options *options)
{
    double limit;

    return (struct order_key){ { las_cell(stage, &limit),
                                 order_stage_arrival(stage) } };
}

void
order_compute_las(const struct order_options *options,
                  const struct order_problem *op, struct order_result *result)
{
    int *order = scratch_alloc(op->scratch, op->n_stages, sizeof *order);
    int *group = scratch_alloc(op->scratch, op->n_stages, sizeof *group);
    int n_groups = 0, last = -1;

    sort_by_key(op, options, las_key, order);
    for (size_t k = 0; k < op->n_stages; k++) {
        int s = order[k];
        int cell = las_cell(&op->stages[s], &result->sent_limit[s]);

        n_groups += cell != last;
        group[k] = n_groups - 1;
        last = cell;
    }
    order_result_shared(options, op, order, group, result);
    scratch_free(op->scratch, group);
    scratch_free(op->scratch, order);
}
