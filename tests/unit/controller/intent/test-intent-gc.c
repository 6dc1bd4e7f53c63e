/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>

#include "controller/intent/intent-db.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/intent-idl.h"

#define NOW INT64_C(1790000000000)

UNIT_TEST(the_last_job_or_stage_ends_a_cojob)
{
    struct intentrec_job job = { .ended = 20 };
    struct intentrec_stage first = { .ended = 30 }, second = { .ended = 0 };
    struct intentrec_job *jobs[] = { &job };
    struct intentrec_stage *stages[] = { &first, &second };
    struct intentrec_cojob row = { .began = 10 };

    assert_int_equal(intent_gc_end_time(&row), 10);
    row.jobs = jobs;
    row.n_jobs = 1;
    assert_int_equal(intent_gc_end_time(&row), 20);
    row.stages = stages;
    row.n_stages = 2;
    assert_int_equal(intent_gc_end_time(&row), 30);
}

UNIT_TEST(finished_cojobs_are_kept_for_a_while)
{
    struct intent_gc_cojob cojobs[] = {
        { NULL, NOW - INTENT_GC_MS - 1, 9 }, { NULL, NOW, 0 },
        { NULL, NOW - INTENT_GC_MS, 5 }, { NULL, NOW, 1 },
    };

    assert_int_equal(intent_gc_keep(cojobs, 4, NOW), 3);
    assert_true(cojobs[0].done_at == NOW && cojobs[0].ended == 1);
    assert_true(cojobs[1].done_at == NOW && cojobs[1].ended == 0);
    assert_true(cojobs[2].done_at == NOW - INTENT_GC_MS);
    assert_int_equal(intent_gc_keep(cojobs, 0, NOW), 0);
}

UNIT_TEST(the_oldest_of_too_many_cojobs_are_deleted)
{
    const size_t n = INTENT_GC_MAX + 2;
    struct intent_gc_cojob *cojobs = xcalloc(n, sizeof *cojobs);

    for (size_t i = 0; i < n; i++) {
        cojobs[i].done_at = NOW - n + i;
    }
    assert_int_equal(intent_gc_keep(cojobs, n, NOW), INTENT_GC_MAX);
    assert_true(cojobs[0].done_at == NOW - 1);
    assert_true(cojobs[INTENT_GC_MAX].done_at == NOW - (int64_t) n + 1);
    free(cojobs);
}
