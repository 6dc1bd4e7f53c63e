/* SPDX-License-Identifier: Apache-2.0 */

#include "order/fluid/cover.h"

#include <math.h>

#include "order/problem/memory.h"

#define TINY 1e-9    /* What rounding leaves of 0. */
#define RAISE 1e-9   /* Amount by which costs are raised. */
#define MAX_STEPS 50 /* Limit for each row and variable. */

void
cover_begin(struct cover *c, size_t n_variables)
{
    c->n_variables = n_variables;
    c->n_rows = 0;
    c->cost =
        order_grow(c->cost, n_variables, &c->allocated_cost, sizeof *c->cost);
    c->most =
        order_grow(c->most, n_variables, &c->allocated_most, sizeof *c->most);
}

double *
cover_add_row(struct cover *c, double need)
{
    size_t n = c->n_variables;
    double *row;

    c->need = order_grow(c->need, c->n_rows + 1, &c->allocated_need,
                         sizeof *c->need);
    c->rows = order_grow(c->rows, (c->n_rows + 1) * n, &c->allocated_rows,
                         sizeof *c->rows);
    c->need[c->n_rows] = need;
    row = &c->rows[c->n_rows++ * n];
    memset(row, 0, n * sizeof *row);
    return row;
}

/* Raises the costs, each by another amount.  Returns what that may add to the
 * least cost. */
static double
raise_costs(struct cover *c)
{
    double added = 0;

    for (size_t v = 0; v < c->n_variables; v++) {
        if (isfinite(c->most[v])) {
            double raise = RAISE * (1 + v * 7919 % 1009 / 1009.);

            c->cost[v] += raise;
            added += raise * c->most[v];
        }
    }
    return added;
}

/* Returns the row with the largest need, or 'n_rows' if none is left. */
static size_t
neediest(const struct cover *c)
{
    size_t row = c->n_rows;
    double most = TINY;

    for (size_t r = 0; r < c->n_rows; r++) {
        if (c->need[r] > most) {
            most = c->need[r];
            row = r;
        }
    }
    return row;
}

/* Returns the variable with the cost that the price of 'row' reaches first, or
 * 'n_variables' without one. */
static size_t
tightest(const struct cover *c, const double *row)
{
    size_t variable = c->n_variables;
    double least = INFINITY;

    for (size_t v = 0; v < c->n_variables; v++) {
        if (row[v] > TINY && c->cost[v] < least * row[v]) {
            least = c->cost[v] / row[v];
            variable = v;
        }
    }
    return variable;
}

/* Makes 'variable' positive and lets 'row' have a price.  Returns by how much
 * the value grows. */
static double
exchange(struct cover *c, size_t row, size_t variable)
{
    size_t n = c->n_variables;
    double *base = &c->rows[row * n];
    double inverse = 1 / base[variable], need = c->need[row];
    double price = c->cost[variable] * inverse;

    for (size_t r = 0; r < c->n_rows; r++) {
        double *other = &c->rows[r * n];
        double factor = other[variable] * inverse;

        if (r != row && factor) {
            for (size_t v = 0; v < n; v++) {
                other[v] -= factor * base[v];
            }
            other[variable] = factor;
            c->need[r] -= factor * need;
        }
    }
    for (size_t v = 0; v < n; v++) {
        c->cost[v] = fmax(c->cost[v] - price * base[v], 0);
        base[v] *= -inverse;
    }
    c->cost[variable] = price;
    base[variable] = inverse;
    c->need[row] = -need * inverse;
    return need * price;
}

double
cover_solve(struct cover *c, double limit)
{
    size_t steps = MAX_STEPS * (c->n_rows + c->n_variables);
    double value = -raise_costs(c);
    size_t row;

    while (value < limit && steps-- && (row = neediest(c)) < c->n_rows) {
        size_t variable = tightest(c, &c->rows[row * c->n_variables]);

        if (variable == c->n_variables) {
            return INFINITY;
        }
        value += exchange(c, row, variable);
    }
    return value;
}

void
cover_uninit(struct cover *c)
{
    free(c->cost);
    free(c->most);
    free(c->need);
    free(c->rows);
}
