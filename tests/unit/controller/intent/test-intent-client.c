/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/user-name.h"
#include "controller/intent/intent-client.h"
#include "controller/intent/intent-edit.h"
#include "tests/unit/controller/ovsdb/test-server.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static int
set_up(void **state)
{
    struct test_server *s = xmalloc(sizeof *s);

    test_server_init(s, &database_intent);
    *state = s;
    return 0;
}

static int
tear_down(void **state)
{
    test_server_uninit(*state);
    free(*state);
    return 0;
}

#define SERVER_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, set_up, tear_down, struct test_server *f)

static const char *const jobs[] = { "a", "b", "a" };
static const struct intent_worker workers[] = {
    { "h0", "worker", 0 }, { "h1", "server", 0 },
};

static const struct intent_edit cojob_begin = {
    .kind = INTENT_COJOB_BEGIN, .cojob = "asha", .weight = 1,
};
static const struct intent_edit job_begin = {
    .kind = INTENT_JOB_BEGIN, .cojob = "asha", .job = "a",
    .workers = workers, .n = 2, .model_bytes = 100,
};
static const struct search_rung rungs[] = { { 10, 2 }, { 30, 1 } };
static const struct intent_edit stage_begin = {
    .kind = INTENT_STAGE_BEGIN,
    .cojob = "asha",
    .rung = 1,
    .rungs = rungs,
    .n_rungs = 2,
    .jobs = jobs,
    .n = 3,
};
static const struct search_rung trial_rungs[] = { { 10, 0 }, { 30, 0 } };
static const struct intent_edit trials_begin = {
    .kind = INTENT_STAGE_BEGIN,
    .cojob = "asha",
    .rung = 2,
    .rungs = trial_rungs,
    .n_rungs = 2,
    .jobs = jobs,
    .n = 3,
    .eta = 3,
    .to_come = 7,
    .trials = "promising",
};
static const struct intent_edit stage_end = {
    .kind = INTENT_STAGE_END, .cojob = "asha", .rung = 1,
};
static const struct intent_edit job_end = {
    .kind = INTENT_JOB_END, .cojob = "asha", .job = "b", .outcome = "failed",
};
static const struct intent_edit cojob_end = {
    .kind = INTENT_COJOB_END, .cojob = "asha",
};

SERVER_TEST(each_kind_of_edit_is_written_or_refused)
{
    struct intent_edit trials_gone = trials_begin;
    const struct intent_edit *const edits[] = {
        &cojob_begin, &cojob_begin, &job_begin, &job_begin,    &stage_begin,
        &stage_begin, &stage_end,   &stage_end, &trials_begin, &trials_gone,
        &job_end,     &cojob_end,   &cojob_end,
    };
    struct intent_edit too_many = stage_begin, trials = stage_begin;
    enum intent_result result;
    struct intent_client *ic;

    if (!f->file) {
        skip();
    }
    trials_gone.n = trials_gone.to_come = 0;
    test_server_start(f);
    ic = intent_client_create(f->remote, 5000);
    assert_says(intent_client_write(ic, &stage_begin, &result),
                "cojob \"asha\": unknown, it has not begun");
    assert_int_equal(result, INTENT_REFUSED);
    for (size_t i = 0; i < ARRAY_SIZE(edits); i++) {
        assert_null(intent_client_write(ic, edits[i], NULL));
    }
    assert_says(intent_client_write(ic, &job_begin, NULL), "it has not begun");
    too_many.n = 1;
    assert_says(intent_client_write(ic, &too_many, &result),
                "rungs: keep 2 of 1 jobs; expected 1 to 1");
    assert_int_equal(result, INTENT_INVALID);
    too_many.rungs = (struct search_rung[]){ { 10, 1 }, { 10, 1 } };
    assert_says(intent_client_write(ic, &too_many, &result),
                "rungs: 10 iterations after 10; expected at least 11");
    trials.rungs = rungs;
    trials.eta = 3;
    assert_says(intent_client_write(ic, &trials, NULL),
                "rungs: keep 2 of trials that are judged one by one; expected "
                "none, by eta");
    assert_says(intent_client_write(ic,
                                    &(struct intent_edit){
                                        .kind = INTENT_JOB_END,
                                        .cojob = "asha",
                                        .job = "c",
                                        .outcome = "done",
                                    },
                                    NULL),
                "job \"c\" is unknown");
    assert_says(intent_client_write(ic,
                                    &(struct intent_edit){
                                        .kind = INTENT_COJOB_BEGIN,
                                        .cojob = "a/b",
                                        .weight = 1,
                                    },
                                    &result),
                "not a name");
    assert_int_equal(result, INTENT_INVALID);
    intent_client_destroy(ic);
}

/* Returns true if the database has cojob "asha" with 'owner' of number 'uid',
 * 0 for none. */
static bool
is_owner(const struct test_server *f, const char *owner, unsigned int uid)
{
    char *number = uid ? xasprintf("%u", uid) : xstrdup("\\[\\]");
    char *command = xasprintf(
        "ovsdb-client -f csv --no-headings dump %s Stagecoach_Intent Cojob "
        "name owner owner_uid | grep -qx 'asha,%s,%s'", f->remote, owner,
        number);
    int status = system(command);

    free(command);
    free(number);
    return !status;
}

