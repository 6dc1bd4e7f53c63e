/* SPDX-License-Identifier: Apache-2.0 */

#include "order/result/improve.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "order/problem/memory.h"
#include "order/problem/problem.h"

/* Minimum improvement of a move, relative to the total cost.  Without it,
 * rounding errors could move stages for ever. */
#define MIN_IMPROVEMENT 1e-9

void
improver_init(struct improver *im)
{
    memset(im, 0, sizeof *im);
}

void
improver_uninit(struct improver *im)
{
    free(im->order);
    free(im->isolated);
    free(im->end);
    free(im->load);
    improver_init(im);
}

/* Starts with the problem 'op' and without a start order. */
void
improver_begin(struct improver *im, const struct order_problem *op)
{
    size_t n = op->n_stages;
    size_t n_ports = op->n_ports;

    if (n > im->allocated_stages) {
        free(im->order);
        free(im->isolated);
        free(im->end);
        im->allocated_stages = 2 * n;
        im->order = order_alloc(2 * n, sizeof *im->order);
        im->isolated = order_alloc(2 * n, sizeof *im->isolated);
        im->end = order_alloc(2 * n, sizeof *im->end);
    }
    if (!im->load || n_ports > im->allocated_ports) {
        free(im->load);
        im->allocated_ports = n_ports;
        im->load = order_alloc(n_ports, sizeof *im->load);
    }
    im->op = op;
    im->cost = INFINITY;
    for (size_t i = 0; i < n; i++) {
        im->isolated[i] = order_stage_earliest_end(&op->stages[i]);
    }
}

static void
add_load(struct improver *im, int stage)
{
    const struct order_stage *s = &im->op->stages[stage];

    for (size_t i = 0; i < s->n_demands; i++) {
        im->load[s->demands[i].port] += s->demands[i].seconds;
    }
}

static void
remove_load(struct improver *im, int stage)
{
    const struct order_stage *s = &im->op->stages[stage];

    for (size_t i = 0; i < s->n_demands; i++) {
        im->load[s->demands[i].port] -= s->demands[i].seconds;
    }
}

/* Returns the end of 'stage' if the load includes it. */
static double
end_within(const struct improver *im, int stage)
{
    const struct order_stage *s = &im->op->stages[stage];
    double end = im->isolated[stage];

    for (size_t i = 0; i < s->n_demands; i++) {
        double load = im->load[s->demands[i].port];

        end = load > end ? load : end;
    }
    return end;
}

/* Returns the end of 'stage' if it is served after the load. */
static double
end_after(const struct improver *im, int stage)
{
    const struct order_stage *s = &im->op->stages[stage];
    double end = im->isolated[stage];

    for (size_t i = 0; i < s->n_demands; i++) {
        double load = im->load[s->demands[i].port] + s->demands[i].seconds;

        end = load > end ? load : end;
    }
    return end;
}

/* Returns the increase of the cost if 'stage' ends at 'end'. */
static double
increase(const struct improver *im, int stage, double end)
{
    return im->op->stages[stage].weight * (end - im->end[stage]);
}

static void
clear_load(struct improver *im)
{
    memset(im->load, 0, im->op->n_ports * sizeof *im->load);
}

/* Computes all ends of 'order' and returns their weighted sum. */
static double
evaluate(struct improver *im, const int *order)
{
    double cost = 0;

    clear_load(im);
    for (size_t k = 0; k < im->op->n_stages; k++) {
        int s = order[k];

        im->end[s] = end_after(im, s);
        add_load(im, s);
        cost += im->op->stages[s].weight * im->end[s];
    }
    return cost;
}

/* Uses 'order', all stages by rank, as the start if it is better than those
 * offered before. */
void
improver_offer(struct improver *im, const int *order)
{
    double cost = evaluate(im, order);

    if (isinf(im->cost) || cost < im->cost * (1 - MIN_IMPROVEMENT)) {
        im->cost = cost;
        if (im->op->n_stages) {
            memcpy(im->order, order, im->op->n_stages * sizeof *order);
        }
    }
}

/* Best insertion rank found for a stage, and the change of the order's cost if
 * the stage moves there (negative is better). */
