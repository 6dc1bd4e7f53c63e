/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <signal.h>
#include <stdint.h>

#include "controller/intent/intent-db.h"
#include "controller/model/cluster.h"
#include "controller/model/owners.h"
#include "openvswitch/poll-loop.h"
#include "tests/unit/controller/ovsdb/test-server.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

/* A connected controller that has the lock of an empty database. */
static const struct leadership_view holder = {
    .connected = true, .loaded = true, .has_lock = true, .has_txn = true,
};

/* Returns a controller that leads by 'generation'. */
static struct leadership
lead(int64_t generation)
{
    struct leadership l = { .newest = generation - 1 };
    struct leadership_view view = holder;

    assert_int_equal(leadership_run(&l, &view), LEADERSHIP_REQUEST);
    assert_int_equal(l.requested, generation);
    assert_false(l.active);
    view.generation = generation;
    view.is_own_row = true;
    assert_int_equal(leadership_run(&l, &view), LEADERSHIP_BEGIN);
    assert_true(l.active);
    assert_int_equal(l.generation, generation);
    return l;
}

UNIT_TEST(the_first_controller_takes_generation_1)
{
    lead(1);
}

UNIT_TEST(leadership_needs_the_lock_the_contents_and_a_transaction)
{
    for (int missing = 0; missing < 3; missing++) {
        struct leadership l = { .newest = 0 };
        struct leadership_view view = holder;

        view.has_lock = missing != 0;
        view.loaded = missing != 1;
        view.has_txn = missing != 2;
        assert_int_equal(leadership_run(&l, &view), LEADERSHIP_KEEP);
        assert_int_equal(l.requested, 0);
    }
}

UNIT_TEST(a_new_generation_is_above_both_databases)
{
    struct leadership l = { .newest = 7 };
    struct leadership_view view = holder;

    view.generation = 3;                /* Restored from an old copy. */
    assert_int_equal(leadership_run(&l, &view), LEADERSHIP_REQUEST);
    assert_int_equal(l.requested, 8);

    l = (struct leadership) { .newest = 3 };
    view.generation = 7;
    assert_int_equal(leadership_run(&l, &view), LEADERSHIP_REQUEST);
    assert_int_equal(l.requested, 8);
}

/* A lost database needs no host's word, unless the clock goes back. */
UNIT_TEST(a_new_generation_is_at_least_the_time)
{
    static const struct {
        int64_t newest, now, expected;
    } cases[] = { { 0, 5000, 5000 },
                  { 7000, 5000, 7001 },
                  { 4999, 5000, 5000 },
                  { 5000, 5000, 5001 } };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct leadership l = { .newest = cases[i].newest };
        struct leadership_view view = holder;

        view.now = cases[i].now;
        assert_int_equal(leadership_run(&l, &view), LEADERSHIP_REQUEST);
        assert_int_equal(l.requested, cases[i].expected);
    }
}

/* Another controller was faster: its row has the requested generation. */
UNIT_TEST(a_row_of_another_controller_is_no_leadership)
{
    struct leadership l = { .newest = 0 };
    struct leadership_view view = holder;

    assert_int_equal(leadership_run(&l, &view), LEADERSHIP_REQUEST);
    view.generation = l.requested;
    assert_int_equal(leadership_run(&l, &view), LEADERSHIP_REQUEST);
    assert_false(l.active);
    assert_int_equal(l.requested, 2);
}

UNIT_TEST(a_lost_lock_or_a_newer_leader_ends_the_leadership)
{
    for (int i = 0; i < 2; i++) {
        struct leadership l = lead(2);
        struct leadership_view view = holder;

        view.generation = i ? 3 : 2;
        view.lock_contended = !i;
        assert_int_equal(leadership_run(&l, &view), LEADERSHIP_END_REPLACED);
        assert_false(l.active);
        assert_int_equal(l.generation, 2);
    }
}

UNIT_TEST(a_disconnected_leader_stays_active)
{
    struct leadership l = lead(2);
    struct leadership_view view = { .lock_contended = true, .generation = 9 };

    assert_int_equal(leadership_run(&l, &view), LEADERSHIP_KEEP);
    assert_true(l.active);
}

