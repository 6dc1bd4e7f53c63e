/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/hosts/hosts-db.h"
#include "controller/model/cluster.h"
#include "openvswitch/poll-loop.h"
#include "policies/policy.h"
#include "tests/unit/controller/ovsdb/test-server.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"
#include "wire/hosts-idl.h"

#define TIMEOUT_MS 10000

/* A controller with host h0, and its connection to the database. */
struct controller {
    struct cluster *c;
    struct hosts_db *hdb;
};

struct fixture {
    struct test_server server;
    struct policy *policy;
    struct controller a, b;
};

static void
begin(struct controller *ctl, const char *remote)
{
    ctl->c = cluster_create();
    cluster_get_host(ctl->c, "h0")->connected = true;
    ctl->hdb = hosts_db_create(remote, ctl->c);
}

static void
end(struct controller *ctl)
{
    hosts_db_destroy(ctl->hdb);
    cluster_destroy(ctl->c);
}

FIXTURE_SET_UP
{
    test_server_init(&f->server, &database_hosts);
    assert_null(policy_from_string(
        "p", "{\"name\": \"p\", \"order\": \"stage\"}", &f->policy));
    if (f->server.file) {
        test_server_start(&f->server);
        begin(&f->a, f->server.remote);
        begin(&f->b, f->server.remote);
    }
}

FIXTURE_TEAR_DOWN
{
    if (f->server.file) {
        end(&f->a);
        end(&f->b);
    }
    policy_destroy(f->policy);
    test_server_uninit(&f->server);
}

/* Runs one iteration of the loop of 'ctl', which leads with 'generation'
 * unless that is 0. */
static void
iterate(struct fixture *f, struct controller *ctl, int64_t generation)
{
    hosts_db_run(ctl->hdb);
    if (generation) {
        hosts_db_mark(ctl->hdb);
        hosts_db_compare(ctl->hdb, f->policy, generation, false, false);
        hosts_db_write(ctl->hdb);
    }
    hosts_db_commit(ctl->hdb);
    poll_timer_wait(20);
    poll_block();
}

/* Iterates until 'ctl' has seen rows of generation 'seen'. */
static void
iterate_until(struct fixture *f, struct controller *ctl, int64_t generation,
              int64_t seen)
{
    long long deadline = time_msec() + TIMEOUT_MS;

    while (hosts_db_generation(ctl->hdb) != seen) {
        assert_true(time_msec() < deadline);
        iterate(f, ctl, generation);
    }
}

/* A controller that was cut off and returns. */
FIXTURE_TEST(rows_of_a_newer_generation_are_not_replaced)
{
    int64_t version;

    if (!f->server.file) {
        skip();
    }
    iterate_until(f, &f->a, 1, 1);
    iterate_until(f, &f->b, 2, 2);
    iterate_until(f, &f->a, 0, 2);
    version = hosts_db_version(f->a.hdb);
    for (long long end = time_msec() + 300; time_msec() < end;) {
        iterate(f, &f->a, 1);
        assert_int_equal(hosts_db_version(f->a.hdb), version);
        assert_int_equal(cluster_get_host(f->a.c, "h0")->desired->generation,
                         2);
    }

    /* It could have written them. */
    iterate_until(f, &f->a, 3, 3);
    assert_true(hosts_db_version(f->a.hdb) > version);
}

/* Returns true if reports of 'ctl' list h0. */
static bool
is_known(const struct controller *ctl)
{
    size_t n;

    free(cluster_known_hosts(ctl->c, &n));
    return n;
}

/* Iterates both, 'f->a' as the leader, until 'ctl' knows h0 as 'known'. */
static void
iterate_until_known(struct fixture *f, struct controller *ctl, bool known)
{
    long long deadline = time_msec() + TIMEOUT_MS;

    while (is_known(ctl) != known) {
        assert_true(time_msec() < deadline);
        iterate(f, &f->a, 1);
        iterate(f, &f->b, 0);
    }
}

/* Waits until the second controller, without its agent, knows h0 by its rows.
 * Returns the host of the first one.  Skips the test without a database. */
static struct host *
await_rows(struct fixture *f)
{
    if (!f->server.file) {
        skip();
    }
    cluster_get_host(f->b.c, "h0")->connected = false;
    iterate_until_known(f, &f->b, true);
    return cluster_get_host(f->a.c, "h0");
}

FIXTURE_TEST(a_removed_host_has_no_rows_until_it_connects)
{
    struct host *host = await_rows(f);

    host->connected = false;
    hosts_db_remove(f->a.hdb, host);
    assert_false(is_known(&f->a));
    iterate_until_known(f, &f->b, false);
    for (int i = 0; i < 10; i++) {
        iterate(f, &f->a, 1);
        assert_false(is_known(&f->a));
    }

    host->connected = true;
    iterate_until_known(f, &f->b, true);
    for (int i = 0; i < 10; i++) {
        iterate(f, &f->a, 1);
    }
    host->connected = false;
    assert_true(host->reports && host->reported && host->desired);
}

FIXTURE_TEST(a_host_is_not_removed_if_it_connects_before)
{
    struct host *host = await_rows(f);

    hosts_db_remove(f->a.hdb, host);    /* Is still connected. */
    for (int i = 0; i < 20; i++) {
        iterate(f, &f->a, 1);
        iterate(f, &f->b, 0);
        assert_true(is_known(&f->b));
    }
}

UNIT_TEST(only_a_known_host_without_agent_and_jobs_may_be_removed)
{
    static const struct {
        bool connected, reports, named;
        const char *message;    /* Part of it; NULL: the removal is allowed. */
    } cases[] = {
        { false, true, false, NULL },
        { false, false, false, "h0: no such host" },
        { true, true, false, "h0: its agent is connected" },
        { false, true, true, "h0: live jobs have processes there" },
    };
    struct cluster *c = cluster_create();
    char *error = cluster_check_remove(c, "h0");

    assert_non_null(error);
    free(error);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct host *host = cluster_get_host(c, "h0");

        host->connected = cases[i].connected;
        host->reports = cases[i].reports;
        host->named = cases[i].named;
        error = cluster_check_remove(c, "h0");
        if (cases[i].message) {
            assert_non_null(error);
            assert_non_null(strstr(error, cases[i].message));
        } else {
            assert_null(error);
        }
        free(error);
    }
    cluster_destroy(c);
}
