/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/hosts/hosts-db.h"
#include "controller/model/cluster.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/hosts-idl.h"

/* Host h0 with jobs c/a (rank 1, level 1) and c/b (rank 0, level 0), and the
 * row that the database has of it. */
struct fixture {
    struct cluster *c;
    struct job *a, *b;
    struct policy *policy;
    struct host_wanted_ctx ctx;

    char *names[2];
    int64_t ranks[2], levels[2];
    int64_t dscp_levels[8], dscps[8];
    double weights[2], min_share, congestion[3];
    char *congestion_keys[3];
    struct hostsrec_host_wanted row;
};

static struct job *
add_job(struct fixture *f, struct cojob *cojob, const char *name, int rank)
{
    struct job *job = cojob_put_job(f->c, cojob, name, true, 1, 0);

    job_put_worker(f->c, job, "h0", ROLE_WORKER);
    job->rank = job->level = rank;
    return job;
}

static int
set_up(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);
    struct cojob *cojob;

    f->c = cluster_create();
    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "c", 2, true);
    f->a = add_job(f, cojob, "a", 1);
    f->b = add_job(f, cojob, "b", 0);
    cluster_intent_end(f->c);
    assert_null(policy_from_string(
        "p", "{\"name\": \"p\", \"order\": \"stage\"}", &f->policy));
    f->ctx = (struct host_wanted_ctx){
        .cluster = f->c,
        .policy = f->policy,
        .generation = 3,
        .version = 9,
    };

    /* As the database returns it: maps are sorted by key. */
    for (int i = 0; i < 2; i++) {
        f->names[i] = CONST_CAST(char *, i ? "c/b" : "c/a");
        f->ranks[i] = f->levels[i] = !i;
        f->weights[i] = 2;
    }
    f->min_share = f->policy->min_share;
    for (int i = 0; i < 8; i++) {
        f->dscp_levels[i] = i;
        f->dscps[i] = (i == 0   ? f->policy->control_dscp
                       : i == 7 ? f->policy->default_dscp
                                : f->policy->dscp[i - 1]);
    }
    f->congestion_keys[0] = CONST_CAST(char *, "beta");
    f->congestion_keys[1] = CONST_CAST(char *, "floor");
    f->congestion_keys[2] = CONST_CAST(char *, "gamma");
    f->congestion[0] = f->policy->congestion_beta;
    f->congestion[1] = f->policy->congestion_floor;
    f->congestion[2] = f->policy->congestion_gamma;
    f->row = (struct hostsrec_host_wanted){
        .host = CONST_CAST(char *, "h0"),
        .version = 5,
        .generation = 3,
        .lease_ms = f->policy->lease_ms,
        .policy = CONST_CAST(char *, "p"),
        .key_rank = f->names,
        .value_rank = f->ranks,
        .n_rank = 2,
        .key_level = f->names,
        .value_level = f->levels,
        .n_level = 2,
        .key_level_dscp = f->dscp_levels,
        .value_level_dscp = f->dscps,
        .n_level_dscp = 8,
        .key_weight = f->names,
        .value_weight = f->weights,
        .n_weight = 2,
        .min_share = &f->min_share,
        .n_min_share = 1,
        .trust = CONST_CAST(char *, "registered"),
        .key_congestion = f->congestion_keys,
        .value_congestion = f->congestion,
        .n_congestion = 3,
    };
    *state = f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    cluster_destroy(f->c);
    policy_destroy(f->policy);
    free(f);
    return 0;
}

static bool
differs(const struct fixture *f)
{
    struct host_wanted w;
    bool result;

    host_wanted_init(&w, &f->ctx, cluster_get_host(f->c, "h0"));
    result = host_wanted_differs(&w, &f->ctx, &f->row);
    host_wanted_uninit(&w);
    return result;
}

static size_t
n_wanted(const struct fixture *f, const char *host)
{
    struct host_wanted w;

    host_wanted_init(&w, &f->ctx, cluster_get_host(f->c, host));
    host_wanted_uninit(&w);
    return w.n;
}

static void
an_equal_row_is_not_written(void **state)
{
    struct fixture *f = *state;

    assert_false(differs(f));
    f->row.version = 1;                 /* Does not count. */
    assert_false(differs(f));
}