SERVER_TEST(a_cojob_belongs_to_the_user_that_began_it)
{
    struct intent_edit anns = cojob_begin;
    struct intent_client *ic;
    char *user;

    if (!f->file) {
        skip();
    }
    user = user_name();
    anns.owner = "ann";
    anns.uid = 1000;
    setenv("USER", "mallory", true);
    test_server_start(f);
    ic = intent_client_create(f->remote, 5000);
    assert_null(intent_client_write(ic, &cojob_begin, NULL));
    assert_true(is_owner(f, user, user_id()));
    assert_null(intent_client_write(ic, &anns, NULL));
    assert_true(is_owner(f, user, user_id()));
    assert_null(intent_client_write(ic, &cojob_end, NULL));
    assert_null(intent_client_write(ic, &anns, NULL));
    assert_true(is_owner(f, "ann", 1000));
    anns.uid = 1001;
    assert_says(intent_client_write(ic, &anns, NULL),
                "cojob \"asha\": belongs to user 1000");
    assert_null(intent_client_write(ic, &cojob_end, NULL));
    assert_null(intent_client_write(ic, &anns, NULL));
    assert_true(is_owner(f, "ann", 1001));
    intent_client_destroy(ic);
    free(user);
}

/* Writes 'edit' as user 'owner' with number 'uid', 0 for none; expects the
 * message 'error', or success if that is null. */
static void
as_user(struct intent_client *ic, const struct intent_edit *edit,
        const char *owner, unsigned int uid, const char *error)
{
    struct intent_edit own = *edit;
    enum intent_result result;
    char *got;

    own.owner = owner;
    own.uid = uid;
    own.as_user = true;
    own.total = 2.5;
    got = intent_client_write(ic, &own, &result);
    assert_int_equal(result, error ? INTENT_FORBIDDEN : INTENT_WRITTEN);
    if (error) {
        assert_says(got, error);
    } else {
        assert_null(got);
    }
}

SERVER_TEST(a_user_changes_own_cojobs_up_to_a_sum_of_weights)
{
    static const struct intent_edit *const edits[] = {
        &cojob_begin, &job_begin, &stage_begin,
        &stage_end,   &job_end,   &cojob_end,
    };
    struct intent_edit other = cojob_begin, operators = cojob_begin;
    struct intent_client *ic;

    if (!f->file) {
        skip();
    }
    test_server_start(f);
    ic = intent_client_create(f->remote, 5000);
    as_user(ic, &cojob_begin, "ann", 1000, NULL);
    assert_true(is_owner(f, "ann", 1000));
    for (size_t i = 0; i < ARRAY_SIZE(edits); i++) {
        as_user(ic, edits[i], "mallory", 1001, "belongs to user 1000");
        as_user(ic, edits[i], "ann", 0, "belongs to user 1000");
    }

    other.cojob = "second";
    other.weight = 1.75;
    as_user(ic, &other, "ann", 1000,
            "weight 1.75 makes 2.75 of all running cojobs of ann; expected "
            "at most 2.5, the policy's /weights/total");
    as_user(ic, &other, "mallory", 1001, NULL);
    as_user(ic, &cojob_begin, "ann", 1000, NULL);
    as_user(ic, &cojob_end, "ann", 1000, NULL);
    other.cojob = "third";
    as_user(ic, &other, "ann", 1000, NULL);

    operators.owner = "root";
    assert_null(intent_client_write(ic, &operators, NULL));
    as_user(ic, &cojob_end, "ann", 1000, "belongs to root; expected this");
    as_user(ic, &cojob_end, "root", 0, NULL);
    intent_client_destroy(ic);
}

SERVER_TEST(a_client_without_database_gives_up_in_time)
{
    struct intent_client *ic = intent_client_create(f->remote, 50);
    enum intent_result result;

    assert_says(intent_client_write(ic, &cojob_begin, &result),
                "the intent database did not reply within 50 ms");
    assert_int_equal(result, INTENT_TIMED_OUT);
    assert_says(intent_client_write(ic, &cojob_begin, NULL), f->remote);
    intent_client_destroy(ic);
}

/* The stage is refused unless its cojob is written first. */
SERVER_TEST(announcements_of_an_outage_are_written_later_in_order)
{
    struct intent_client *ic;
    struct intent_edit copy;

    if (!f->file) {
        skip();
    }
    copy = intent_edit_clone(&stage_begin);
    ic = intent_client_create(f->remote, 100);
    intent_client_announce(ic, &cojob_begin);
    intent_client_announce(ic, &copy);
    intent_edit_uninit(&copy);
    intent_client_announce(ic, &(struct intent_edit) {
        .kind = INTENT_STAGE_END, .cojob = "asha", .rung = 7,   /* Refused. */
    });
    intent_client_announce(ic, &stage_end);
    test_server_start(f);
    intent_client_destroy(ic);

    ic = intent_client_create(f->remote, 5000);
    assert_null(intent_client_write(ic, &stage_end, NULL));
    assert_null(intent_client_write(ic, &job_end, NULL));
    intent_client_destroy(ic);
}

/* A search announces nothing for the length of a stage. */
SERVER_TEST(an_announcement_is_written_without_another_one)
{
    struct intent_client *ic, *other;

    if (!f->file) {
        skip();
    }
    ic = intent_client_create(f->remote, 100);
    intent_client_run(ic);
    intent_client_announce(ic, &cojob_begin);
    test_server_start(f);
    other = intent_client_create(f->remote, 100);
    for (int i = 0; i < 200; i++) {
        char *error = intent_client_write(other, &stage_begin, NULL);

        intent_client_run(ic);
        if (!error) {
            break;
        }
        free(error);
        assert_true(i < 199);
        usleep(50000);
    }
    intent_client_destroy(other);
    intent_client_destroy(ic);
}
