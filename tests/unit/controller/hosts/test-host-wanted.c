/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/hosts/host-wanted.h"
#include "controller/hosts/hosts-db.h"
#include "controller/model/cluster.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"
#include "wire/host-order.h"

/* Host h0 with jobs c/a (rank 1, level 1) and c/b (rank 0, level 0). */
struct fixture {
    struct cluster *c;
    struct job *a, *b;
    struct policy *policy;
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

/* Returns the row of 'host', until the next call. */
static const char *
row(const struct fixture *f, const char *host)
{
    static char *text;
    struct host_jobs jobs;

    free(text);
    host_jobs_init(&jobs, f->observe ? NULL : f->c, f->policy, f->generation);
    text = host_wanted_compose(&jobs, cluster_get_host(f->c, host));
    host_jobs_uninit(&jobs);
    return text;
}

static void
assert_level(const struct fixture *f, const char *host, const char *map)
{
    char *column = xasprintf("\"level\":[\"map\",[%s]]", map);

    assert_non_null(strstr(row(f, host), column));
    free(column);
}

FIXTURE_TEST(processes_that_are_not_admitted_get_no_order)
{
    const struct membership_claim claim = { .has_uid = true, .uid = 1001 };
    struct host *h1 = cluster_get_host(f->c, "h1");

    f->a->cojob->uid = 1000;
    job_refuse(f->a, cluster_get_host(f->c, "h0"), MEMBERSHIP_OTHER_USER,
               &claim);
    job_refuse(f->a, h1, MEMBERSHIP_OTHER_USER, &claim);
    assert_level(f, "h0", "[\"c/b\",0]");

    /* The host gets the owner, to end the squatting. */
    assert_level(f, "h1", "");
    assert_non_null(
        strstr(row(f, "h1"), "\"owner_uid\":[\"map\",[[\"c/a\",1000]]]"));
    job_admit(f->a, cluster_get_host(f->c, "h0"));
    assert_level(f, "h0", "[\"c/a\",1],[\"c/b\",0]");
}

/* Its sockets are still sending what they have. */
FIXTURE_TEST(a_stopped_job_stays_for_a_moment)
{
    struct host_jobs jobs;

    f->b->live = false;
    f->b->stopped_at = time_msec();
    assert_level(f, "h0", "[\"c/a\",1],[\"c/b\",0]");
    host_jobs_init(&jobs, f->c, f->policy, f->generation);
    assert_int_equal(jobs.due, f->b->stopped_at + HOST_WANTED_LINGER_MS);
    host_jobs_uninit(&jobs);
    f->b->stopped_at -= HOST_WANTED_LINGER_MS;
    assert_level(f, "h0", "[\"c/a\",1]");
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

/* Each change gives another row, which is as in the schema, and none does
 * without one. */
FIXTURE_TEST(each_change_is_another_row)
{
#define X(NAME, CHANGE) { #NAME, change_##NAME },
    static const struct {
        const char *name;
        void (*change)(struct fixture *);
    } changes[] = { CHANGES };
#undef X
    struct host *host = cluster_get_host(f->c, "h0");

    assert_non_null(strstr(row(f, "h\"0"), "\"host\":\"h\\\"0\","));
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        struct ovsdb_datum data[HOSTSREC_HOST_WANTED_N_COLUMNS];
        struct json *json;

        free(host->order);
        host->order = xstrdup(row(f, "h0"));
        json = hosts_db_order(host);
        assert_null(host_order_read(json, data));
        host_order_free(data);
        json_destroy(json);
        assert_string_equal(host->order, row(f, "h0"));
        changes[i].change(f);
        if (!strcmp(host->order, row(f, "h0"))) {
            fail_msg("%s", changes[i].name);
        }
    }
}

FIXTURE_TEST(a_host_gets_its_live_jobs_that_are_not_excluded)
{
    assert_level(f, "h0", "[\"c/a\",1],[\"c/b\",0]");
    assert_level(f, "h1", "");
    f->a->override = OVERRIDE_EXCLUDE;
    assert_level(f, "h0", "[\"c/b\",0]");
    f->b->level = -1;                   /* Not ordered yet. */
    assert_level(f, "h0", "");
    f->a->override = OVERRIDE_NONE;
    f->observe = true;
    assert_level(f, "h0", "");
}
