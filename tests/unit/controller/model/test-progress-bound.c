/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>

#include "controller/model/progress-bound.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define BILLION 1000000000

/* A job that began at 1000 ms, in a stage to iteration 100, with iterations of
 * 1,000 bytes. */
struct fixture {
    struct progress_bound b;
    struct progress_bound_facts facts;
    int64_t now;
};

FIXTURE_SET_UP
{
    f->now = 1000;
    f->facts = (struct progress_bound_facts) {
        .target = 100, .per_iteration = 1000,
    };
    progress_bound_init(&f->b, f->now);
}

static int
tear_down(void **state)
{
    free(*state);
    return 0;
}

static bool
admits(struct fixture *f, int64_t iteration)
{
    return progress_bound_admits(&f->b, iteration, &f->facts, f->now);
}

FIXTURE_TEST(one_report_cannot_end_a_stage)
{
    assert_false(admits(f, BILLION));
    assert_true(admits(f, 1));
    assert_false(admits(f, BILLION));
    assert_false(admits(f, BILLION));
    assert_int_equal(f->b.n_refused, 1);        /* A repeated report. */
    assert_false(admits(f, BILLION + 1));
    assert_int_equal(f->b.n_refused, 2);
    assert_int_equal(f->b.refused, BILLION + 1);
    assert_true(admits(f, 2));
}

FIXTURE_TEST(iterations_follow_the_traffic)
{
    f->facts.seen = true;
    f->facts.bytes = 10000;
    assert_true(admits(f, 10));
    f->facts.bytes = 1000000; /* 1,000 iterations. */
    assert_false(admits(f, 10 + 4000 + PROGRESS_BOUND_SEEN + 1));
    assert_true(admits(f, 10 + 4000 + PROGRESS_BOUND_SEEN));

    /* The credit is used up, and grows slowly. */
    f->facts.bytes = 0;
    assert_false(admits(f, 4120));
    f->now += 1000;
    assert_true(admits(f, 4120));
    assert_false(admits(f, 4121));
    f->now += 1000 * 3600;
    assert_false(admits(f, 4120 + PROGRESS_BOUND_SEEN + 1));

    /* Iterations of unknown size. */
    f->facts.per_iteration = 0;
    f->facts.bytes = 1000 * PROGRESS_BOUND_BYTES;
    assert_true(admits(f, 4120 + PROGRESS_BOUND_SEEN + 1000));
}

FIXTURE_TEST(job_without_visible_traffic_has_a_pace)
{
    assert_true(admits(f, 0));
    assert_true(admits(f, PROGRESS_BOUND_UNSEEN));
    assert_false(admits(f, 2 * PROGRESS_BOUND_UNSEEN));
    f->now += 1000;
    assert_true(admits(f, 2 * PROGRESS_BOUND_UNSEEN));
    assert_false(admits(f, BILLION));
}

FIXTURE_TEST(job_may_resume)
{
    f->facts.target = 100000;
    assert_true(admits(f, 90000));
    assert_false(admits(f, 100000));
    assert_true(admits(f, 90001));

    /* In a stage that it joins later. */
    progress_bound_init(&f->b, f->now);
    f->facts.target = -1;
    assert_true(admits(f, 90000));

    /* A new controller sees a job that has gone beyond its stage. */
    progress_bound_init(&f->b, f->now - 60000);
    f->facts.target = 100;
    assert_true(admits(f, 60000));
}

FIXTURE_TEST(reports_after_a_gap_follow_the_pace)
{
    f->facts.seen = true;
    f->facts.bytes = 10000;
    assert_true(admits(f, 10));
    f->facts.bytes = 0;
    f->now += 100000;                   /* An agent was away for 100 s. */
    progress_bound_gap(&f->b, 0.1, f->now);
    assert_true(admits(f, 1010));
    assert_false(admits(f, BILLION));
}
