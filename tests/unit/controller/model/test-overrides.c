/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>

#include "controller/decide/decide-rows.h"
#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "controller/model/overrides.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

/* Cojobs "a", "b", "c", each with one stage of one job "j" between the same
 * two hosts; "a" needs least. */
struct fixture {
    struct cluster *c;
    struct decide *d;
    struct policy *policy;
    struct overrides o;
    long long now;              /* time_msec() of the next decision. */
    int n_ran_out;
};

static void
give(struct fixture *f)
{
    cluster_intent_begin(f->c);
    for (int i = 0; i < 3; i++) {
        char name[] = { 'a' + i, '\0' };
        struct cojob *cojob = cluster_put_cojob(f->c, name, 1, true);
        struct job *job = cojob_put_job(f->c, cojob, "j", true, 1000,
                                        125000);

        job_put_worker(f->c, job, "h0", ROLE_WORKER);
        stage_put_job(cojob_put_stage(f->c, cojob, 0, 1000 + i, 0, 100 << i),
                      job);
    }
    cluster_intent_end(f->c);
}

static void
set_order(struct fixture *f, const char *order)
{
    char *text = xasprintf("{\"name\": \"p\", \"order\": \"%s\","
                           " \"retag_ms\": 0, \"aging_slowdown\": 0}",
                           order);

    policy_destroy(f->policy);
    assert_null(policy_from_string("p", text, &f->policy));
    decide_set_policy(f->d, f->policy);
    free(text);
}

FIXTURE_SET_UP
{
    f->c = cluster_create();
    f->d = decide_create(f->c, NULL);
    f->now = 1000;
    overrides_init(&f->o);
    set_order(f, "stage");
    give(f);
}

FIXTURE_TEAR_DOWN
{
    decide_destroy(f->d);
    overrides_uninit(&f->o);
    cluster_destroy(f->c);
    policy_destroy(f->policy);
}

static void
count_run_out(const struct override *ov OVS_UNUSED, void *f_)
{
    struct fixture *f = f_;

    f->n_ran_out++;
}

/* An instant 'MS' after the start of both clocks. */
#define AT(MS) (&(struct instant) { MS, MS })

/* Lets everything take effect that holds at 'now' and makes an order. */
static void
decide_at(struct fixture *f, const struct instant *now)
{
    overrides_run(&f->o, now, count_run_out, f);
    overrides_apply(&f->o, f->c);
    decide_touch(f->d);
    f->now += 1000;
    assert_true(decide_run(f->d, f->now));
}

/* The jobs by rank, such as "abc". */
static const char *
ranks(struct fixture *f)
{
    static char names[8];
    const struct decide_rows *rows = decide_last(f->d);
    size_t n;

    for (n = 0; n < rows->n_jobs && n < sizeof names - 1; n++) {
        names[n] = rows->jobs[n].name[0];
    }
    names[n] = '\0';
    return names;
}

static int
level(struct fixture *f, const char *job)
{
    const struct job *j = shash_find_data(&f->c->jobs, job);

    return j->level;
}

static int64_t
add(struct fixture *f, enum override_kind kind, const char *target,
    int64_t for_ms)
{
    return overrides_add(&f->o, kind, target, "eva", "why not", for_ms,
                         AT(5000));
}

FIXTURE_TEST(what_is_pinned_goes_first_until_undone)
{
    int64_t id;

    decide_at(f, AT(5000));
    assert_string_equal(ranks(f), "abc");
    id = add(f, OVERRIDE_PIN, "c/0", 0);
    decide_at(f, AT(5000));
    assert_string_equal(ranks(f), "cab");
    assert_int_equal(level(f, "c/j"), 0);
    assert_true(level(f, "a/j") > 0);
    assert_true(overrides_undo(&f->o, id, AT(6000)));
    assert_false(overrides_undo(&f->o, id, AT(6000)));
    decide_at(f, AT(6000));
    assert_string_equal(ranks(f), "abc");
    assert_int_equal(level(f, "a/j"), 0);
}

FIXTURE_TEST(what_is_paused_goes_last_at_the_last_level)
{
    add(f, OVERRIDE_PAUSE, "a", 0);
    decide_at(f, AT(5000));
    assert_string_equal(ranks(f), "bca");
    assert_int_equal(level(f, "a/j"), f->policy->n_levels - 1);
    assert_int_equal(level(f, "b/j"), 0);
}

FIXTURE_TEST(what_is_excluded_is_in_nobodys_way)
{
    const struct job *job = shash_find_data(&f->c->jobs, "a/j");

    add(f, OVERRIDE_EXCLUDE, "a/j", 0);
    add(f, OVERRIDE_PAUSE, "b/j", 0);
    decide_at(f, AT(5000));
    assert_string_equal(ranks(f), "cba");
    assert_int_equal(job->override, OVERRIDE_EXCLUDE);
}

