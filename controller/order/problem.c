/* SPDX-License-Identifier: Apache-2.0 */

/* The input of every order: stages and what they need of each port. */

#include "controller/order/order.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "controller/order/memory.h"

/* Returns 'seconds' within what sums of it stay exact enough for: 0 for what
 * is no number, ORDER_MAX_SECONDS for a port without capacity. */
static double
clamp_seconds(double seconds)
{
    return seconds > 0 ? fmin(seconds, ORDER_MAX_SECONDS) : 0;
}

struct order_problem *
order_problem_create(int n_ports)
{
    struct order_problem *op = order_alloc(1, sizeof *op);

    assert(n_ports >= 0);
    op->n_ports = n_ports;
    return op;
}

void
order_problem_destroy(struct order_problem *op)
{
    if (op) {
        for (size_t i = 0; i < op->n_stages; i++) {
            free(op->stages[i].demands);
        }
        free(op->stages);
        free(op);
    }
}

/* Adds a stage that has begun and needs nothing yet.  Returns its index; the
 * first has 0. */
int
order_problem_add_stage(struct order_problem *op, double weight, uint64_t id)
{
    struct order_stage *stage;

    assert(weight > 0 && isfinite(weight));
    op->stages = order_grow(op->stages, op->n_stages, &op->allocated_stages,
                            sizeof *op->stages);
    stage = &op->stages[op->n_stages];
    memset(stage, 0, sizeof *stage);
    stage->id = id;
    stage->weight = weight;
    return op->n_stages++;
}

static struct order_stage *
get_stage(struct order_problem *op, int stage)
{
    assert(stage >= 0 && (size_t) stage < op->n_stages);
    return &op->stages[stage];
}

void
order_problem_set_release(struct order_problem *op, int stage,
                          double release, double isolated)
{
    struct order_stage *s = get_stage(op, stage);

    s->release = clamp_seconds(release);
    s->isolated = clamp_seconds(isolated);
}

void
order_problem_set_traits(struct order_problem *op, int stage,
                         const struct order_traits *traits)
{
    get_stage(op, stage)->traits = *traits;
}

/* Adds 'seconds' of 'port' to what 'stage' needs. */
void
order_problem_add_demand(struct order_problem *op, int stage, int port,
                         double seconds)
{
    struct order_stage *s = get_stage(op, stage);
    size_t i = s->n_demands;

    assert(port >= 0 && port < op->n_ports);
    seconds = clamp_seconds(seconds);
    if (seconds == 0) {
        return;
    }
    while (i > 0 && s->demands[i - 1].port > port) {
        i--;
    }
    if (i > 0 && s->demands[i - 1].port == port) {
        s->demands[i - 1].seconds = clamp_seconds(s->demands[i - 1].seconds
                                                  + seconds);
        return;
    }
    s->demands = order_grow(s->demands, s->n_demands, &s->allocated_demands,
                            sizeof *s->demands);
    memmove(&s->demands[i + 1], &s->demands[i],
            (s->n_demands - i) * sizeof *s->demands);
    s->demands[i].port = port;
    s->demands[i].seconds = seconds;
    s->n_demands++;
}

/* Returns when 'stage' would end if it had every port to itself, which no
 * schedule can beat. */
double
order_stage_earliest_end(const struct order_stage *stage)
{
    double alone = stage->isolated;

    for (size_t i = 0; i < stage->n_demands; i++) {
        alone = fmax(alone, stage->demands[i].seconds);
    }
    return stage->release + alone;
}
