/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-gc.h"

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/intent/intent-db.h"
#include "wire/intent-idl.h"
#include "controller/model/inactive.h"
#include "util.h"

struct ended {
    const struct intentrec_cojob *row;
    int64_t at;                 /* Epoch ms. */
};

/* When the last of 'row' ended, of what is known to have. */
static int64_t
end_of(const struct intentrec_cojob *row)
{
    int64_t at = row->began;

    for (size_t i = 0; i < row->n_jobs; i++) {
        at = MAX(at, row->jobs[i]->ended);
    }
    for (size_t i = 0; i < row->n_stages; i++) {
        at = MAX(at, row->stages[i]->ended);
    }
    return at;
}

static int
compare_ends(const void *a_, const void *b_)
{
    const struct ended *a = a_, *b = b_;

    return a->at > b->at ? -1 : a->at < b->at;
}

static void
remove_ended(const struct ovsdb_idl *idl, int64_t now)
{
    const struct intentrec_cojob *row;
    struct ended *ended = NULL;
    size_t n = 0, allocated = 0;

    INTENTREC_COJOB_FOR_EACH (row, idl) {
        if (!strcmp(row->state, "done")) {
            if (n >= allocated) {
                ended = x2nrealloc(ended, &allocated, sizeof *ended);
            }
            ended[n++] = (struct ended) { row, end_of(row) };
        }
    }
    if (n) {
        qsort(ended, n, sizeof *ended, compare_ends);
    }
    for (size_t i = 0; i < n; i++) {
        if (i >= INTENT_GC_MAX || now > ended[i].at + INTENT_GC_MS) {
            intentrec_cojob_delete(ended[i].row);
        }
    }
    free(ended);
}

static const struct stage *
find_stage(const struct cluster *c, const struct intentrec_cojob *cojob_row,
           const struct intentrec_stage *row)
{
    const struct cojob *cojob = shash_find_data(&c->cojobs, cojob_row->name);
    const struct stage *stage;

    if (cojob) {
        LIST_FOR_EACH (stage, node, &cojob->stages) {
            if (stage->rung == row->rung && stage->began == row->began) {
                return stage;
            }
        }
    }
    return NULL;
}

static void
end_inactive(struct intent_db *idb, const struct cluster *c,
           const struct intentrec_cojob *cojob, int64_t now)
{
    for (size_t i = 0; i < cojob->n_stages; i++) {
        const struct intentrec_stage *row = cojob->stages[i];
        const struct stage *stage;

        if (strcmp(row->state, "running")) {
            continue;
        }
        stage = find_stage(c, cojob, row);
        if (stage && stage->inactive) {
            char *name = xasprintf("%s/%d", stage->cojob_name, stage->rung);

            intentrec_stage_set_state(row, "done");
            intentrec_stage_set_ended(row, now);
            intent_db_event(idb, DECISION_STAGE, name, "stage-silent",
                            "none of its %"PRIuSIZE" jobs has had a process "
                            "for %d s", stage->n_jobs, INACTIVE_MS / 1000);
            free(name);
        }
    }
}

static void
end_cojob(struct intent_db *idb, const struct intentrec_cojob *row,
          int64_t now)
{
    for (size_t i = 0; i < row->n_jobs; i++) {
        if (!strcmp(row->jobs[i]->state, "running")) {
            intentrec_job_set_state(row->jobs[i], "failed");
            intentrec_job_set_ended(row->jobs[i], now);
        }
    }
    intentrec_cojob_set_state(row, "done");
    intent_db_event(idb, DECISION_STAGE, row->name, "cojob-silent",
                    "neither a stage nor a process for %d s",
                    INACTIVE_COJOB_MS / 1000);
}

void
intent_gc(struct intent_db *idb, const struct ovsdb_idl *idl,
            const struct cluster *c, int64_t now)
{
    const struct intentrec_cojob *row;

    INTENTREC_COJOB_FOR_EACH (row, idl) {
        const struct cojob *cojob = shash_find_data(&c->cojobs, row->name);

        if (!strcmp(row->state, "running")) {
            end_inactive(idb, c, row, now);
            if (cojob && cojob->inactive) {
                end_cojob(idb, row, now);
            }
        }
    }
    remove_ended(idl, now);
}