/* Orders of jobs, of exchanges, by levels alone, and none at all. */
FIXTURE_TEST(every_order_can_be_overridden)
{
    static const char *const orders[] = {
        "stage", "sincronia", "sebf",    "fifo",  "tcf",  "intensity",
        "las",   "dclas",     "fifo-lm", "early", "fair",
    };

    add(f, OVERRIDE_PIN, "c/j", 0);
    add(f, OVERRIDE_PAUSE, "a", 0);
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        set_order(f, orders[i]);
        decide_at(f, AT(5000));
        if (level(f, "c/j") || level(f, "b/j") < 1
            || level(f, "a/j") != f->policy->n_levels - 1) {
            fail_msg("%s: levels %d %d %d", orders[i], level(f, "a/j"),
                     level(f, "b/j"), level(f, "c/j"));
        }
    }
}

FIXTURE_TEST(time_ends_an_override)
{
    add(f, OVERRIDE_PIN, "c", 1000);
    decide_at(f, AT(5999));
    assert_string_equal(ranks(f), "cab");
    assert_int_equal(f->n_ran_out, 0);
    decide_at(f, AT(6000));
    assert_string_equal(ranks(f), "abc");
    assert_int_equal(f->n_ran_out, 1);
}

FIXTURE_TEST(the_closest_target_counts_and_the_last_word)
{
    const struct job *job = shash_find_data(&f->c->jobs, "c/j");

    add(f, OVERRIDE_PIN, "c/j", 0);
    add(f, OVERRIDE_PAUSE, "c", 0);
    overrides_apply(&f->o, f->c);
    assert_int_equal(job->override, OVERRIDE_PIN);
    assert_int_equal(job->override_id, 1);
    add(f, OVERRIDE_EXCLUDE, "c/j", 0);
    overrides_apply(&f->o, f->c);
    assert_int_equal(job->override, OVERRIDE_EXCLUDE);
    assert_false(overrides_undo(&f->o, 1, AT(6000)));   /* Replaced. */
    assert_true(overrides_undo(&f->o, 0, AT(6000)));    /* The last. */
    overrides_apply(&f->o, f->c);
    assert_int_equal(job->override, OVERRIDE_PAUSE);
}

