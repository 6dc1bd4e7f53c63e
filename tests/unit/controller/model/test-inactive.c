/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/model/inactive.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define BEGAN INT64_C(1790000000000)

/* A stage of two jobs, "x" on h0 and "y" on h1, with connected agents. */
struct fixture {
    struct cluster *c;
    struct stage *stage;
    struct job_traffic *x, *y;
};

FIXTURE_SET_UP
{
    struct cojob *cojob;
    struct job *x, *y;

    f->c = cluster_create();
    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "a", 1, true);
    x = cojob_put_job(f->c, cojob, "x", true, BEGAN, 0);
    y = cojob_put_job(f->c, cojob, "y", true, BEGAN, 0);
    job_put_worker(f->c, x, "h0", ROLE_WORKER);
    job_put_worker(f->c, y, "h1", ROLE_WORKER);
    f->stage = cojob_put_stage(f->c, cojob, 0, BEGAN, 0, 100);
    stage_put_job(f->stage, x);
    stage_put_job(f->stage, y);
    cluster_intent_end(f->c);
    f->x = shash_find_data(&x->traffic, "h0");
    f->y = shash_find_data(&y->traffic, "h1");
    f->x->host->connected = f->y->host->connected = true;
}

FIXTURE_TEAR_DOWN
{
    cluster_destroy(f->c);
}

/* Returns true if the stage is inactive after 'ms', checked each second. */
static bool
is_inactive_after(struct fixture *f, int64_t from, int64_t ms)
{
    for (int64_t now = from; now <= from + ms; now += 1000) {
        inactive_run(f->c, now);
    }
    return f->stage->inactive;
}

FIXTURE_TEST(a_stage_without_processes_is_inactive)
{
    assert_false(is_inactive_after(f, BEGAN, 59000));
    assert_true(is_inactive_after(f, BEGAN + 60000, 0));
}

FIXTURE_TEST(one_job_with_a_process_is_enough)
{
    for (int64_t now = BEGAN; now < BEGAN + 200000; now += 1000) {
        f->y->at = now - 200;
        inactive_run(f->c, now);
        assert_false(f->stage->inactive);
    }
    assert_false(is_inactive_after(f, BEGAN + 200000, 60000));
    assert_true(is_inactive_after(f, BEGAN + 260000, 10000));
}

FIXTURE_TEST(a_disconnected_host_shows_nothing)
{
    f->x->host->connected = false;
    assert_false(is_inactive_after(f, BEGAN, 600000));
    f->x->host->connected = true;
    assert_false(is_inactive_after(f, BEGAN + 600000, 50000));
    assert_true(is_inactive_after(f, BEGAN + 650000, 20000));
}

FIXTURE_TEST(nothing_is_known_of_a_job_without_hosts)
{
    struct job *x = shash_find_data(&f->c->jobs, "a/x");

    shash_clear_free_data(&x->traffic);
    assert_false(is_inactive_after(f, BEGAN, 600000));
    x->live = false;
    assert_true(is_inactive_after(f, BEGAN + 600000, 60000));
}

/* Its next trial may begin soon. */
FIXTURE_TEST(a_search_that_judges_one_by_one_may_have_no_trial_for_a_while)
{
    static const int64_t rungs[] = { 10, 100 };

    stage_trials_set(&f->stage->trials, rungs, ARRAY_SIZE(rungs));
    f->stage->n_jobs = 0;
    assert_int_equal(stage_find_idle(f->stage, f->stage->known_at + 50000),
                     STAGE_BUSY);
    assert_false(is_inactive_after(f, BEGAN, 59000));
    assert_true(is_inactive_after(f, BEGAN + 60000, 0));
}

/* A mistyped name of "stage begin": no host has ever seen the job. */
FIXTURE_TEST(a_stage_that_no_process_joins_is_idle_after_a_grace_period)
{
    long long began = f->stage->known_at;
    struct job *x = shash_find_data(&f->c->jobs, "a/x");

    shash_clear_free_data(&x->traffic);
    assert_int_equal(stage_find_idle(f->stage, began + STAGE_JOIN_MS - 1),
                     STAGE_BUSY);
    assert_int_equal(stage_find_idle(f->stage, began + STAGE_JOIN_MS),
                     STAGE_NO_PROCESS);
    f->y->at = began + STAGE_JOIN_MS - 200;
    assert_int_equal(stage_find_idle(f->stage, began + STAGE_JOIN_MS),
                     STAGE_BUSY);
    f->y->at = 0;
    f->y->host->connected = false; /* Nothing is known of its jobs. */
    assert_int_equal(stage_find_idle(f->stage, began + STAGE_JOIN_MS),
                     STAGE_BUSY);
    f->y->host->connected = true;
    x->progress.last = 3; /* A REST client reported. */
    assert_int_equal(stage_find_idle(f->stage, began + STAGE_JOIN_MS),
                     STAGE_BUSY);
}

/* Only where iterations are known to send bytes does silence mean anything. */
FIXTURE_TEST(a_stage_without_traffic_is_idle_if_its_bytes_can_be_seen)
{
    long long now = f->stage->known_at + STAGE_TRAFFIC_MS;
    struct job *x = shash_find_data(&f->c->jobs, "a/x");
    struct job *y = shash_find_data(&f->c->jobs, "a/y");

    f->x->at = f->y->at = now;
    assert_int_equal(stage_find_idle(f->stage, now), STAGE_BUSY);
    f->x->measured = f->y->measured = 8;
    f->x->per_iteration[DIR_TX] = f->y->per_iteration[DIR_TX] = 1000;
    assert_int_equal(stage_find_idle(f->stage, now - 1), STAGE_BUSY);
    assert_int_equal(stage_find_idle(f->stage, now), STAGE_NO_TRAFFIC);
    x->progress.period = 2; /* Its iterations are long. */
    assert_int_equal(stage_find_idle(f->stage, now), STAGE_BUSY);
    x->progress.period = 0;
    y->progress.mark_at = now; /* It has made progress. */
    assert_int_equal(stage_find_idle(f->stage, now), STAGE_BUSY);
    y->progress.mark_at = 0;
    stage_get_bytes(&f->stage->moved, f->x->host)->bytes[DIR_RX] = 1;
    assert_int_equal(stage_find_idle(f->stage, now), STAGE_BUSY);
}

/* Its stage ends after a minute, and ten more later so does the search. */
FIXTURE_TEST(a_search_without_stages_or_processes_is_inactive)
{
    struct cojob *cojob = f->stage->cojob;

    assert_true(is_inactive_after(f, BEGAN, 700000));
    assert_false(cojob->inactive);
    f->stage->ended = BEGAN + 700000;
    assert_true(is_inactive_after(f, BEGAN + 701000, 590000));
    assert_false(cojob->inactive);
    is_inactive_after(f, BEGAN + 1291000, 20000);
    assert_true(cojob->inactive);
}

/* Between two stages a process is enough. */
FIXTURE_TEST(a_search_between_stages_is_not)
{
    struct cojob *cojob = f->stage->cojob;

    f->stage->ended = BEGAN;
    for (int64_t now = BEGAN; now < BEGAN + 2000000; now += 1000) {
        f->y->at = now - 200;
        inactive_run(f->c, now);
        assert_false(cojob->inactive);
    }
}
