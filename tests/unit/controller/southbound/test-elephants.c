/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/southbound/topology/routes.h"
#include "controller/southbound/topology/topology.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static struct topology *
read_leaf_spine(void)
{
    struct topology *t;

    assert_null(topology_read("tests/topologies/good/leaf-spine.json", &t));
    return t;
}

static struct policy *
read_policy(void)
{
    struct policy *policy;

    assert_null(policy_from_string("p", "{\"name\": \"p\", \"order\": "
                                   "\"stage\"}", &policy));
    return policy;
}

/* A job of a search of its own: a worker on one host, its server on another.
 * An iteration moves 125 MB, a second of a link of 1 Gbit/s. */
struct placed_job {
    const char *cojob, *worker, *server;
    int level, rank;
    int64_t iterations;
};

static struct cluster *
make_cluster(const struct placed_job *jobs, size_t n)
{
    struct cluster *c = cluster_create();

    cluster_intent_begin(c);
    for (size_t i = 0; i < n; i++) {
        struct cojob *cojob = cluster_put_cojob(c, jobs[i].cojob, 1, true);
        struct job *job = cojob_put_job(c, cojob, "j", true, 1000, 125000000);

        job_put_worker(c, job, jobs[i].worker, ROLE_WORKER);
        job_put_worker(c, job, jobs[i].server, ROLE_SERVER);
        stage_put_job(
            cojob_put_stage(c, cojob, 0, 1000, 0, jobs[i].iterations), job);
        job->level = jobs[i].level;
        job->rank = jobs[i].rank;
    }
    cluster_intent_end(c);
    return c;
}

/* Checks that 'jobs' have the elephants 'expected', in this order. */
static void
assert_elephants(const struct placed_job *jobs, size_t n_jobs,
                 const struct route_demand *expected, size_t n_expected)
{
    struct topology *t = read_leaf_spine();
    struct policy *policy = read_policy();
    struct cluster *c = make_cluster(jobs, n_jobs);
    struct route_demand *demands;
    size_t n = routes_find_elephants(c, t, policy, &demands);

    assert_int_equal(n, n_expected);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(demands[i].dscp, policy->dscp[expected[i].dscp]);
        assert_true((demands[i].src == expected[i].src
                     && demands[i].dst == expected[i].dst)
                    || (demands[i].src == expected[i].dst
                        && demands[i].dst == expected[i].src));
        assert_float_equal(demands[i].bits, expected[i].bits, 1);
    }
    free(demands);
    cluster_destroy(c);
    policy_destroy(policy);
    topology_destroy(t);
}

/* Both directions of a job; 'dscp' is the level. */
#define BOTH(SRC, DST, LEVEL, BITS) { SRC, DST, LEVEL, BITS }, \
                                    { DST, SRC, LEVEL, BITS }

UNIT_TEST(large_traffic_between_leaves_is_an_elephant)
{
    assert_elephants((struct placed_job[]) {
                         { "a", "h0", "h2", 1, 0, 10 },
                     }, 1, (struct route_demand[]) {
                         BOTH(0, 2, 1, 1e10),
                     }, 2);
}

UNIT_TEST(traffic_within_a_leaf_or_of_unknown_hosts_is_not)
{
    assert_elephants((struct placed_job[]) {
                         { "a", "h0", "h1", 0, 0, 10 },
                         { "b", "h0", "x", 0, 1, 10 },
                     }, 2, NULL, 0);
}

UNIT_TEST(jobs_without_a_level_have_no_elephants)
{
    assert_elephants((struct placed_job[]) {
                         { "a", "h0", "h2", -1, 0, 10 },
                     }, 1, NULL, 0);
}

UNIT_TEST(elephants_are_sorted_by_rank_and_added_up_by_level)
{
    assert_elephants((struct placed_job[]) {
                         { "a", "h1", "h3", 2, 2, 10 },
                         { "b", "h0", "h2", 0, 0, 10 },
                         { "c", "h0", "h2", 0, 1, 20 },
                     }, 3, (struct route_demand[]) {
                         BOTH(0, 2, 0, 3e10), BOTH(1, 3, 2, 1e10),
                     }, 4);
}
