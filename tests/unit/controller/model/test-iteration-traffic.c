/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/fabric.h"
#include "controller/model/iteration-traffic.h"
#include "controller/model/telemetry-report.h"
#include "order/order.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define MODEL 1000000

/* Two leaves: h0 and h1 at the first, h2 and h3 at the second.  The uplinks
 * have a quarter of the capacity of a host, two of them in each direction. */
static struct fabric *
make_fabric(void)
{
    const double seconds_per_bit = 0.5 / (CLUSTER_UNKNOWN_BPS / 4);
    struct fabric *f = fabric_create(2);

    for (int leaf = 0; leaf < 2; leaf++) {
        int up = fabric_add_port(f, leaf ? "leaf1>spine" : "leaf0>spine");
        int down = fabric_add_port(f, leaf ? "spine>leaf1" : "spine>leaf0");

        fabric_add_crossing(f, leaf, !leaf, up, seconds_per_bit);
        fabric_add_crossing(f, !leaf, leaf, down, seconds_per_bit);
    }
    fabric_add_host(f, "h0", 0x0a000001, 0);
    fabric_add_host(f, "h1", 0x0a000001 + 1, 0);
    fabric_add_host(f, "h2", 0x0a000001 + 2, 1);
    fabric_add_host(f, "h3", 0x0a000001 + 3, 1);
    return f;
}

/* A process of a job. */
struct process {
    const char *host;
    enum role role;
};

/* Bytes of one iteration that were measured at a host. */
struct measured {
    const char *host;
    double bytes[N_DIRS];
};

static struct cluster *
make_cluster(const struct process *processes, size_t n, struct job **jobp)
{
    struct cluster *c = cluster_create();
    struct cojob *cojob;

    cluster_intent_begin(c);
    cojob = cluster_put_cojob(c, "a", 1, true);
    *jobp = cojob_put_job(c, cojob, "j", true, 1000, MODEL);
    for (size_t i = 0; i < n; i++) {
        job_put_worker(c, *jobp, processes[i].host, processes[i].role);
    }
    stage_put_job(cojob_put_stage(c, cojob, 0, 1000, 0, 100), *jobp);
    cluster_intent_end(c);
    return c;
}

static void
measure(struct cluster *c, struct job *job, const struct measured *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct job_traffic *t = job_get_traffic(
            job, cluster_get_host(c, m[i].host));

        t->measured = 100;
        memcpy(t->per_iteration, m[i].bytes, sizeof t->per_iteration);
    }
}

/* Bytes from one host to another. */
struct expected {
    const char *src, *dst;
    double bytes;
};

static void
assert_pairs(const struct job *job, const struct expected *e, size_t n_e)
{
    struct traffic_pair *pairs;
    size_t n = iteration_traffic_pairs(job, &pairs);

    assert_int_equal(n, n_e);
    for (size_t i = 0; i < n_e; i++) {
        size_t k = 0;

        while (k < n && (strcmp(pairs[k].src->name, e[i].src)
                         || strcmp(pairs[k].dst->name, e[i].dst))) {
            k++;
        }
        assert_true(k < n);
        assert_float_equal(pairs[k].bytes, e[i].bytes, 1e-3);
    }
    free(pairs);
}

#define PAIRS(JOB, ...)                                                 \
    assert_pairs(JOB, (struct expected[]) { __VA_ARGS__ },              \
                 ARRAY_SIZE(((struct expected[]) { __VA_ARGS__ })))

/* Three workers exchange with two servers, and not with each other. */
UNIT_TEST(workers_exchange_with_servers_only)
{
    static const struct process processes[] = {
        { "h0", ROLE_WORKER }, { "h1", ROLE_WORKER }, { "h2", ROLE_WORKER },
        { "h3", ROLE_SERVER }, { "h4", ROLE_SERVER },
    };
    struct job *job;
    struct cluster *c = make_cluster(processes, ARRAY_SIZE(processes), &job);

    PAIRS(job,
          { "h0", "h3", MODEL / 2 }, { "h0", "h4", MODEL / 2 },
          { "h1", "h3", MODEL / 2 }, { "h1", "h4", MODEL / 2 },
          { "h2", "h3", MODEL / 2 }, { "h2", "h4", MODEL / 2 },
          { "h3", "h0", MODEL / 2 }, { "h4", "h0", MODEL / 2 },
          { "h3", "h1", MODEL / 2 }, { "h4", "h1", MODEL / 2 },
          { "h3", "h2", MODEL / 2 }, { "h4", "h2", MODEL / 2 });

    /* The first server has three quarters of the model. */
    measure(c, job, (struct measured[]) {
                { "h0", { 400, 400 } }, { "h1", { 400, 400 } },
                { "h2", { 400, 400 } }, { "h3", { 900, 900 } },
                { "h4", { 300, 300 } },
            }, 5);
    PAIRS(job,
          { "h0", "h3", 300 }, { "h0", "h4", 100 },
          { "h1", "h3", 300 }, { "h1", "h4", 100 },
          { "h2", "h3", 300 }, { "h2", "h4", 100 },
          { "h3", "h0", 300 }, { "h4", "h0", 100 },
          { "h3", "h1", 300 }, { "h4", "h1", 100 },
          { "h3", "h2", 300 }, { "h4", "h2", 100 });
    cluster_destroy(c);
}

