/* SPDX-License-Identifier: Apache-2.0 */

#include "order/primal-dual/coupled-bound.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "order/problem/problem.h"
#include "order/problem/scratch.h"

#define MAX_STAGES 64
#define MAX_ROUNDS 100
#define MIN_ROUNDS 10

/* Step of the first round, and number of rounds after which steps shrink. */
#define STEP 1.0
#define STEADY_ROUNDS 20

/* Share of the newest round in the average order. */
#define NEWEST 0.3

/* If the costs of a pair's two orders differ by less than this share of their
 * sum, the pair's order is a mixture of both: rounding errors of equal costs
 * must not decide. */
#define TIE 0.05

/* Smallest share of a stage's weight on an inequality: multiplication could
 * not raise a share of 0. */
#define MIN_SHARE 1e-9

/* Places are the stages by release; those of a group have the same.  A use is
 * a port of a stage.  It has an inequality for each group up to that of the
 * stage. */
struct coupled {
    const struct order_problem *op;
    int n, n_groups;
    const struct order_stage *stages[MAX_STAGES];       /* By place. */
    int group[MAX_STAGES];      /* Of each place. */
    int group_first[MAX_STAGES + 1];    /* First place of each group; one more
                                         * element for the end. */
    size_t first_use[MAX_STAGES + 1];   /* Of each place; one more element for
                                         * the end. */
    double isolated[MAX_STAGES];        /* Isolated end by place, seconds. */
    double own[MAX_STAGES];     /* Part of each place's weight on its isolated
                                 * end. */
    double *seconds;            /* By port that has demand, then by place. */
    size_t *column;             /* Index in 'seconds' by use. */
    double *part;               /* Part of the weight by use, then by group. */
    double *end;                /* End that an inequality implies for the
                                 * average order, seconds, like 'part'. */
    double *cost;               /* [s * n + t]: cost if t ends before s. */
    double *before;             /* [s * n + t]: average of before(t, s). */
};

/* Sorts the stages by release and sets their groups. */
static void
set_places(struct coupled *c)
{
    const struct order_problem *op = c->op;

    for (int i = 0; i < c->n; i++) {
        const struct order_stage *stage = &op->stages[op->by_id[i]];
        int place = i;

        for (; place && c->stages[place - 1]->release > stage->release;
             place--) {
            c->stages[place] = c->stages[place - 1];
        }
        c->stages[place] = stage;
    }
    for (int s = 0; s < c->n; s++) {
        if (!s || c->stages[s]->release > c->stages[s - 1]->release) {
            c->group_first[c->n_groups++] = s;
        }
        c->group[s] = c->n_groups - 1;
        c->isolated[s] = order_stage_earliest_end(c->stages[s]);
        c->first_use[s + 1] = c->first_use[s] + c->stages[s]->n_demands;
    }
    c->group_first[c->n_groups] = c->n;
}

/* Sets 'seconds' and 'column'. */
static void
set_columns(struct coupled *c)
{
    size_t *of_port = scratch_alloc(c->op->scratch, c->op->n_ports,
                                    sizeof *of_port);
    size_t n_columns = 0;

    for (int s = 0; s < c->n; s++) {
        for (size_t i = 0; i < c->stages[s]->n_demands; i++) {
            const struct order_demand *d = &c->stages[s]->demands[i];

            if (!of_port[d->port]) {
                of_port[d->port] = ++n_columns;
            }
            c->column[c->first_use[s] + i] = (of_port[d->port] - 1) * c->n;
            c->seconds[c->column[c->first_use[s] + i] + s] = d->seconds;
        }
    }
    scratch_free(c->op->scratch, of_port);
}

/* Splits each weight in proportion to the seconds, on the inequalities from
 * the stage's own release on. */
static void
set_parts(struct coupled *c)
{
    for (int s = 0; s < c->n; s++) {
        const struct order_stage *stage = c->stages[s];
        double work = order_stage_work(stage);
        int groups = c->group[s] + 1;

        c->own[s] = stage->weight / (work > 0 ? 100 : 1);
        for (size_t i = 0; i < stage->n_demands; i++) {
            double *part = &c->part[(c->first_use[s] + i) * c->n_groups];

            for (int g = 0; g < groups; g++) {
                part[g] = 0.99 * stage->weight * stage->demands[i].seconds
                          / work / groups;
            }
        }
    }
}

static void
coupled_init(struct coupled *c, const struct order_problem *op)
{
    size_t n = op->n_stages, n_uses;

    *c = (struct coupled) { .op = op, .n = n };
    set_places(c);
    n_uses = c->first_use[n];
    c->cost = scratch_alloc(op->scratch, n * n, sizeof *c->cost);
    c->before = scratch_alloc(op->scratch, n * n, sizeof *c->before);
    c->part = scratch_alloc(op->scratch, n_uses * c->n_groups,
                            sizeof *c->part);
    c->end = scratch_alloc(op->scratch, n_uses * c->n_groups, sizeof *c->end);
    c->column = scratch_alloc(op->scratch, n_uses, sizeof *c->column);
    c->seconds = scratch_alloc(op->scratch, n_uses * n, sizeof *c->seconds);
    set_columns(c);
    set_parts(c);
}

static void
coupled_uninit(struct coupled *c)
{
    scratch_free(c->op->scratch, c->seconds);
    scratch_free(c->op->scratch, c->column);
    scratch_free(c->op->scratch, c->end);
    scratch_free(c->op->scratch, c->part);
    scratch_free(c->op->scratch, c->before);
    scratch_free(c->op->scratch, c->cost);
}

/* Computes the costs of place 's' and returns the part of the value that does
 * not depend on orders. */
