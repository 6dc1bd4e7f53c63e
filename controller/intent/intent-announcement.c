/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-announcement.h"

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

struct announcement
intent_announcement(const struct intentrec_cojob *cojob,
                    const struct intentrec_stage *stage)
{
    const struct intentrec_stage *before = stage_before(cojob, stage);
    struct announcement a;

    if (before) {
        a = intent_announcement(cojob, before);
        announcement_next(&a, own_iterations(stage, before),
                          stage->later_iterations);
    } else {
        announcement_init(&a, stage->later_iterations);
    }
    return a;
}
