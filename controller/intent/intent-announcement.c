/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-announcement.h"

#include <stdlib.h>

#include "util.h"
#include "wire/intent-idl.h"

/* Returns NULL if 'stage' is a first one. */
static const struct intentrec_stage *
stage_before(const struct intentrec_cojob *cojob,
             const struct intentrec_stage *stage)
{
    const struct intentrec_stage *before = NULL;

    for (size_t i = 0; i < cojob->n_stages; i++) {
        const struct intentrec_stage *s = cojob->stages[i];

        if (s->rung < stage->rung && s->ended && s->ended <= stage->began
            && (!before || s->rung > before->rung)) {
            before = s;
        }
    }
    return before;
}

/* Returns the iterations that the jobs of 'stage' do in it.  Either all of
 * them were in the stage 'before', or none. */
static double
own_iterations(const struct intentrec_stage *stage,
               const struct intentrec_stage *before)
{
    int64_t each = stage->iterations;

    for (size_t i = 0; stage->n_jobs && i < before->n_jobs; i++) {
        if (before->jobs[i] == stage->jobs[0]) {
            each = MAX(stage->iterations - before->iterations, 0);
        }
    }
    return (double) each * stage->n_jobs;
}

size_t
intent_later_rungs(const struct intentrec_stage *stage,
                   struct announced_rung **rungsp)
{
    size_t n = stage->n_rungs && !(stage->eta > 0) ? stage->n_rungs - 1 : 0;
    struct announced_rung *rungs = xcalloc(MAX(n, 1), sizeof *rungs);

    for (size_t i = 0; i < n; i++) {
        rungs[i] = (struct announced_rung){
            .iterations = stage->key_rungs[i + 1] - stage->key_rungs[i],
            .n_jobs = stage->value_rungs[i],
        };
    }
    *rungsp = rungs;
    return n;
}

static double
later_iterations(const struct intentrec_stage *stage)
{
    struct announced_rung *rungs;
    size_t n = intent_later_rungs(stage, &rungs);
    double later = announced_iterations(rungs, n);

    free(rungs);
    return later;
}

struct announcement
intent_announcement(const struct intentrec_cojob *cojob,
                    const struct intentrec_stage *stage)
{
    const struct intentrec_stage *before =
        stage->eta > 0 ? NULL : stage_before(cojob, stage);
    struct announcement a;

    if (before) {
        a = intent_announcement(cojob, before);
        announcement_next(&a, own_iterations(stage, before),
                          later_iterations(stage));
    } else {
        announcement_init(&a, later_iterations(stage));
    }
    return a;
}
