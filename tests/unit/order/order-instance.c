/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/order/order-instance.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "order/order.h"
#include "order/problem/memory.h"

/* PCG by O'Neill, 32 bits: the same numbers on every machine. */
uint32_t
instance_random(uint64_t *state)
{
    uint64_t old = *state;
    uint32_t x = ((old >> 18) ^ old) >> 27;
    int rot = old >> 59;

    *state = old * 6364136223846793005 + 1442695040888963407;
    return x >> rot | x << (-rot & 31);
}

double
instance_uniform(uint64_t *state)
{
    return instance_random(state) / 4294967296.0;
}

static double
random_seconds(uint64_t *state, const struct instance_shape *shape)
{
    return shape->integers ? 1 + instance_random(state) % 3
        : 0.01 + instance_uniform(state) * 10;
}

struct order_problem *
instance_create(uint64_t *state, const struct instance_shape *shape)
{
    int n_ports = 1 + instance_random(state) % shape->max_ports;
    int n = 1 + instance_random(state) % shape->max_stages;
    double sparsity = instance_uniform(state) * 0.8;
    struct order_problem *op = order_problem_create(n_ports);

    for (int s = 0; s < n; s++) {
        double weight = shape->weights ? random_seconds(state, shape) : 1;

        order_problem_add_stage(op, weight, s);
        for (int p = 0; p < n_ports; p++) {
            if (instance_uniform(state) >= sparsity) {
                order_problem_add_demand(op, s, p,
                                         random_seconds(state, shape));
            }
        }
        if (shape->releases) {
            double release = instance_uniform(state) < 0.5
                ? 2 * random_seconds(state, shape) : 0;
            double isolated = instance_uniform(state) < 0.5
                ? 3 * random_seconds(state, shape) : 0;

            order_problem_set_release(op, s, release, isolated);
        }
    }
    return op;
}

void
instance_begin_all(struct order_problem *op)
{
    for (size_t s = 0; s < op->n_stages; s++) {
        order_problem_set_release(op, s, 0, op->stages[s].isolated);
    }
}

/* Returns a port, the first ones more often. */
static int
random_port(uint64_t *state, const struct instance_crowd *crowd)
{
    for (;;) {
        int port = instance_uniform(state) * crowd->n_ports;

        if (instance_uniform(state) < pow(port + 1, -crowd->skew)) {
            return port;
        }
    }
}

static bool
has_demand(const struct order_stage *stage, int port)
{
    for (size_t i = 0; i < stage->n_demands; i++) {
        if (stage->demands[i].port == port) {
            return true;
        }
    }
    return false;
}

/* Adds a stage of one of the sizes to 'op', its ports within a factor of three
 * of each other. */
void
instance_add_stage(uint64_t *state, const struct instance_crowd *crowd,
                   struct order_problem *op, uint64_t id)
{
    double size = exp10(instance_uniform(state) * 4 - 2);
    int s = order_problem_add_stage(op, 1, id);

    for (int i = 0; i < crowd->ports_per_stage; i++) {
        int port = i;

        if (crowd->ports_per_stage < crowd->n_ports) {
            do {
                port = random_port(state, crowd);
            } while (has_demand(&op->stages[s], port));
        }
        order_problem_add_demand(op, s, port,
                                 size * (0.5 + instance_uniform(state)));
    }
}

double
instance_demand(const struct order_stage *stage, int port)
{
    for (size_t i = 0; i < stage->n_demands; i++) {
        if (stage->demands[i].port == port) {
            return stage->demands[i].seconds;
        }
    }
    return 0;
}

/* Serves 'port' by 'order', interrupting when somebody more urgent is
 * released, and raises 'end's to the ends there. */
static void
serve_port(const struct order_problem *op, const int *order, int port,
           double *end)
{
    double left[INSTANCE_MAX_STAGES];
    double now = 0;

    for (size_t i = 0; i < op->n_stages; i++) {
        left[i] = instance_demand(&op->stages[i], port);
    }
    for (;;) {
        double next = INFINITY;
        int serve = -1;

        for (size_t k = 0; k < op->n_stages; k++) {
            int s = order[k];

            if (left[s] > 0) {
                if (op->stages[s].release > now) {
                    next = fmin(next, op->stages[s].release);
                } else if (serve < 0) {
                    serve = s;
                }
            }
        }
        if (serve < 0 && isinf(next)) {
            return;
        } else if (serve < 0) {
            now = next;
        } else if (now + left[serve] <= next) {
            now += left[serve];
            left[serve] = 0;
            end[serve] = fmax(end[serve], now);
        } else {
            left[serve] -= next - now;
            now = next;
        }
    }
}

