/* SPDX-License-Identifier: Apache-2.0 */

#include "order/improve.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "order/memory.h"
#include "order/order.h"

/* A move must save so much of the whole, or rounding would move for ever. */
#define WORTH 1e-9

void
improver_init(struct improver *im)
{
    memset(im, 0, sizeof *im);
}

void
improver_uninit(struct improver *im)
{
    free(im->order);
    free(im->alone);
    free(im->end);
    free(im->load);
    improver_init(im);
}

/* Makes room for 'op' and forgets what was offered before. */
void
improver_begin(struct improver *im, const struct order_problem *op)
{
    size_t n = op->n_stages;
    size_t n_ports = op->n_ports;

    if (n > im->allocated_stages) {
        free(im->order);
        free(im->alone);
        free(im->end);
        im->allocated_stages = 2 * n;
        im->order = order_alloc(2 * n, sizeof *im->order);
        im->alone = order_alloc(2 * n, sizeof *im->alone);
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
        im->alone[i] = order_stage_earliest_end(&op->stages[i]);
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
take_load(struct improver *im, int stage)
{
    const struct order_stage *s = &im->op->stages[stage];

    for (size_t i = 0; i < s->n_demands; i++) {
        im->load[s->demands[i].port] -= s->demands[i].seconds;
    }
}

/* When 'stage' ends if it is part of the load already. */
static double
end_within(const struct improver *im, int stage)
{
    const struct order_stage *s = &im->op->stages[stage];
    double end = im->alone[stage];

    for (size_t i = 0; i < s->n_demands; i++) {
        double load = im->load[s->demands[i].port];

        end = load > end ? load : end;
    }
    return end;
}

/* When 'stage' ends if it goes after the load. */
static double
end_after(const struct improver *im, int stage)
{
    const struct order_stage *s = &im->op->stages[stage];
    double end = im->alone[stage];

    for (size_t i = 0; i < s->n_demands; i++) {
        double load = im->load[s->demands[i].port] + s->demands[i].seconds;

        end = load > end ? load : end;
    }
    return end;
}

/* What 'stage' costs more if it ends at 'end'. */
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

/* Computes all ends of 'order' and returns the weighted sum of them. */
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

/* Considers 'order', all stages by rank, as a start.  Of equals the first
 * stays. */
void
improver_offer(struct improver *im, const int *order)
{
    double cost = evaluate(im, order);

    if (isinf(im->cost) || cost < im->cost * (1 - WORTH)) {
        im->cost = cost;
        if (im->op->n_stages) {
            memcpy(im->order, order, im->op->n_stages * sizeof *order);
        }
    }
}

/* The best place found for a stage, and what it costs more there. */
struct place {
    size_t rank;
    double cost;
};

/* Lets the stage at rank 'k' pass those before it, one after the other.  The
 * load is that of all before 'k', and is so afterwards. */
static long
look_before(struct improver *im, size_t k, struct place *best)
{
    size_t first = k > IMPROVE_WINDOW ? k - IMPROVE_WINDOW : 0;
    int s = im->order[k];
    double others = 0;

    add_load(im, s);
    for (size_t j = k; j-- > first; ) {
        int x = im->order[j];
        double cost;

        others += increase(im, x, end_within(im, x));
        take_load(im, x);
        cost = others + increase(im, s, end_within(im, s));
        if (cost < best->cost) {
            *best = (struct place) { j, cost };
        }
    }
    for (size_t j = first; j < k; j++) {
        add_load(im, im->order[j]);
    }
    take_load(im, s);
    return k - first;
}

/* Lets the stage at rank 'k' fall behind those after it. */
static long
look_behind(struct improver *im, size_t k, struct place *best)
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
            *best = (struct place) { j, cost };
        }
    }
    for (size_t j = last; j > k; j--) {
        take_load(im, im->order[j]);
    }
    return last - k;
}

/* Moves the stage at rank 'k' to rank 'to'.  The load is that of all before
 * 'k', and becomes that of all before the smaller of the two. */
static void
move(struct improver *im, size_t k, size_t to)
{
    size_t first = k < to ? k : to;
    size_t last = k < to ? to : k;
    int s = im->order[k];

    for (size_t j = first; j < k; j++) {
        take_load(im, im->order[j]);
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
        take_load(im, im->order[j]);
    }
}

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Looks once at every stage, in order.  Returns true if one moved and there is
 * budget left. */
static bool
pass(struct improver *im, long *moves, double deadline)
{
    bool moved = false;

    im->cost = evaluate(im, im->order);
    clear_load(im);
    for (size_t k = 0; k < im->op->n_stages; k++) {
        struct place best = { k, -WORTH * im->cost };

        if (*moves <= 0 || now() >= deadline) {
            return false;
        }
        *moves -= look_before(im, k, &best);
        *moves -= look_behind(im, k, &best);
        if (best.rank != k) {
            size_t first = k < best.rank ? k : best.rank;

            move(im, k, best.rank);
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

/* Moves stages within the best order that was offered, at least one, while it
 * helps.  Tries about 'moves' places for at most 'seconds'; returns how many
 * it tried. */
long
improver_run(struct improver *im, long moves, double seconds)
{
    double deadline = now() + seconds;
    long left = moves;

    if (im->op->n_stages > 1) {
        while (pass(im, &left, deadline)) {
            continue;
        }
    }
    im->cost = evaluate(im, im->order);
    return moves - left;
}
