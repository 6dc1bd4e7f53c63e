/* SPDX-License-Identifier: Apache-2.0 */

#include "order/primal-dual/ascent.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "order/problem/memory.h"
#include "order/problem/problem.h"

/* Step of the first round, and number of rounds after which steps shrink. */
#define STEP 1.0
#define STEADY_ROUNDS 20

/* Smallest share: multiplication could not raise a share of 0. */
#define MIN_SHARE 1e-9

/* One stage on one port. */
struct pair {
    int stage;
    double seconds;
    double share;               /* Of the stage's weight. */
    double price;               /* Weight per second. */
    double end;                 /* End by the port's optimum. */
    double remaining;           /* Seconds not served yet. */
    double integral;            /* Integral of the time over the served
                                 * seconds. */
};

struct ascent {
    const struct order_problem *op;
    struct pair *pairs;         /* By port. */
    size_t *first;              /* Index of each port's first pair; one more
                                 * element for the end. */
    size_t *by_port;            /* Indexes of pairs by port, then by release or
                                 * price. */
    size_t *heap;               /* Waiting pairs, while serving. */
    size_t n_heap;

    size_t *stage_first;        /* Index of each stage's first element of
                                 * 'stage_pairs'. */
    size_t *stage_pairs;        /* Indexes of pairs by stage. */
    double *own_share;          /* Share of each stage's weight on its isolated
                                 * end. */
    double *isolated;           /* Isolated end of each stage. */
    bool released;              /* True if all stages have begun. */
};

static size_t
count_pairs(struct ascent *a)
{
    size_t n = 0;

    for (size_t s = 0; s < a->op->n_stages; s++) {
        const struct order_stage *stage = &a->op->stages[s];

        a->stage_first[s] = n;
        n += stage->n_demands;
        for (size_t i = 0; i < stage->n_demands; i++) {
            a->first[stage->demands[i].port + 1]++;
        }
    }
    a->stage_first[a->op->n_stages] = n;
    for (int p = 0; p < a->op->n_ports; p++) {
        a->first[p + 1] += a->first[p];
    }
    return n;
}

/* Splits each stage's weight in proportion to its seconds. */
static void
fill_pairs(struct ascent *a)
{
    size_t *next = order_alloc(a->op->n_ports, sizeof *next);

    for (int p = 0; p < a->op->n_ports; p++) {
        next[p] = a->first[p];
    }
    for (size_t s = 0; s < a->op->n_stages; s++) {
        const struct order_stage *stage = &a->op->stages[s];
        double sum = 0;

        for (size_t i = 0; i < stage->n_demands; i++) {
            sum += stage->demands[i].seconds;
        }
        a->own_share[s] = stage->n_demands ? MIN_SHARE : 1;
        a->isolated[s] = order_stage_earliest_end(stage);
        a->released &= stage->release == 0;
        for (size_t i = 0; i < stage->n_demands; i++) {
            size_t index = next[stage->demands[i].port]++;

            a->stage_pairs[a->stage_first[s] + i] = index;
            a->by_port[index] = index;
            a->pairs[index] = (struct pair) {
                .stage = s, .seconds = stage->demands[i].seconds,
                .share = (1 - MIN_SHARE) * stage->demands[i].seconds / sum
            };
        }
    }
    free(next);
}

static void
ascent_init(struct ascent *a, const struct order_problem *op)
{
    size_t n;

    memset(a, 0, sizeof *a);
    a->op = op;
    a->released = true;
    a->first = order_alloc(op->n_ports + 1, sizeof *a->first);
    a->stage_first = order_alloc(op->n_stages + 1, sizeof *a->stage_first);
    a->own_share = order_alloc(op->n_stages, sizeof *a->own_share);
    a->isolated = order_alloc(op->n_stages, sizeof *a->isolated);
    n = count_pairs(a);
    a->pairs = order_alloc(n, sizeof *a->pairs);
    a->by_port = order_alloc(n, sizeof *a->by_port);
    a->heap = order_alloc(n, sizeof *a->heap);
    a->stage_pairs = order_alloc(n, sizeof *a->stage_pairs);
    fill_pairs(a);
}

static void
ascent_uninit(struct ascent *a)
{
    free(a->pairs);
    free(a->first);
    free(a->by_port);
    free(a->heap);
    free(a->stage_first);
    free(a->stage_pairs);
    free(a->own_share);
    free(a->isolated);
}

static double
release_of(const struct ascent *a, size_t pair)
{
    return a->op->stages[a->pairs[pair].stage].release;
}

/* Returns true if pair 'x' sorts before 'y': by release unless 'released',
 * then by price, then by stage. */
static bool
comes_before(const struct ascent *a, size_t x, size_t y)
{
    if (!a->released && release_of(a, x) != release_of(a, y)) {
        return release_of(a, x) < release_of(a, y);
    }
    if (a->pairs[x].price != a->pairs[y].price) {
        return a->pairs[x].price > a->pairs[y].price;
    }
    return x < y;
}

/* Insertion sort, because the order changes little from round to round. */
static void
sort_port(struct ascent *a, size_t first, size_t end)
{
    for (size_t i = first + 1; i < end; i++) {
        size_t x = a->by_port[i];
        size_t j = i;

        for (; j > first && comes_before(a, x, a->by_port[j - 1]); j--) {
            a->by_port[j] = a->by_port[j - 1];
        }
        a->by_port[j] = x;
    }
}