FIXTURE_TEST(what_cannot_be_is_refused)
{
    static const struct {
        enum override_kind kind;
        const char *target, *reason;
        int64_t for_ms;
        const char *error;
    } cases[] = {
        { OVERRIDE_PIN, "x", "", 0,
          "x: no such thing; expected COJOB/JOB, COJOB/RUNG "
          "of a running stage, or COJOB" },
        { OVERRIDE_PIN, "a/1", "", 0,
          "a/1: no such thing; expected COJOB/JOB, "
          "COJOB/RUNG of a running stage, or COJOB" },
        { OVERRIDE_OBSERVE, "a", "", 0,
          "a: no such thing; expected COJOB/JOB, "
          "COJOB/RUNG of a running stage, or COJOB" },
        { OVERRIDE_PIN, "a", "two\nlines", 0,
          "reason: too long or not "
          "printable; expected up to 200 characters of a line" },
        { OVERRIDE_PIN, "a", "", -1,
          "time: -1 ms; expected 0 (no end) to a year" },
        { OVERRIDE_PIN, "a/0", "", 0, NULL },
        { OVERRIDE_PIN, "a/j", "", 60000, NULL },
        { OVERRIDE_OBSERVE, "", "gr\303\274n", 0, NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *error = override_check(cases[i].kind, cases[i].target,
                                     cases[i].reason, cases[i].for_ms, f->c);

        if (cases[i].error) {
            assert_non_null(error);
            assert_string_equal(error, cases[i].error);
        } else {
            assert_null(error);
        }
        free(error);
    }
}

/* What the database has and what is not there yet. */
FIXTURE_TEST(rows_come_and_go)
{
    struct override row = {
        .id = 7, .kind = OVERRIDE_PIN, .target = CONST_CAST(char *, "c"),
        .actor = CONST_CAST(char *, "max"), .reason = CONST_CAST(char *, ""),
        .at = 1,
    };

    overrides_begin_rows(&f->o, AT(6000));
    overrides_put_row(&f->o, &row);
    overrides_end_rows(&f->o);
    assert_int_equal(add(f, OVERRIDE_PAUSE, "a", 0), 8);
    assert_string_equal(overrides_find(&f->o, 7)->actor, "max");

    /* A row is older than what was done here, and does not take it back. */
    assert_true(overrides_undo(&f->o, 7, AT(6000)));
    overrides_begin_rows(&f->o, AT(6000));
    overrides_put_row(&f->o, &row);
    overrides_end_rows(&f->o);
    assert_int_equal(overrides_find(&f->o, 7)->ended, 6000);
    assert_false(overrides_find(&f->o, 7)->stored);
    assert_false(overrides_find(&f->o, 8)->stored);

    /* Another one leads now. */
    overrides_forget_unstored(&f->o);
    assert_null(overrides_find(&f->o, 8));
    row.ended = 6000;
    overrides_begin_rows(&f->o, AT(6000));
    overrides_put_row(&f->o, &row);
    overrides_end_rows(&f->o);
    assert_true(overrides_find(&f->o, 7)->stored);
    overrides_begin_rows(&f->o, AT(6000));
    overrides_end_rows(&f->o);
    assert_null(overrides_find(&f->o, 7));
}

FIXTURE_TEST(old_overrides_are_deleted_except_the_largest_number)
{
    const struct override ended = { .id = 1, .ended = 9, .end_ms = 1000 };
    const struct override in_force = { .id = 1 };
    const long long old = ended.end_ms + OVERRIDES_KEEP_MS + 1;

    assert_true(override_is_expired(&ended, 2, old));
    assert_false(override_is_expired(&ended, 2, old - 1));
    assert_false(override_is_expired(&ended, 1, old));
    assert_false(override_is_expired(&in_force, 2, old));
}

#define HOUR_MS 3600000LL

/* An override of 1 s, as its own controller, a standby and a controller that
 * starts later see it, after the wall clock was set by hours. */
FIXTURE_TEST(setting_the_clock_neither_ends_nor_extends_an_override)
{
    static const int64_t steps[] = { 2 * HOUR_MS, -2 * HOUR_MS };
    struct override row = {
        .id = 1, .kind = OVERRIDE_PIN, .target = CONST_CAST(char *, "c"),
        .actor = CONST_CAST(char *, "max"), .reason = CONST_CAST(char *, ""),
    };

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        const int64_t wall = 10 * HOUR_MS, set = wall + steps[i];

        for (int role = 0; role < 3; role++) {
            overrides_uninit(&f->o);
            f->o = (struct overrides) { .known = false };
            overrides_init(&f->o);
            f->n_ran_out = 0;
            row.at = role < 2 ? wall : set;
            row.until = row.at + 1000;
            if (role == 0) {
                overrides_add(&f->o, OVERRIDE_PIN, "c", "max", "", 1000,
                              &(struct instant) { wall, 5000 });
            } else if (role == 1) {
                overrides_begin_rows(&f->o, &(struct instant) { 0, 4000 });
                overrides_end_rows(&f->o);
                overrides_begin_rows(&f->o, &(struct instant) { set, 5000 });
                overrides_put_row(&f->o, &row);
                overrides_end_rows(&f->o);
            } else {
                overrides_begin_rows(&f->o, &(struct instant) { set, 5000 });
                overrides_put_row(&f->o, &row);
                overrides_end_rows(&f->o);
            }
            overrides_run(&f->o, &(struct instant) { set + 999, 5999 },
                          count_run_out, f);
            assert_int_equal(f->n_ran_out, 0);
            overrides_run(&f->o, &(struct instant) { set + 1000, 6000 },
                          count_run_out, f);
            assert_int_equal(f->n_ran_out, 1);
        }
    }
}

/* Everything that writes or reads the name of a stage agrees about it. */
FIXTURE_TEST(the_longest_name_of_a_stage_is_the_same_everywhere)
{
    static const char cojob_name[] = "a234567890123456789012345678901";
    static const char expected[] = "a234567890123456789012345678901/1000";
    struct cojob *cojob;
    struct stage *stage;
    char *error;

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, cojob_name, 1, true);
    stage = cojob_put_stage(f->c, cojob, 1000, 1000, 0, 100);
    stage_put_job(stage, cojob_put_job(f->c, cojob, "j", true, 1000, 125000));
    cluster_intent_end(f->c);
    assert_is(stage_name(stage), expected);
    assert_null(override_check(OVERRIDE_PIN, expected, "", 0, f->c));
    error = override_check(OVERRIDE_PIN, "a234567890123456789012345678901/100",
                           "", 0, f->c);
    assert_non_null(error);
    free(error);
    assert_true(overrides_add(&f->o, OVERRIDE_PIN, expected, "eva", "", 0,
                              AT(1000)) > 0);
    overrides_apply(&f->o, f->c);
    assert_int_equal(stage->override, OVERRIDE_PIN);
}
