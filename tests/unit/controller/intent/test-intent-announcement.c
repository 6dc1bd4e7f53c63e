/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdint.h>

#include "controller/intent/intent-announcement.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/intent-idl.h"

/* Three jobs until iteration 30, one of them until 80, and three others until
 * 20 while that one runs. */
struct world {
    struct intentrec_job rows[6];
    struct intentrec_job *jobs[6];
    struct intentrec_stage first, second, other;
    struct intentrec_stage *stages[3];
    struct intentrec_cojob cojob;
};

static int
set_up(void **state)
{
    static struct world w;

    w = (struct world) {
        .first = {
            .rung = 0, .began = 1000, .ended = 2000, .iterations = 30,
            .jobs = w.jobs, .n_jobs = 3,
        },
        .second = {
            .rung = 1, .began = 2000, .iterations = 80,
            .jobs = &w.jobs[2], .n_jobs = 1,
        },
        .other = {
            .rung = 2, .began = 3000, .iterations = 20,
            .jobs = &w.jobs[3], .n_jobs = 3,
        },
        .stages = { &w.other, &w.second, &w.first },
        .cojob = { .stages = w.stages, .n_stages = 3 },
    };
    for (size_t i = 0; i < ARRAY_SIZE(w.jobs); i++) {
        w.jobs[i] = &w.rows[i];
    }
    *state = &w;
    return 0;
}

#define STAGE_TEST(NAME) UNIT_TEST_GIVEN(NAME, set_up, NULL, struct world *w)

/* Announces a rung after 'stage', in which 'keep' jobs go on until
 * 'iterations'. */
static void
announce(struct intentrec_stage *stage, int64_t iterations, int64_t keep)
{
    static int64_t keys[2][2], values[2][2];
    int i = stage->rung;

    keys[i][0] = stage->iterations;
    keys[i][1] = iterations;
    values[i][0] = keep;
    values[i][1] = 1;
    stage->key_rungs = keys[i];
    stage->value_rungs = values[i];
    stage->n_rungs = 2;
}

STAGE_TEST(a_stage_that_was_not_announced_was_hidden)
{
    struct announcement a = intent_announcement(&w->cojob, &w->second);

    assert_float_equal(a.hidden, 50, 0);
    assert_float_equal(a.after_first, 50, 0);
    announce(&w->first, 80, 1);
    assert_float_equal(intent_announcement(&w->cojob, &w->second).hidden, 0,
                       0);
    announce(&w->second, 87, 1);
    a = intent_announcement(&w->cojob, &w->second);
    assert_float_equal(a.hidden, 7, 0);
    assert_float_equal(a.later, 7, 0);
}

STAGE_TEST(a_first_stage_hides_nothing)
{
    struct announcement a;

    announce(&w->first, 40, 1);
    a = intent_announcement(&w->cojob, &w->first);
    assert_float_equal(a.hidden, 0, 0);
    assert_float_equal(a.later, 10, 0);
}

/* The stage that is still running is not the one before. */
STAGE_TEST(other_jobs_do_all_of_their_iterations)
{
    assert_float_equal(intent_announcement(&w->cojob, &w->other).hidden, 60,
                       0);
    announce(&w->first, 50, 3);
    assert_float_equal(intent_announcement(&w->cojob, &w->other).hidden, 0,
                       0);
    w->first.ended = 0;
    assert_float_equal(intent_announcement(&w->cojob, &w->other).after_first,
                       0, 0);
}
