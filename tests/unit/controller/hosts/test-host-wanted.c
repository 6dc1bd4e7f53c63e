/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "controller/hosts/host-wanted.h"
#include "controller/hosts/hosts-db.h"
#include "controller/model/cluster.h"
#include "openvswitch/poll-loop.h"
#include "policies/policy.h"
#include "tests/unit/controller/ovsdb/test-server.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

/* Host h0 with jobs c/a (rank 1, level 1) and c/b (rank 0, level 0), and the
 * database that has its row. */
struct fixture {
    struct cluster *c;
    struct job *a, *b;
    struct policy *policy;
    struct test_server server;
    struct hosts_db *hdb;
    int64_t generation;
    bool observe;
};

static struct job *
add_job(struct fixture *f, struct cojob *cojob, const char *name, int rank)
{
    struct job *job = cojob_put_job(f->c, cojob, name, true, 1, 0);

    job_put_worker(f->c, job, "h0", ROLE_WORKER);
    job->key = job->level = rank;
    return job;
}

FIXTURE_SET_UP
{
    struct cojob *cojob;

    f->c = cluster_create();
    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "c", 2, true);
    f->a = add_job(f, cojob, "a", 1);
    f->b = add_job(f, cojob, "b", 0);
    cluster_intent_end(f->c);
    assert_null(policy_from_string(
        "p", "{\"name\": \"p\", \"order\": \"stage\"}", &f->policy));
}

FIXTURE_TEAR_DOWN
{
    cluster_destroy(f->c);
    policy_destroy(f->policy);
}

static void
get_wanted(const struct fixture *f, const char *host, struct host_wanted *w)
{
    struct host_jobs jobs;

    host_jobs_init(&jobs, f->observe ? NULL : f->c);
    host_wanted_init(w, &jobs, f->policy, cluster_get_host(f->c, host));
    host_jobs_uninit(&jobs);
}

static size_t
n_wanted(const struct fixture *f, const char *host)
{
    struct host_wanted w;

    get_wanted(f, host, &w);
    host_wanted_uninit(&w);
    return w.n;
}

FIXTURE_TEST(processes_that_are_not_admitted_get_no_order)
{
    const struct membership_claim claim = { .has_uid = true, .uid = 1001 };
    struct host *h1 = cluster_get_host(f->c, "h1");
    struct host_wanted w;

    f->a->cojob->uid = 1000;
    job_refuse(f->a, cluster_get_host(f->c, "h0"), MEMBERSHIP_OTHER_USER,
               &claim);
    job_refuse(f->a, h1, MEMBERSHIP_OTHER_USER, &claim);
    assert_int_equal(n_wanted(f, "h0"), 1);

    /* The host gets the owner, to end the squatting. */
    get_wanted(f, "h1", &w);
    assert_int_equal(w.n, 0);
    assert_int_equal(w.n_owned, 1);
    assert_string_equal(w.owned[0], "c/a");
    assert_int_equal(w.owners[0], 1000);
    host_wanted_uninit(&w);
    job_admit(f->a, cluster_get_host(f->c, "h0"));
    assert_int_equal(n_wanted(f, "h0"), 2);
}

/* Runs the connection until it has the last order. */
static void
settle(struct fixture *f)
{
    long long deadline = time_msec() + 10000;

    hosts_db_mark(f->hdb);
    do {
        assert_true(time_msec() < deadline);
        hosts_db_run(f->hdb);
        hosts_db_write(f->hdb, f->policy, f->generation, f->observe);
        hosts_db_commit(f->hdb);
        poll_timer_wait(10);
        poll_block();
    } while (!hosts_db_is_settled(f->hdb));
}

/* What a row depends on, one after the other. */
#define CHANGES                                     \
    X(rank, f->a->key = 7)                          \
    X(level, f->b->level = 3)                       \
    X(weight, f->a->cojob->weight = 2.5)            \
    X(ended, f->b->live = false)                    \
    X(begun, f->b->live = true)                     \
    X(excluded, f->b->override = OVERRIDE_EXCLUDE)  \
    X(owner, f->a->cojob->uid = 1000)               \
    X(owner_changed, f->a->cojob->uid = 1001)       \
    X(trust, f->policy->trust = POLICY_ENVIRONMENT) \
    X(generation, f->generation++)                  \
    X(lease, f->policy->lease_ms++)                 \
    X(default_dscp, f->policy->default_dscp++)      \
    X(control_dscp, f->policy->control_dscp++)      \
    X(dscp, f->policy->dscp[5]++)                   \
    X(n_levels, f->policy->n_levels--)              \
    X(beta, f->policy->congestion_beta /= 2)        \
    X(floor, f->policy->congestion_floor /= 2)      \
    X(gamma, f->policy->congestion_gamma *= 0.75)   \
    X(min_share, f->policy->min_share /= 2)         \
    X(name, f->policy->name[0]++)                   \
    X(observe, f->observe = true)

#define X(NAME, CHANGE)                          \
    static void change_##NAME(struct fixture *f) \
    {                                            \
        CHANGE;                                  \
    }
CHANGES
#undef X

/* Each change gives the row one new version, and none does without one. */
FIXTURE_TEST(each_change_is_written_once)
{
#define X(NAME, CHANGE) { #NAME, change_##NAME },
    static const struct {
        const char *name;
        void (*change)(struct fixture *);
    } changes[] = { CHANGES };
#undef X
    int64_t version;

    test_server_init(&f->server, &database_hosts);
    if (!f->server.file) {
        test_server_uninit(&f->server);
        skip();
    }
    test_server_start(&f->server);
    f->hdb = hosts_db_create(f->server.remote, f->c);
    f->generation = 3;
    settle(f);
    version = hosts_db_version(f->hdb);
    assert_int_equal(version, 1);
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        changes[i].change(f);
        settle(f);
        settle(f);
        if (hosts_db_version(f->hdb) != ++version) {
            fail_msg("%s: version %" PRId64, changes[i].name,
                     hosts_db_version(f->hdb));
        }
    }
    hosts_db_destroy(f->hdb);
    test_server_uninit(&f->server);
}

FIXTURE_TEST(a_host_gets_its_live_jobs_that_are_not_excluded)
{
    assert_int_equal(n_wanted(f, "h0"), 2);
    assert_int_equal(n_wanted(f, "h1"), 0);
    f->a->override = OVERRIDE_EXCLUDE;
    assert_int_equal(n_wanted(f, "h0"), 1);
    f->b->level = -1;                   /* Not ordered yet. */
    assert_int_equal(n_wanted(f, "h0"), 0);
    f->a->override = OVERRIDE_NONE;
    f->observe = true;
    assert_int_equal(n_wanted(f, "h0"), 0);
}
