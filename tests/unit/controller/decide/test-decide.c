/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "policies/policy.h"
#include "tests/unit/controller/decide/decide-world.h"
#include "tests/unit/unit-test.h"
#include "util.h"

FIXTURE_TEST(the_smaller_stage_goes_first)
{
    give(f, "000", (int64_t[]) { 300, 100, 200 }, NULL);
    decides(f, 1000, "b/j -/0 c/j -/1 a/j 2/2");
}

FIXTURE_TEST(stages_that_share_no_port_share_a_level)
{
    give(f, "012", (int64_t[]) { 300, 100, 200 }, NULL);
    decides(f, 1000, "a/j -/0 b/j -/0 c/j -/0");
}

FIXTURE_TEST(fair_gives_every_job_level_0)
{
    decide_set_policy(f->d, f->fair);
    give(f, "000", (int64_t[]) { 300, 100, 200 }, NULL);
    decides(f, 1000, "a/j -/0 b/j -/0 c/j -/0");
}

FIXTURE_TEST(events_within_a_moment_make_one_order)
{
    assert_true(decide_run(f->d, 1000));
    give(f, "0", (int64_t[]) { 300 }, NULL);
    assert_false(decide_run(f->d, 1005));
    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    assert_false(decide_run(f->d, 1015));
    decides(f, 1025, "b/j -/0");
    assert_false(decide_run(f->d, 1050));
    assert_true(decide_run(f->d, 2100));        /* The refresh. */
}

FIXTURE_TEST(a_level_changes_once_in_retag_ms)
{
    give(f, "00", (int64_t[]) { 300, 200 }, NULL);
    decides(f, 1000, "a/j -/1");
    give(f, "00", (int64_t[]) { 100, 200 }, NULL);
    assert_false(decide_run(f->d, 1010));
    decides(f, 1030, "a/j 0");
    assert_int_equal(level(f, "a/j"), 1);       /* Not yet. */
    assert_false(decide_run(f->d, 1099));
    decides(f, 1100, "a/j -/0 b/j -/1");
}

FIXTURE_TEST(the_policy_says_who_weighs_more)
{
    static const struct {
        const char *weights, *owner;
        int rank;               /* Of "a", which is the larger. */
    } cases[] = {
        { "\"cojobs\": {\"a\": 4}", NULL, 0 },
        { "\"users\": {\"ann\": 4}", "ann", 0 },
        { "\"users\": {\"ann\": 4}", "bob", 1 },
        { "\"users\": {\"ann\": 4}", "", 1 },
        { "\"users\": {\"ann\": 4}, \"cojobs\": {\"a\": 0.5}", "ann", 1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *weights = xasprintf(", \"weights\": {%s}", cases[i].weights);

        set_order(f, "stage", weights);
        give(f, "00", (int64_t[]) { 300, 100 }, NULL);
        cojob_set_owner(f->c, shash_find_data(&f->c->cojobs, "a"),
                        cases[i].owner, 0);
        assert_true(decide_run(f->d, 10000 * (i + 1)));
        assert_int_equal(rank(f, "a/j"), cases[i].rank);
        free(weights);
    }
}

/* The third stage meets no other; "truncate" does not regard that. */
FIXTURE_TEST(the_policy_says_how_to_fold)
{
    set_order(f, "stage",
              ", \"levels\": {\"dscp\": [40, 24], \"fold\": \"truncate\"}");
    give(f, "001", (int64_t[]) { 1000, 1010, 2000 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(level(f, "a/j"), MIN(rank(f, "a/j"), 1));
    assert_int_equal(level(f, "b/j"), MIN(rank(f, "b/j"), 1));
    assert_int_equal(level(f, "c/j"), MIN(rank(f, "c/j"), 1));
    assert_int_equal(level(f, "a/j") + level(f, "b/j") + level(f, "c/j"), 2);
}

/* What a search tells of itself. */
struct news {
    const char *what;
    double weight;
    bool live, staged;
    int64_t model_bytes, iterations;
    int n_hosts;
    bool urgent;                /* It concerns a stage that runs. */
    const char *owner;
};

/* Gives cojob "a" with job "j" on 'n_hosts' hosts, and its stage. */
static void
give_news(struct fixture *f, const struct news *news)
{
    struct cojob *cojob;
    struct job *job;

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "a", news->weight, true);
    cojob_set_owner(f->c, cojob, news->owner, 0);
    job = cojob_put_job(f->c, cojob, "j", news->live, 1000,
                        news->model_bytes);
    for (int i = 0; i < news->n_hosts; i++) {
        char host[] = { 'h', '0' + i, '\0' };

        job_put_worker(f->c, job, host, ROLE_WORKER);
    }
    if (news->staged) {
        stage_put_job(cojob_put_stage(f->c, cojob, 0, f->began, 0,
                                      news->iterations), job);
    }
    cluster_intent_end(f->c);
}

FIXTURE_TEST(only_stages_that_run_are_in_a_hurry)
{
    static const struct news all[] = {
        { "a search and its job", 1, true, false, 1000, 0, 1, false },
        { "the job has another host", 1, true, false, 1000, 0, 2, false },
        { "its stage begins", 1, true, true, 1000, 50, 2, true },
        { "nothing", 1, true, true, 1000, 50, 2, false },
        { "a longer stage", 1, true, true, 1000, 60, 2, true },
        { "another weight", 2, true, true, 1000, 60, 2, true },
        { "another model", 2, true, true, 2000, 60, 2, true },
        { "another host", 2, true, true, 2000, 60, 3, true },
        { "a host less", 2, true, true, 2000, 60, 2, true },
        { "another owner", 2, true, true, 2000, 60, 2, true, "ann" },
        { "the job ends", 2, false, true, 2000, 60, 2, true },
        { "the stage goes", 2, false, false, 2000, 60, 2, true },
        { "the job begins again", 2, true, false, 2000, 60, 2, false },
    };
    long long now = 10000;

    assert_true(decide_run(f->d, now));
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        now += 400;
        give_news(f, &all[i]);
        assert_false(decide_is_settled(f->d));
        assert_false(decide_run(f->d, now));
        if (decide_run(f->d, now + 20) != all[i].urgent) {
            fail_msg("%s: %s", all[i].what, all[i].urgent
                     ? "no order at once" : "an order at once");
        }
        assert_true(all[i].urgent || decide_run(f->d, now + 250));
        assert_true(decide_is_settled(f->d));
    }
}

FIXTURE_TEST(what_is_in_no_hurry_waits_for_more_of_it)
{
    static const struct news job = {
        "a job", 1, true, false, 1000, 0, 1, false
    };

    set_order(f, "work", "");
    assert_true(decide_run(f->d, 1000));
    for (int ms = 0; ms < 1000; ms += 200) {
        give_news(f, &job);
        assert_false(decide_run(f->d, 1001 + ms));
    }
    assert_true(decide_run(f->d, 2001));
}