/* Even while it is disconnected: agents ignore its orders. */
UNIT_TEST(a_newer_generation_on_hosts_fences_the_leader)
{
    struct leadership l = lead(2);
    struct leadership_view view = { .connected = false };

    l.newest = 3;
    assert_int_equal(leadership_run(&l, &view), LEADERSHIP_END_FENCED);
    assert_int_equal(leadership_run(&l, &holder), LEADERSHIP_REQUEST);
    assert_int_equal(l.requested, 4);
}

/* An iteration half a second late makes the age of the database's last message
 * unknown, until its probe was answered in time. */
UNIT_TEST(a_leader_is_confirmed_while_the_database_answers_in_time)
{
    static const struct {
        long long msec;
        bool answers, confirmed;
    } steps[] = {
        { 90000, true, true },  { 90500, true, true },
        { 91000, true, true },  { 91100, false, false },
        { 91500, true, true },  { 92100, true, false },
        { 92600, true, false }, { 93100, true, false },
        { 93600, true, false }, { 94100, false, false },
        { 94500, true, false }, { 94600, true, true },
    };
    struct leadership l = { .active = true, .generation = 1 };
    struct leadership_view view = holder;

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        view.generation = 1;
        view.msec = steps[i].msec;
        view.answers = steps[i].answers;
        leadership_run(&l, &view);
        if (l.confirmed != steps[i].confirmed) {
            fail_msg("at %lld: %d", steps[i].msec, l.confirmed);
        }
    }
}

UNIT_TEST(only_a_connected_leader_with_a_transaction_may_write)
{
    struct leadership l = lead(1);
    struct leadership_view view = holder;

    assert_true(leadership_may_write(&l, &view));
    view.has_txn = false;
    assert_false(leadership_may_write(&l, &view));
    view = holder;
    view.connected = false;
    assert_false(leadership_may_write(&l, &view));
    l.active = false;
    assert_false(leadership_may_write(&l, &holder));
}

/* Runs 'idb' for 'ms', or until 'owner' is stored if that is not null. */
static bool
stores(struct intent_db *idb, const struct owner *owner, int ms)
{
    long long deadline = time_msec() + ms;

    while (time_msec() < deadline && !(owner && owner->stored)) {
        intent_db_run(idb, 1000, 0);
        intent_db_commit(idb);
        poll_timer_wait(20);
        poll_block();
    }
    return owner && owner->stored;
}

/* A server that stops between a transaction and its reply loses it. */
UNIT_TEST(an_account_is_stored_once_the_database_has_it)
{
    struct overrides overrides;
    struct decision_log *log;
    struct test_server server;
    struct intent_db *idb;
    struct owner *owner;
    struct cluster *c;

    test_server_init(&server, &database_intent);
    if (!server.file) {
        test_server_uninit(&server);
        skip();
    }
    ovs_set_program_name("test-leadership", "0"); /* For events. */
    c = cluster_create();
    owner = owners_get(&c->owners, "ann", 0);
    owner->n_cojobs = 1; /* It is not forgotten. */
    log = decision_log_create(10);
    overrides_init(&overrides);
    c->owner_memory_s = 600;
    test_server_start(&server);
    idb = intent_db_create(server.remote, "unix:x", c, &overrides, log);
    owners_add(owner, 5, c->owner_memory_s);
    assert_true(stores(idb, owner, 10000));
    stores(idb, NULL, 500); /* Nothing is pending any more. */

    kill(server.pid, SIGSTOP);
    owners_add(owner, 5, c->owner_memory_s);
    assert_false(stores(idb, owner, 600));
    kill(server.pid, SIGKILL);
    test_server_stop(&server);
    assert_false(stores(idb, owner, 300));
    test_server_start(&server);
    assert_true(stores(idb, owner, 10000));

    intent_db_destroy(idb);
    decision_log_destroy(log);
    overrides_uninit(&overrides);
    cluster_destroy(c);
    test_server_uninit(&server);
}