/* A host with a worker and a server, as in test-demand.c. */
UNIT_TEST(a_server_beside_a_worker_exchanges_with_the_others)
{
    static const struct process processes[] = {
        { "h0", ROLE_WORKER }, { "h1", ROLE_WORKER },
        { "h0", ROLE_SERVER }, { "h2", ROLE_SERVER },
    };
    struct job *job;
    struct cluster *c = make_cluster(processes, ARRAY_SIZE(processes), &job);

    PAIRS(job,
          { "h0", "h1", MODEL / 2 }, { "h0", "h2", MODEL / 2 },
          { "h1", "h0", MODEL / 2 }, { "h1", "h2", MODEL / 2 },
          { "h2", "h0", MODEL / 2 }, { "h2", "h1", MODEL / 2 });
    cluster_destroy(c);
}

UNIT_TEST(peers_send_to_the_next_of_their_ring)
{
    static const struct process processes[] = {
        { "h2", ROLE_PEER }, { "h0", ROLE_PEER }, { "h3", ROLE_PEER },
        { "h1", ROLE_PEER },
    };
    struct job *job;
    struct cluster *c = make_cluster(processes, ARRAY_SIZE(processes), &job);

    PAIRS(job,
          { "h2", "h0", 1.5 * MODEL }, { "h0", "h3", 1.5 * MODEL },
          { "h3", "h1", 1.5 * MODEL }, { "h1", "h2", 1.5 * MODEL });

    /* Another copy of the intent does not lengthen the ring. */
    cluster_intent_begin(c);
    job = cojob_put_job(c, cluster_put_cojob(c, "a", 1, true), "j", true,
                        1000, MODEL);
    job_put_worker(c, job, "h0", ROLE_PEER);
    job_put_worker(c, job, "h1", ROLE_PEER);
    cluster_intent_end(c);
    measure(c, job, (struct measured[]) {
                { "h2", { 0, 0 } }, { "h3", { 0, 0 } },
            }, 2);
    PAIRS(job, { "h0", "h1", MODEL }, { "h1", "h0", MODEL });
    cluster_destroy(c);
}

/* Without servers and rings, bytes are distributed in proportion to what
 * others receive. */
UNIT_TEST(other_traffic_is_distributed_by_what_hosts_receive)
{
    static const struct process processes[] = {
        { "h0", ROLE_WORKER }, { "h1", ROLE_WORKER }, { "h2", ROLE_WORKER },
    };
    struct job *job;
    struct cluster *c = make_cluster(processes, ARRAY_SIZE(processes), &job);

    measure(c, job, (struct measured[]) {
                { "h0", { 600, 0 } }, { "h1", { 0, 200 } },
                { "h2", { 100, 400 } },
            }, 3);
    PAIRS(job, { "h0", "h1", 200 }, { "h0", "h2", 400 },
          { "h2", "h1", 100 });
    cluster_destroy(c);
}

/* Stores that 'src' has sent 'bytes' to 'dst'. */
static void
send_to(struct cluster *c, struct job *job, const char *src, const char *dst,
        uint64_t bytes)
{
    struct job_traffic *t = job_get_traffic(job, cluster_get_host(c, src));

    shash_add(&t->sent_to, dst, xmemdup(&bytes, sizeof bytes));
    t->bytes[DIR_TX] += bytes;
}

/* A worker that pushes to one of two servers only, and hosts that have not
 * measured. */
UNIT_TEST(measured_pairs_replace_the_formula)
{
    static const struct process processes[] = {
        { "h0", ROLE_WORKER }, { "h1", ROLE_SERVER }, { "h2", ROLE_SERVER },
    };
    struct job *job;
    struct cluster *c = make_cluster(processes, ARRAY_SIZE(processes), &job);

    cluster_set_fabric(c, make_fabric());
    send_to(c, job, "h0", "h1", 300);
    send_to(c, job, "h0", "h3", 50);    /* Has no process of the job. */
    PAIRS(job, { "h0", "h1", MODEL },
          { "h1", "h0", MODEL / 2 }, { "h2", "h0", MODEL / 2 });
    send_to(c, job, "h0", "h2", 100);
    PAIRS(job, { "h0", "h1", MODEL * 0.75 }, { "h0", "h2", MODEL * 0.25 },
          { "h1", "h0", MODEL / 2 }, { "h2", "h0", MODEL / 2 });

    /* The connections explain too little of what was sent. */
    job_get_traffic(job, cluster_get_host(c, "h0"))->bytes[DIR_TX] = 801;
    PAIRS(job, { "h0", "h1", MODEL / 2 }, { "h0", "h2", MODEL / 2 },
          { "h1", "h0", MODEL / 2 }, { "h2", "h0", MODEL / 2 });
    cluster_destroy(c);
}