struct insertion {
    size_t rank;
    double cost;
};

/* Tries the ranks before 'k' for the stage at rank 'k' and returns their
 * number.  The load must include exactly the stages before 'k'; it is
 * restored. */
static long
try_earlier(struct improver *im, size_t k, struct insertion *best)
{
    size_t first = k > IMPROVE_WINDOW ? k - IMPROVE_WINDOW : 0;
    int s = im->order[k];
    double others = 0;

    add_load(im, s);
    for (size_t j = k; j-- > first; ) {
        int x = im->order[j];
        double cost;

        others += increase(im, x, end_within(im, x));
        remove_load(im, x);
        cost = others + increase(im, s, end_within(im, s));
        if (cost < best->cost) {
            *best = (struct insertion) { j, cost };
        }
    }
    for (size_t j = first; j < k; j++) {
        add_load(im, im->order[j]);
    }
    remove_load(im, s);
    return k - first;
}

/* Tries the ranks after 'k' for the stage at rank 'k'. */
static long
try_later(struct improver *im, size_t k, struct insertion *best)
{
    size_t n = im->op->n_stages;
    size_t last = n - 1 - k > IMPROVE_WINDOW ? k + IMPROVE_WINDOW : n - 1;
    int s = im->order[k];
    double others = 0;

    for (size_t j = k + 1; j <= last; j++) {
        int x = im->order[j];
        double cost;

        add_load(im, x);
        others += increase(im, x, end_within(im, x));
        cost = others + increase(im, s, end_after(im, s));
        if (cost < best->cost) {
            *best = (struct insertion) { j, cost };
        }
    }
    for (size_t j = last; j > k; j--) {
        remove_load(im, im->order[j]);
    }
    return last - k;
}

/* Moves the stage at rank 'k' to rank 'to'.  The load must include exactly the
 * stages before 'k'; afterwards it includes those before the smaller of both
 * ranks. */
static void
move_stage(struct improver *im, size_t k, size_t to)
{
    size_t first = k < to ? k : to;
    size_t last = k < to ? to : k;
    int s = im->order[k];

    for (size_t j = first; j < k; j++) {
        remove_load(im, im->order[j]);
    }
    if (to < k) {
        memmove(&im->order[to + 1], &im->order[to],
                (k - to) * sizeof *im->order);
    } else {
        memmove(&im->order[k], &im->order[k + 1],
                (to - k) * sizeof *im->order);
    }
    im->order[to] = s;

    for (size_t j = first; j <= last; j++) {
        int x = im->order[j];

        im->end[x] = end_after(im, x);
        add_load(im, x);
    }
    for (size_t j = last + 1; j-- > first; ) {
        remove_load(im, im->order[j]);
    }
}

static double
time_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Tries to move each stage once, in order.  Returns true if one moved and the
 * budget is not used up. */
static bool
improve_once(struct improver *im, long *moves, double deadline)
{
    bool moved = false;

    im->cost = evaluate(im, im->order);
    clear_load(im);
    for (size_t k = 0; k < im->op->n_stages; k++) {
        struct insertion best = { k, -MIN_IMPROVEMENT * im->cost };

        if (*moves <= 0 || time_now() >= deadline) {
            return false;
        }
        *moves -= try_earlier(im, k, &best);
        *moves -= try_later(im, k, &best);
        if (best.rank != k) {
            size_t first = k < best.rank ? k : best.rank;

            move_stage(im, k, best.rank);
            im->cost += best.cost;
            for (size_t j = first; j < k; j++) {
                add_load(im, im->order[j]);
            }
            moved = true;
        }
        add_load(im, im->order[k]);
    }
    return moved;
}

/* Moves stages within the best order offered until no move improves it.  Tries
 * about 'moves' insertions for at most 'seconds' and returns their number. */
long
improver_run(struct improver *im, long moves, double seconds)
{
    double deadline = time_now() + seconds;
    long remaining = moves;

    if (im->op->n_stages > 1) {
        while (improve_once(im, &remaining, deadline)) {
            continue;
        }
    }
    im->cost = evaluate(im, im->order);
    return moves - remaining;
}
