/* SPDX-License-Identifier: Apache-2.0 */

/* The smallest first, by one size or another.
 *
 * Smallest effective bottleneck first is the order of Varys (Chowdhury, Zhong
 * and Stoica, SIGCOMM 2014): by the seconds that a stage needs of its busiest
 * port, either when it came or now.  Total coflow first goes by all bytes. */

#include "order/baselines/baselines.h"

#include "order/by-key.h"
#include "order/order-internal.h"
#include "order/scratch.h"

static struct order_key
remaining_key(const struct order_stage *stage,
              const struct order_options *options)
{
    return (struct order_key) { { order_stage_bottleneck(stage) } };
}

/* A stage of which the first bottleneck is not known has the remaining one. */
static struct order_key
initial_key(const struct order_stage *stage,
            const struct order_options *options)
{
    double initial = stage->traits.initial;

    return initial > 0 ? (struct order_key) { { initial } }
                       : remaining_key(stage, options);
}

static struct order_key
bytes_key(const struct order_stage *stage,
          const struct order_options *options)
{
    return (struct order_key) { { stage->traits.bytes } };
}

static struct order_key
seconds_key(const struct order_stage *stage,
            const struct order_options *options)
{
    double sum = 0;

    for (size_t i = 0; i < stage->n_demands; i++) {
        sum += stage->demands[i].seconds;
    }
    return (struct order_key) { { sum } };
}

static void
compute_by(order_key_func *key, const struct order_options *options,
           const struct order_problem *op, struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);

    sort_by_key(op, options, key, order);
    order_result_ranked(options, op, order, result);
    scratch_give(op->scratch, order);
}

void
order_compute_sebf_static(const struct order_options *options,
                          const struct order_problem *op,
                          struct order_result *result)
{
    compute_by(initial_key, options, op, result);
}

void
order_compute_sebf(const struct order_options *options,
                   const struct order_problem *op,
                   struct order_result *result)
{
    compute_by(remaining_key, options, op, result);
}

/* Bytes and seconds do not compare: without the bytes of every stage that
 * needs something, all go by the sum of their seconds. */
void
order_compute_tcf(const struct order_options *options,
                  const struct order_problem *op,
                  struct order_result *result)
{
    order_key_func *key = bytes_key;

    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];

        if (stage->n_demands && !(stage->traits.bytes > 0)) {
            key = seconds_key;
        }
    }
    compute_by(key, options, op, result);
}
