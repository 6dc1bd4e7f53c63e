/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FLUID_COVER_H
#define FLUID_COVER_H 1

/* Linear programs that cover needs at the least cost: each row is a sum of
 * coefficients times variables that must be at least its need.  Variables and
 * costs are at least 0.
 *
 *    cover_begin(&c, n_variables);
 *    c.cost[v] = ...of each variable...
 *    c.most[v] = ...of each variable...
 *    row = cover_add_row(&c, need);
 *    row[v] = ...of each variable that it has...
 *    value = cover_solve(&c, limit);
 *    cover_uninit(&c);
 *
 * Solved from below, by the simplex method on the dual program: its slack
 * basis is feasible.  The value is a lower bound after each step, so the
 * solution ends as soon as it reaches a limit.  The tableau is dense: made for
 * many programs of about a hundred variables.
 *
 * Where many costs are 0, most steps would not raise the value.  Costs are
 * therefore raised by about 1e-9, and what that can add to the value is
 * subtracted from it.
 *
 * Zeroed memory is an initialized struct.  It keeps its memory for the next
 * program. */

#include <stddef.h>

struct cover {
    size_t n_variables, n_rows;
    double *cost; /* Of each variable. */
    double *most; /* Upper limit of each variable in a best
                   * solution; INFINITY leaves its cost as it
                   * is. */
    double *need; /* Of each row. */
    double *rows; /* By row, then by variable. */
    size_t allocated_cost, allocated_most, allocated_need, allocated_rows;
};

void cover_begin(struct cover *, size_t n_variables);

/* Adds a row and returns its coefficients, which are 0.  They are valid until
 * the next row. */
double *cover_add_row(struct cover *, double need);

/* Returns a lower bound on the least cost: the least cost, but for rounding,
 * or 'limit' or more as soon as it is known to be that.  Uses the program
 * up. */
double cover_solve(struct cover *, double limit);
void cover_uninit(struct cover *);

#endif /* order/fluid/cover.h */
