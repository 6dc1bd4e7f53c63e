/* SPDX-License-Identifier: Apache-2.0 */

/* Orders by what a stage has sent so far, for when nobody knows what it has
 * left: large ones are found out as they go.
 *
 * D-CLAS is the order of Aalo (Chowdhury and Stoica, SIGCOMM 2015): few queues
 * whose limits grow geometrically, first come, first served inside a queue.
 * Queues are served strictly here.  Least attained service first is what it
 * approximates: so many queues that those in one have sent about as much, and
 * share. */

#include "order/baselines/baselines.h"

#include <math.h>

#include "order/by-key.h"
#include "order/order-internal.h"
#include "order/scratch.h"

/* The grid of least attained service: the first cell, in bytes, and how much
 * larger the next limit is.  So many cells reach to 1e25 bytes. */
#define LAS_FIRST 1e6
#define LAS_FACTOR 1.25
#define LAS_CELLS 200

/* Returns the queue of 'stage' and stores the bytes at which it leaves it in
 * '*limit', INFINITY for the last one.  Queue 0 goes to 'first' bytes, each
 * next one 'factor' times as far. */
static int
find_queue(const struct order_stage *stage, double first, double factor,
           int n_queues, double *limit)
{
    int queue = 0;

    *limit = first;
    while (queue < n_queues - 1 && order_has_sent(stage, *limit)) {
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
dclas_key(const struct order_stage *stage,
          const struct order_options *options)
{
    double limit;

    return (struct order_key) { {
        dclas_queue(stage, options, &limit), order_stage_arrived(stage),
    } };
}

/* A queue is served in the order of arrival, so that each stage has a level of
 * its own where it meets others. */
void
order_compute_dclas(const struct order_options *options,
                    const struct order_problem *op,
                    struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);

    sort_by_key(op, options, dclas_key, order);
    order_result_set_order(result, order);
    order_result_set_levels(options, op, result);
    order_result_estimate(op, ONE_PORT_SHARE, result);
    for (size_t i = 0; i < op->n_stages; i++) {
        dclas_queue(&op->stages[i], options, &result->sent_limit[i]);
    }
    scratch_give(op->scratch, order);
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

    return (struct order_key) { {
        las_cell(stage, &limit), order_stage_arrived(stage),
    } };
}

void
order_compute_las(const struct order_options *options,
                  const struct order_problem *op,
                  struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);
    int *group = scratch_take(op->scratch, op->n_stages, sizeof *group);
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
    scratch_give(op->scratch, group);
    scratch_give(op->scratch, order);
}