static void
owners_and_the_trust_are_written(void **state)
{
    struct fixture *f = *state;
    int64_t owners[] = { 1000, 1000 };

    f->row.trust = NULL;
    assert_true(differs(f));
    f->row.trust = CONST_CAST(char *, "environment");
    assert_true(differs(f));
    f->row.trust = CONST_CAST(char *, "registered");
    assert_false(differs(f));
    f->a->cojob->uid = 1000;
    assert_true(differs(f));
    f->row.key_owner_uid = f->names;
    f->row.value_owner_uid = owners;
    f->row.n_owner_uid = 2;
    assert_false(differs(f));
    owners[0] = 1001;
    assert_true(differs(f));
}

static void
processes_that_are_not_admitted_get_no_order(void **state)
{
    const struct membership_claim claim = { .has_uid = true, .uid = 1001 };
    struct fixture *f = *state;
    struct host *h1 = cluster_get_host(f->c, "h1");
    struct host_wanted w;

    f->a->cojob->uid = 1000;
    job_refuse(f->a, cluster_get_host(f->c, "h0"), MEMBERSHIP_OTHER_USER,
               &claim);
    job_refuse(f->a, h1, MEMBERSHIP_OTHER_USER, &claim);
    assert_int_equal(n_wanted(f, "h0"), 1);

    /* The host gets the owner, to end the squatting. */
    host_wanted_init(&w, &f->ctx, h1);
    assert_int_equal(w.n, 0);
    assert_int_equal(w.n_owned, 1);
    assert_string_equal(w.owned[0], "c/a");
    assert_int_equal(w.owners[0], 1000);
    host_wanted_uninit(&w);
    job_admit(f->a, cluster_get_host(f->c, "h0"));
    assert_int_equal(n_wanted(f, "h0"), 2);
}

static void
each_change_of_a_job_is_written(void **state)
{
    struct fixture *f = *state;
    int64_t *const integers[] = { f->ranks, f->levels };

    for (size_t i = 0; i < ARRAY_SIZE(integers); i++) {
        for (int k = 0; k < 2; k++) {
            integers[i][k]++;
            assert_true(differs(f));
            integers[i][k]--;
        }
    }
    f->weights[1] += 0.5;
    assert_true(differs(f));
    f->weights[1] = 2;
    assert_false(differs(f));

    f->names[1] = CONST_CAST(char *, "c/x");    /* Another job. */
    assert_true(differs(f));
    f->names[1] = CONST_CAST(char *, "c/b");
    f->b->live = false;
    assert_true(differs(f));
    f->b->live = true;
    f->row.n_rank = 1;
    assert_true(differs(f));
}

static void
each_change_of_the_policy_or_leader_is_written(void **state)
{
    struct fixture *f = *state;

    f->ctx.generation++;
    assert_true(differs(f));
    f->ctx.generation--;
    f->policy->lease_ms++;
    assert_true(differs(f));
    f->policy->lease_ms--;
    f->policy->default_dscp++;
    assert_true(differs(f));
    f->policy->default_dscp--;
    f->policy->control_dscp++;
    assert_true(differs(f));
    f->policy->control_dscp--;
    f->policy->dscp[5]++;
    assert_true(differs(f));
    f->policy->dscp[5]--;
    f->row.n_level_dscp--;
    assert_true(differs(f));
    f->row.n_level_dscp++;
    f->policy->n_levels--;
    assert_true(differs(f));
    f->policy->n_levels++;
    assert_false(differs(f));
    f->row.policy = CONST_CAST(char *, "q");
    assert_true(differs(f));
    f->row.policy = CONST_CAST(char *, "p");
    f->congestion[1] += 0.01;
    assert_true(differs(f));
    f->congestion[1] = f->policy->congestion_floor;
    f->row.n_min_share = 0;
    assert_true(differs(f));
    f->row.n_min_share = 1;
    assert_false(differs(f));
}

static void
a_host_gets_its_live_jobs_that_are_not_excluded(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(n_wanted(f, "h0"), 2);
    assert_int_equal(n_wanted(f, "h1"), 0);
    f->a->override = OVERRIDE_EXCLUDE;
    assert_int_equal(n_wanted(f, "h0"), 1);
    f->b->level = -1;                   /* Not ordered yet. */
    assert_int_equal(n_wanted(f, "h0"), 0);
    f->a->override = OVERRIDE_NONE;
    f->ctx.observe = true;
    assert_int_equal(n_wanted(f, "h0"), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_equal_row_is_not_written),
        TEST(owners_and_the_trust_are_written),
        TEST(processes_that_are_not_admitted_get_no_order),
        TEST(each_change_of_a_job_is_written),
        TEST(each_change_of_the_policy_or_leader_is_written),
        TEST(a_host_gets_its_live_jobs_that_are_not_excluded),
    };

    return cmocka_run_group_tests_name("host-wanted", tests, NULL, NULL);
}