/* Serves the pairs by Smith's rule. */
static void
serve_all(struct ascent *a, size_t first, size_t end)
{
    double now = 0;

    for (size_t i = first; i < end; i++) {
        struct pair *pair = &a->pairs[a->by_port[i]];

        now += pair->seconds;
        pair->end = now;
    }
}

static bool
costs_more(const struct ascent *a, size_t x, size_t y)
{
    return a->pairs[x].price != a->pairs[y].price
           ? a->pairs[x].price > a->pairs[y].price : x < y;
}

static void
heap_push(struct ascent *a, size_t x)
{
    size_t i = a->n_heap++;

    for (; i && costs_more(a, x, a->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        a->heap[i] = a->heap[(i - 1) / 2];
    }
    a->heap[i] = x;
}

static void
heap_pop(struct ascent *a)
{
    size_t x = a->heap[--a->n_heap];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < a->n_heap
            && costs_more(a, a->heap[child + 1], a->heap[child])) {
            child++;
        }
        if (child >= a->n_heap || !costs_more(a, a->heap[child], x)) {
            break;
        }
        a->heap[i] = a->heap[child];
        i = child;
    }
    a->heap[i] = x;
}

/* Serves the waiting pair with the highest price to its end, but at most until
 * 'until'.  Returns the time. */
static double
serve_first(struct ascent *a, double now, double until)
{
    struct pair *pair = &a->pairs[a->heap[0]];
    double seconds = fmin(pair->remaining, until - now);

    pair->integral += seconds * (now + seconds / 2);
    if (pair->remaining <= until - now) {
        pair->end = pair->integral / pair->seconds + pair->seconds / 2;
        heap_pop(a);
        return now + seconds;
    }
    pair->remaining -= seconds;
    return until;
}

/* Serves the released pairs by falling price, with preemption. */
static void
serve_released(struct ascent *a, size_t first, size_t end)
{
    size_t next = first;
    double now = 0;

    a->n_heap = 0;
    while (next < end || a->n_heap) {
        if (!a->n_heap) {
            now = fmax(now, release_of(a, a->by_port[next]));
        }
        for (; next < end && release_of(a, a->by_port[next]) <= now; next++) {
            struct pair *pair = &a->pairs[a->by_port[next]];

            pair->remaining = pair->seconds;
            pair->integral = 0;
            heap_push(a, a->by_port[next]);
        }
        now = serve_first(a, now, next < end
                          ? release_of(a, a->by_port[next]) : INFINITY);
    }
}

/* Solves each port and returns the value of the split. */
static double
solve_ports(struct ascent *a)
{
    double value = 0;

    for (int p = 0; p < a->op->n_ports; p++) {
        size_t first = a->first[p], end = a->first[p + 1];

        for (size_t i = first; i < end; i++) {
            struct pair *pair = &a->pairs[i];

            pair->price = a->op->stages[pair->stage].weight * pair->share
                          / pair->seconds;
        }
        sort_port(a, first, end);
        if (a->released) {
            serve_all(a, first, end);
        } else {
            serve_released(a, first, end);
        }
        for (size_t i = first; i < end; i++) {
            value += a->pairs[i].price * a->pairs[i].seconds * a->pairs[i].end;
        }
    }
    for (size_t s = 0; s < a->op->n_stages; s++) {
        value += a->op->stages[s].weight * a->own_share[s] * a->isolated[s];
    }
    return value;
}

/* Returns the largest end of 'stage', counted from its release. */
static double
latest_end(const struct ascent *a, size_t stage)
{
    double end = a->isolated[stage];

    for (size_t i = a->stage_first[stage]; i < a->stage_first[stage + 1];
         i++) {
        end = fmax(end, a->pairs[a->stage_pairs[i]].end);
    }
    return end - a->op->stages[stage].release;
}

/* Moves the weight of 'stage' to the ports on which it ends late. */
static void
shift_weight(struct ascent *a, size_t stage, double step)
{
    size_t first = a->stage_first[stage], end = a->stage_first[stage + 1];
    double release = a->op->stages[stage].release;
    double scale = latest_end(a, stage);
    double sum;

    if (first == end || scale <= 0) {
        return;
    }
    a->own_share[stage] *= exp(step * ((a->isolated[stage] - release) / scale
                                       - 1));
    sum = a->own_share[stage];
    for (size_t i = first; i < end; i++) {
        struct pair *pair = &a->pairs[a->stage_pairs[i]];

        pair->share *= exp(step * ((pair->end - release) / scale - 1));
        sum += pair->share;
    }

    sum *= 1 + (end - first + 1) * MIN_SHARE;
    a->own_share[stage] = a->own_share[stage] / sum + MIN_SHARE / 2;
    for (size_t i = first; i < end; i++) {
        struct pair *pair = &a->pairs[a->stage_pairs[i]];

        pair->share = pair->share / sum + MIN_SHARE / 2;
    }
}

double
ascent_bound(const struct order_problem *op, int rounds)
{
    struct ascent a;
    double best = 0;
    size_t n;

    ascent_init(&a, op);
    n = a.stage_first[op->n_stages];
    for (int round = 0; round < rounds; round++) {
        best = fmax(best, solve_ports(&a));
        for (size_t s = 0; s < op->n_stages; s++) {
            shift_weight(&a, s,
                         STEP / sqrt(1 + (double) round / STEADY_ROUNDS));
        }
    }
    ascent_uninit(&a);

    /* Subtract the largest rounding error of these sums. */
    return best * (1 - 8 * (n + op->n_stages + 1) * DBL_EPSILON);
}