/* Telemetry has addresses, the fabric has the hosts that have them. */
UNIT_TEST(telemetry_has_the_pairs)
{
    static const struct process processes[] = {
        { "h0", ROLE_PEER }, { "h1", ROLE_PEER }, { "h2", ROLE_PEER },
    };
    struct telemetry_remote remotes[] = {
        { 0x0a000003, 700 }, { 0x0a000002, 300 }, { 0x0a0000ff, 100 },
    };
    struct telemetry_job tj = {
        .name = CONST_CAST(char *, "a/j"),
        .claim = { .registered = true },
        .tx_bytes = 1000,
        .iteration = -1,
        .estimated = -1,
        .remotes = remotes,
        .n_remotes = ARRAY_SIZE(remotes),
    };
    struct telemetry_report r = {
        .host = CONST_CAST(char *, "h0"),
        .state = CONST_CAST(char *, "ordered"), .jobs = &tj, .n_jobs = 1,
    };
    struct job *job;
    struct cluster *c = make_cluster(processes, ARRAY_SIZE(processes), &job);

    simap_init(&r.ports);
    cluster_set_fabric(c, make_fabric());
    PAIRS(job, { "h0", "h1", MODEL * 4 / 3. }, { "h1", "h2", MODEL * 4 / 3. },
          { "h2", "h0", MODEL * 4 / 3. });
    demand_learn(c, &r, false);
    PAIRS(job, { "h0", "h1", MODEL * 0.4 }, { "h0", "h2", MODEL * 14 / 15. },
          { "h1", "h2", MODEL * 4 / 3. }, { "h2", "h0", MODEL * 4 / 3. });
    simap_destroy(&r.ports);
    cluster_destroy(c);
}

/* Returns the seconds of one iteration on the port 'name', 0 if none. */
static double
seconds_on(const struct cluster *c, const struct job *job, const char *name)
{
    char **names = demand_port_names(c);
    struct order_demand *demands;
    size_t n = iteration_traffic_demand(c, job, &demands);
    double seconds = 0;

    for (size_t i = 0; i < n; i++) {
        assert_true(!i || demands[i].port > demands[i - 1].port);
        if (!strcmp(names[demands[i].port], name)) {
            seconds = demands[i].seconds;
        }
    }
    for (int i = 0; i < demand_n_ports(c); i++) {
        free(names[i]);
    }
    free(names);
    free(demands);
    return seconds;
}

static size_t
count_ports(const struct cluster *c, const struct job *job)
{
    struct order_demand *demands;
    size_t n = iteration_traffic_demand(c, job, &demands);

    free(demands);
    return n;
}

#define SECONDS (MODEL * 8 / CLUSTER_UNKNOWN_BPS)

UNIT_TEST(a_job_within_a_leaf_uses_no_uplink)
{
    static const struct process processes[] = {
        { "h0", ROLE_WORKER }, { "h1", ROLE_SERVER },
    };
    struct job *job;
    struct cluster *c = make_cluster(processes, ARRAY_SIZE(processes), &job);

    assert_int_equal(demand_n_ports(c), 4);
    cluster_set_fabric(c, make_fabric());
    assert_int_equal(demand_n_ports(c), 8);
    assert_int_equal(count_ports(c, job), 4);
    assert_float_equal(seconds_on(c, job, "h0:tx"), SECONDS, 1e-12);
    cluster_destroy(c);
}

/* h0 and h2 work, h1 serves: half of the traffic crosses. */
UNIT_TEST(a_job_across_leaves_uses_uplinks_for_what_crosses)
{
    static const struct process processes[] = {
        { "h0", ROLE_WORKER }, { "h2", ROLE_WORKER }, { "h1", ROLE_SERVER },
    };
    static const char *const links[] = {
        "leaf0>spine", "spine>leaf0", "leaf1>spine", "spine>leaf1",
    };
    struct job *job;
    struct cluster *c = make_cluster(processes, ARRAY_SIZE(processes), &job);

    assert_int_equal(count_ports(c, job), 6);
    cluster_set_fabric(c, make_fabric());
    assert_int_equal(count_ports(c, job), 10);
    assert_float_equal(seconds_on(c, job, "h1:rx"), 2 * SECONDS, 1e-12);
    for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
        assert_float_equal(seconds_on(c, job, links[i]), 2 * SECONDS, 1e-12);
    }
    cluster_destroy(c);
}

/* Hosts that the fabric does not have use host ports only; a host that
 * appears after the fabric is found in it. */
UNIT_TEST(hosts_are_found_in_the_fabric_by_name)
{
    static const struct process processes[] = {
        { "h0", ROLE_WORKER }, { "x", ROLE_SERVER },
    };
    struct job *job;
    struct cluster *c = make_cluster(processes, ARRAY_SIZE(processes), &job);

    cluster_set_fabric(c, make_fabric());
    assert_int_equal(count_ports(c, job), 4);
    cluster_intent_begin(c);
    job = cojob_put_job(c, cluster_put_cojob(c, "b", 1, true), "j", true,
                        1000, MODEL);
    job_put_worker(c, job, "h3", ROLE_WORKER);
    job_put_worker(c, job, "h0", ROLE_SERVER);
    cluster_intent_end(c);
    assert_int_equal(count_ports(c, job), 8);
    cluster_destroy(c);
}
