/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-gc.h"

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/model/inactive.h"
#include "wire/intent-idl.h"
#include "util.h"

int64_t
intent_gc_end_time(const struct intentrec_cojob *row)
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
    const struct intent_gc_cojob *a = a_, *b = b_;

    return a->ended > b->ended ? -1 : a->ended < b->ended;
}

size_t
intent_gc_keep(struct intent_gc_cojob *cojobs, size_t n, int64_t now)
{
    size_t keep = 0;

    if (n) {
        qsort(cojobs, n, sizeof *cojobs, compare_ends);
    }
    while (keep < MIN(n, INTENT_GC_MAX)
           && now <= cojobs[keep].ended + INTENT_GC_MS) {
        keep++;
    }
    return keep;
}

static void
delete_finished(const struct ovsdb_idl *idl, int64_t now)
{
    const struct intentrec_cojob *row;
    struct intent_gc_cojob *cojobs = NULL;
    size_t n = 0, allocated = 0;

    INTENTREC_COJOB_FOR_EACH (row, idl) {
        if (!strcmp(row->state, "done")) {
            if (n >= allocated) {
                cojobs = x2nrealloc(cojobs, &allocated, sizeof *cojobs);
            }
            cojobs[n++] = (struct intent_gc_cojob) {
                row, intent_gc_end_time(row),
            };
        }
    }
    for (size_t i = intent_gc_keep(cojobs, n, now); i < n; i++) {
        intentrec_cojob_delete(cojobs[i].row);
    }
    free(cojobs);
}

static void
end_inactive_stages(const struct cojob *cojob,
                    const struct intentrec_cojob *row, int64_t now,
                    intent_gc_event_func *event, void *aux)
{
    for (size_t i = 0; i < row->n_stages; i++) {
        const struct intentrec_stage *s = row->stages[i];
        const struct stage *stage = cojob_find_stage(cojob, s->rung,
                                                     s->began);

        if (!strcmp(s->state, "running") && stage && stage->inactive) {
            char *name = stage_name(stage);

            intentrec_stage_set_state(s, "done");
            intentrec_stage_set_ended(s, now);
            event(aux, name, "stage-silent",
                  xasprintf("none of its %"PRIuSIZE" jobs has had a process "
                            "for %d s", stage->n_jobs, INACTIVE_MS / 1000));
            free(name);
        }
    }
}

static void
end_cojob(const struct intentrec_cojob *row, int64_t now)
{
    for (size_t i = 0; i < row->n_jobs; i++) {
        if (!strcmp(row->jobs[i]->state, "running")) {
            intentrec_job_set_state(row->jobs[i], "failed");
            intentrec_job_set_ended(row->jobs[i], now);
        }
    }
    intentrec_cojob_set_state(row, "done");
}

static int
compare_events(const void *a_, const void *b_)
{
    const struct intentrec_event *a = *(struct intentrec_event *const *) a_;
    const struct intentrec_event *b = *(struct intentrec_event *const *) b_;

    return a->at < b->at ? -1 : a->at > b->at;
}

/* Deletes the oldest events if there are too many, down to 90 %. */
static void
delete_events(const struct ovsdb_idl *idl)
{
    const struct intentrec_event *row, **rows;
    size_t n = 0, i = 0;

    INTENTREC_EVENT_FOR_EACH (row, idl) {
        n++;
    }
    if (n <= INTENT_GC_EVENTS) {
        return;
    }
    rows = xcalloc(n, sizeof *rows);
    INTENTREC_EVENT_FOR_EACH (row, idl) {
        rows[i++] = row;
    }
    qsort(rows, n, sizeof *rows, compare_events);
    for (i = 0; i < n - INTENT_GC_EVENTS * 9 / 10; i++) {
        intentrec_event_delete(rows[i]);
    }
    free(rows);
}

void
intent_gc(const struct ovsdb_idl *idl, const struct cluster *c, int64_t now,
          intent_gc_event_func *event, void *aux)
{
    const struct intentrec_cojob *row;

    INTENTREC_COJOB_FOR_EACH (row, idl) {
        const struct cojob *cojob = shash_find_data(&c->cojobs, row->name);

        if (!cojob || strcmp(row->state, "running")) {
            continue;
        }
        end_inactive_stages(cojob, row, now, event, aux);
        if (cojob->inactive) {
            end_cojob(row, now);
            event(aux, row->name, "cojob-silent",
                  xasprintf("neither a stage nor a process for %d s",
                            INACTIVE_COJOB_MS / 1000));
        }
    }
    delete_finished(idl, now);
    delete_events(idl);
}
