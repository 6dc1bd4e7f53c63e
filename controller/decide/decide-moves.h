/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_MOVES_H
#define DECIDE_MOVES_H 1

/* What an order changed, in words, for the log of decisions.
 *
 * A stage whose rank fell only because one before it ended was not decided
 * upon; a stage that is new, or that goes before one that it was behind, was.
 * Main thread only. */

struct decide_rows;
struct decision_log;

/* Appends to 'log' the stages of 'rows' that an order placed.  'old_ranks' has
 * the rank before, -1 for none, of the stage of each rank of now. */
void decide_moves_log(const struct decide_rows *rows, const int *old_ranks,
                      struct decision_log *log);

#endif /* controller/decide/decide-moves.h */