static double
add_costs(struct coupled *c, int s)
{
    double *cost = &c->cost[s * c->n];
    double value = c->own[s] * c->isolated[s];

    for (int t = 0; t < c->n; t++) {
        cost[t] = 0;
    }
    for (size_t use = c->first_use[s]; use < c->first_use[s + 1]; use++) {
        const double *part = &c->part[use * c->n_groups];
        const double *seconds = &c->seconds[c->column[use]];
        double sum = 0;

        for (int g = 0; g < c->n_groups; g++) {
            if (g <= c->group[s]) {
                sum += part[g];
                value += part[g] * c->stages[c->group_first[g]]->release;
            }
            for (int t = c->group_first[g]; t < c->group_first[g + 1]; t++) {
                cost[t] += sum * seconds[t];
            }
        }
    }
    return value + cost[s];
}

/* Mixes the cheaper order of the pair into the average; all of it in the first
 * round.  Returns the smaller cost. */
static double
choose_order(struct coupled *c, int s, int t, double newest)
{
    double a = c->cost[s * c->n + t], b = c->cost[t * c->n + s];
    double sum = a + b;
    double order = sum > 0 ? (b - a) / (2 * TIE * sum) : 0;
    double *before = &c->before[s * c->n + t];

    order = 0.5 + fmin(fmax(order, -0.5), 0.5);
    *before += newest * (order - *before);
    c->before[t * c->n + s] = 1 - *before;
    return fmin(a, b);
}

/* Returns the value of the split and updates the average order. */
static double
evaluate(struct coupled *c, double newest)
{
    double value = 0;

    for (int s = 0; s < c->n; s++) {
        value += add_costs(c, s);
        c->before[s * c->n + s] = 1;
        for (int t = 0; t < s; t++) {
            value += choose_order(c, s, t, newest);
        }
    }
    return value;
}

/* Four sums at a time: one would wait for each addition. */
static double
dot(const double *a, const double *b, int n)
{
    double sum[4] = { 0 };
    int i = 0;

    for (; i + 4 <= n; i += 4) {
        for (int j = 0; j < 4; j++) {
            sum[j] += a[i + j] * b[i + j];
        }
    }
    for (; i < n; i++) {
        sum[0] += a[i] * b[i];
    }
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* Computes the ends that the inequalities of place 's' imply and returns the
 * largest. */
static double
compute_ends(struct coupled *c, int s)
{
    const double *before = &c->before[s * c->n];
    double latest = c->isolated[s];

    for (size_t use = c->first_use[s]; use < c->first_use[s + 1]; use++) {
        const double *seconds = &c->seconds[c->column[use]];
        double *end = &c->end[use * c->n_groups];
        double sum = 0;

        for (int g = c->n_groups - 1; g >= 0; g--) {
            int first = c->group_first[g];

            sum += dot(&before[first], &seconds[first],
                       c->group_first[g + 1] - first);
            end[g] = c->stages[first]->release + sum;
            if (g <= c->group[s]) {
                latest = fmax(latest, end[g]);
            }
        }
    }
    return latest;
}

/* Moves the weight of place 's' to the inequalities that imply late ends. */
static void
shift_weight(struct coupled *c, int s, double step)
{
    double weight = c->stages[s]->weight, release = c->stages[s]->release;
    double latest = compute_ends(c, s);
    double scale = step / fmax(latest - release, DBL_MIN);
    double sum;

    if (c->first_use[s] == c->first_use[s + 1]) {
        return;
    }
    c->own[s] = fmax(c->own[s] * exp(scale * (c->isolated[s] - latest)),
                     MIN_SHARE * weight);
    sum = c->own[s];
    for (size_t use = c->first_use[s]; use < c->first_use[s + 1]; use++) {
        double *part = &c->part[use * c->n_groups];
        const double *end = &c->end[use * c->n_groups];

        for (int g = 0; g <= c->group[s]; g++) {
            part[g] = fmax(part[g] * exp(scale * (end[g] - latest)),
                           MIN_SHARE * weight);
            sum += part[g];
        }
    }

    c->own[s] *= weight / sum;
    for (size_t use = c->first_use[s]; use < c->first_use[s + 1]; use++) {
        double *part = &c->part[use * c->n_groups];

        for (int g = 0; g <= c->group[s]; g++) {
            part[g] *= weight / sum;
        }
    }
}

/* Returns the number of rounds for 'work' multiplications.  An exponential
 * counts as ten. */
static int
affordable_rounds(const struct order_problem *op, double work)
{
    double n_groups = order_problem_has_releases(op) ? op->n_stages : 1;
    double n_uses = 0;

    for (size_t i = 0; i < op->n_stages; i++) {
        n_uses += op->stages[i].n_demands;
    }
    return fmin(work / (n_uses * (2 * op->n_stages + 5 * (n_groups + 1)) + 1),
                MAX_ROUNDS);
}

double
coupled_bound(const struct order_problem *op, double work)
{
    struct coupled c;
    double best = 0, n_terms;
    int rounds;

    if (op->n_stages < 2 || op->n_stages > MAX_STAGES
        || (rounds = affordable_rounds(op, work)) < MIN_ROUNDS) {
        return 0;
    }
    coupled_init(&c, op);
    n_terms = (double) c.n * c.n
              + (double) c.first_use[c.n] * c.n_groups + c.n_groups;
    for (int round = 0; round < rounds; round++) {
        double step = STEP / sqrt(1 + (double) round / STEADY_ROUNDS);

        best = fmax(best, evaluate(&c, round ? NEWEST : 1));
        for (int s = 0; s < c.n; s++) {
            shift_weight(&c, s, step);
        }
    }
    coupled_uninit(&c);

    /* Subtract the largest rounding error of these sums. */
    return best * (1 - 8 * n_terms * DBL_EPSILON);
}
