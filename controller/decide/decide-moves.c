/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-moves.h"

#include <stdlib.h>

#include "controller/decide/decide-rows.h"
#include "controller/decide/decision-log.h"
#include "util.h"

static char *
stage_name(const struct stage_row *row)
{
    return xasprintf("%s/%d", row->cojob, row->rung);
}

/* Returns the rank of the first stage that the stage of rank 'k' overtook, or
 * -1. */
static int
overtaken(const struct decide_rows *rows, const int *old_ranks, size_t k)
{
    for (size_t i = k + 1; i < rows->n_stages; i++) {
        if (old_ranks[i] >= 0 && old_ranks[i] < old_ranks[k]) {
            return i;
        }
    }
    return -1;
}

/* Returns why the stage of 'row' has its place, before 'other' if that is
 * nonnull: for most, what it needs. */
static char *
reason(const struct decide_rows *rows, const struct stage_row *row,
       const struct stage_row *other)
{
    return (row->override
            ? xasprintf("an operator wants it (%s)",
                        override_names[row->override])
            : other && other->override
            ? xasprintf("an operator wants that (%s)",
                        override_names[other->override])
            : row->bottleneck < 0
            ? xstrdup("its traffic is not known yet")
            : xasprintf("it needs %.1f s of %s, weight %g", row->remaining,
                        rows->ports[row->bottleneck], row->weight));
}

void
decide_moves_log(const struct decide_rows *rows, const int *old_ranks,
                 struct decision_log *log)
{
    for (size_t k = 0; k < rows->n_stages; k++) {
        const struct stage_row *row = &rows->stages[k];
        int behind = overtaken(rows, old_ranks, k);
        char *name, *other, *why;

        if (old_ranks[k] >= 0 && behind < 0) {
            continue;
        }
        name = stage_name(row);
        why = reason(rows, row, behind >= 0 ? &rows->stages[behind] : NULL);
        other = behind >= 0 ? stage_name(&rows->stages[behind]) : NULL;
        decision_log_append(log, DECISION_ORDER, name, program_name,
                            "rank %"PRIuSIZE" of %"PRIuSIZE", %s%s: %s", k,
                            rows->n_stages, other ? "now before " : "new",
                            other ? other : "", why);
        free(other);
        free(why);
        free(name);
    }
}