double
instance_cost(const struct order_problem *op, const int *order)
{
    double end[INSTANCE_MAX_STAGES];
    double sum = 0;

    for (size_t i = 0; i < op->n_stages; i++) {
        end[i] = op->stages[i].release + op->stages[i].isolated;
    }
    for (size_t i = 0; i < op->n_stages; i++) {
        for (int p = 0; p < op->n_ports; p++) {
            end[i] = fmax(end[i], op->stages[i].release
                                      + instance_demand(&op->stages[i], p));
        }
    }
    for (int p = 0; p < op->n_ports; p++) {
        serve_port(op, order, p, end);
    }
    for (size_t i = 0; i < op->n_stages; i++) {
        sum += op->stages[i].weight * end[i];
    }
    return sum;
}

/* Tries all permutations of order[k...]. */
static double
best_from(const struct order_problem *op, int *order, size_t k)
{
    double best = INFINITY;

    if (k == op->n_stages) {
        return instance_cost(op, order);
    }
    for (size_t i = k; i < op->n_stages; i++) {
        int tmp = order[k];

        order[k] = order[i];
        order[i] = tmp;
        best = fmin(best, best_from(op, order, k + 1));
        order[i] = order[k];
        order[k] = tmp;
    }
    return best;
}

double
instance_optimum(const struct order_problem *op)
{
    int order[INSTANCE_MAX_STAGES] = { 0 };

    for (size_t i = 0; i < op->n_stages; i++) {
        order[i] = i;
    }
    return best_from(op, order, 0);
}

/* What is left of a problem in a matrix. */
struct plain {
    int n_stages, n_ports;
    const double *seconds;
    double *left;               /* Of each stage's weight. */
    double *load, *squares;     /* Of each port. */
    bool *placed;
};

static void
plain_init(struct plain *pl, const double *weight)
{
    pl->left = order_alloc(pl->n_stages, sizeof *pl->left);
    pl->placed = order_alloc(pl->n_stages, sizeof *pl->placed);
    pl->load = order_alloc(pl->n_ports, sizeof *pl->load);
    pl->squares = order_alloc(pl->n_ports, sizeof *pl->squares);
    for (int s = 0; s < pl->n_stages; s++) {
        pl->left[s] = weight[s];
        for (int p = 0; p < pl->n_ports; p++) {
            double d = pl->seconds[(size_t) p * pl->n_stages + s];

            pl->load[p] += d;
            pl->squares[p] += d * d;
        }
    }
}

/* Charges 'port' and returns the stage that goes last. */
static int
plain_charge(struct plain *pl, int port, double *bound)
{
    const double *seconds = pl->seconds + (size_t) port * pl->n_stages;
    double price = INFINITY;
    int last = -1;

    for (int s = 0; s < pl->n_stages; s++) {
        if (!pl->placed[s] && seconds[s] > 0
            && pl->left[s] / seconds[s] < price) {
            price = pl->left[s] / seconds[s];
            last = s;
        }
    }
    *bound += price * (pl->load[port] * pl->load[port] + pl->squares[port])
        / 2;
    for (int s = 0; s < pl->n_stages; s++) {
        pl->left[s] -= price * seconds[s];
        pl->left[s] = pl->left[s] > 0 ? pl->left[s] : 0;
    }
    return last;
}

double
instance_permute(int n_stages, int n_ports, const double *seconds,
                 const double *weight, int *order)
{
    struct plain pl = { n_stages, n_ports, seconds };
    double bound = 0;

    plain_init(&pl, weight);
    for (int k = n_stages; k-- > 0; ) {
        int busiest = 0, last;

        for (int p = 1; p < n_ports; p++) {
            busiest = pl.load[p] > pl.load[busiest] ? p : busiest;
        }
        last = plain_charge(&pl, busiest, &bound);
        for (int p = 0; p < n_ports; p++) {
            double d = seconds[(size_t) p * n_stages + last];

            pl.load[p] -= d;
            pl.squares[p] -= d * d;
        }
        pl.placed[last] = true;
        order[k] = last;
    }
    free(pl.left);
    free(pl.placed);
    free(pl.load);
    free(pl.squares);
    return bound;
}

bool
instance_share_a_port(const struct order_stage *a, const struct order_stage *b)
{
    for (size_t i = 0; i < a->n_demands; i++) {
        for (size_t j = 0; j < b->n_demands; j++) {
            if (a->demands[i].port == b->demands[j].port) {
                return true;
            }
        }
    }
    return false;
}
