/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/decide/decide-problem.h"
#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/southbound/topology/link-ports.h"
#include "controller/southbound/topology/routes.h"
#include "controller/southbound/topology/topology.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "order/order.h"
#include "policies/policy.h"
#include "sim/fabric/fabric.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"
#include "tests/unit/controller/decide/decide-world.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

#define N_HOSTS 8
#define HOSTS_PER_LEAF 4
#define N_LEAVES (N_HOSTS / HOSTS_PER_LEAF)
#define OVERSUBSCRIPTION 4

/* Both uplinks of a leaf together have the capacity of one host. */
#define UPLINK_BPS                                                      \
    (CLUSTER_UNKNOWN_BPS * HOSTS_PER_LEAF / OVERSUBSCRIPTION / 2)

#define MODEL 125000000         /* Bytes: one second of a host's link. */

/* Has 'c' regard the links of two leaves under two spines. */
static void
set_fabric(struct cluster *c)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    struct topology *t;
    struct routes *r;

    ds_put_cstr(&ds, "{\"switches\": [");
    for (int i = 0; i < 2 * N_LEAVES; i++) {
        ds_put_format(&ds, "%s{\"name\": \"%s%d\", \"target\": \"unix:/x\", "
                      "\"datapath\": \"%016x\"}", i ? ", " : "",
                      i < N_LEAVES ? "leaf" : "spine", i % N_LEAVES, i + 1);
    }
    ds_put_cstr(&ds, "], \"links\": [");
    for (int i = 0; i < 2 * N_LEAVES; i++) {
        ds_put_format(&ds,
                      "%s{\"capacity\": \"%.0fMbit\", \"ends\": ["
                      "{\"switch\": \"leaf%d\", \"port\": %d}, "
                      "{\"switch\": \"spine%d\", \"port\": %d}]}",
                      i ? ", " : "", UPLINK_BPS / 1e6, i / 2, 100 + i % 2,
                      i % 2, 1 + i / 2);
    }
    ds_put_cstr(&ds, "], \"hosts\": [");
    for (int i = 0; i < N_HOSTS; i++) {
        ds_put_format(&ds, "%s{\"name\": \"h%d\", \"ip\": \"10.0.0.%d\", "
                      "\"capacity\": \"1Gbit\", \"at\": {\"switch\": "
                      "\"leaf%d\", \"port\": %d}}", i ? ", " : "", i, i + 1,
                      i / HOSTS_PER_LEAF, 1 + i % HOSTS_PER_LEAF);
    }
    ds_put_cstr(&ds, "]}");
    assert_null(topology_parse("t", ds_cstr(&ds), &t));
    r = routes_create(t);
    cluster_set_fabric(c, link_ports_create(t, r));
    routes_destroy(r);
    topology_destroy(t);
    ds_destroy(&ds);
}

/* A job of a search of its own.  Hosts are digits: workers and servers, or
 * peers. */
struct placed {
    const char *workers, *servers, *peers;
    int64_t iterations;
};

static void
put_processes(struct cluster *c, struct job *job, const char *hosts,
              enum role role)
{
    for (; hosts && *hosts; hosts++) {
        job_put_worker(c, job, (char[]) { 'h', *hosts, '\0' }, role);
    }
}

/* Gives cojobs "a", "b", ..., each with a job "j". */
static void
give_placed(struct fixture *f, const struct placed *jobs, size_t n)
{
    cluster_intent_begin(f->c);
    for (size_t i = 0; i < n; i++) {
        char name[] = { 'a' + i, '\0' };
        struct cojob *cojob = cluster_put_cojob(f->c, name, 1, true);
        struct job *job = cojob_put_job(f->c, cojob, "j", true, f->began,
                                        MODEL);

        put_processes(f->c, job, jobs[i].workers, ROLE_WORKER);
        put_processes(f->c, job, jobs[i].servers, ROLE_SERVER);
        put_processes(f->c, job, jobs[i].peers, ROLE_PEER);
        stage_put_job(cojob_put_stage(f->c, cojob, 0, f->began, 0,
                                      jobs[i].iterations), job);
    }
    cluster_intent_end(f->c);
}

/* Returns the number of jobs that have priority over 'job' on its bottleneck.
 * Stores the name of the bottleneck in '*bottleneckp', which the caller
 * frees. */
static size_t
count_before(struct fixture *f, const char *job, char **bottleneckp)
{
    struct json *json = decide_explain(f->d, job);
    const struct shash *o = json_object(json);
    size_t n = ((struct json *) shash_find_data(o, "before"))->array.n;

    *bottleneckp = xstrdup(json_string(shash_find_data(o, "bottleneck")));
    json_destroy(json);
    return n;
}

/* Three workers and three servers of "a" each need their host's ports for 1 s
 * in an iteration, and the uplinks of both leaves for 3 s. */
FIXTURE_TEST(an_uplink_decides_between_jobs_without_a_common_host)
{
    static const struct placed jobs[] = {
        { .workers = "012", .servers = "456", .iterations = 100 },
        { .workers = "3", .servers = "7", .iterations = 100 },
    };
    char *bottleneck;

    give_placed(f, jobs, 2);
    decides(f, 1000, "a/j -/0 b/j -/0");
    assert_int_equal(count_before(f, "a/j", &bottleneck), 0);
    assert_is(bottleneck, "h0:tx");

    set_fabric(f->c);
    decides(f, 3000, "a/j -/1 b/j -/0");
    assert_int_equal(count_before(f, "a/j", &bottleneck), 1);
    assert_is(bottleneck, "leaf0>spine0+spine1");
}

/* On the ports of their hosts, "a" needs 600 s in all and "b", which stays in
 * the leaf, 680 s.  The uplinks add another 600 s to the work of "a". */
FIXTURE_TEST(uplinks_change_the_order_of_jobs_at_one_host)
{
    static const struct placed jobs[] = {
        { .workers = "012", .servers = "456", .iterations = 50 },
        { .workers = "0", .servers = "3", .iterations = 170 },
    };

    give_placed(f, jobs, 2);
    decides(f, 1000, "a/j 0");
    set_fabric(f->c);
    decides(f, 3000, "b/j 0 a/j 1");
}

/* Two jobs without a common host: one by one on the uplink, they end after
 * 100 s and 400 s, which no order can improve. */
FIXTURE_TEST(estimate_and_bound_include_uplinks)
{
    static const struct placed jobs[] = {
        { .workers = "012", .servers = "456", .iterations = 100 },
        { .workers = "3", .servers = "7", .iterations = 100 },
    };
    struct json *json, *order, *demand;

    set_order(f, "work", "");
    set_fabric(f->c);
    give_placed(f, jobs, 2);
    assert_true(decide_run(f->d, 1000));
    json = decide_order_to_json(f->d);
    assert_float_equal(member(json, "estimate_s"), 500, 1);
    assert_in_range(member(json, "bound_s"), 450, 501);
    order = shash_find_data(json_object(json), "order");
    demand = shash_find_data(json_object(order->array.elems[1]), "demand");
    assert_float_equal(member(demand, "spine0+spine1>leaf1"), 300, 1e-6);
    assert_float_equal(member(demand, "h4:rx"), 100, 1e-6);
    json_destroy(json);
}

/* Jobs as the simulator and the controller get them: parameter servers with
 * one and two shards, rings, and a job within a leaf. */
static const struct placed mixed[] = {
    { .workers = "014", .servers = "5", .iterations = 10 },
    { .workers = "0246", .servers = "17", .iterations = 20 },
    { .peers = "0415", .iterations = 30 },
    { .peers = "0123", .iterations = 40 },
    { .workers = "23", .servers = "1", .iterations = 50 },
    { .peers = "6253", .iterations = 60 },
};

static size_t
list_hosts(const char *digits, int *hosts)
{
    size_t n = 0;

    for (; digits && *digits; digits++) {
        hosts[n++] = *digits - '0';
    }
    return n;
}

static struct workload *
make_workload(const struct placed *jobs, size_t n)
{
    struct workload *w = workload_create(
        "stage", sim_fabric_create_leaf_spine(N_HOSTS, HOSTS_PER_LEAF,
                                              CLUSTER_UNKNOWN_BPS / 8,
                                              OVERSUBSCRIPTION));

    for (size_t i = 0; i < n; i++) {
        char name[] = { 'a' + i, '\0' };
        struct workload_cojob *cojob = workload_add_cojob(w, name, 1, 0);
        struct workload_job *job = workload_add_job(cojob, "j", 0);
        int workers[N_HOSTS], servers[N_HOSTS];
        size_t n_servers = list_hosts(jobs[i].servers, servers);

        if (n_servers) {
            workload_add_ps(job, workers,
                            list_hosts(jobs[i].workers, workers), servers,
                            n_servers, MODEL);
        } else {
            workload_add_ring(job, workers,
                              list_hosts(jobs[i].peers, workers), MODEL);
        }
        workload_add_rung(w, cojob, jobs[i].iterations, 1);
    }
    return w;
}

/* Returns the number in the simulator of the controller's port 'name'. */
static int
port_in_simulator(const char *name)
{
    bool rx = !strcmp(name + strlen(name) - 3, ":rx");
    int leaf;

    if (name[0] == 'h') {
        return 2 * (name[1] - '0') + rx;
    } else if (sscanf(name, "leaf%d>spine0+spine1", &leaf) == 1) {
        return 2 * (N_HOSTS + leaf);
    }
    assert_int_equal(sscanf(name, "spine0+spine1>leaf%d", &leaf), 1);
    return 2 * (N_HOSTS + leaf) + 1;
}

struct comparison {
    struct fixture *f;
    bool compared;
};

/* Implements sim_options.input: compares the first order's input with the
 * controller's. */
static void
compare_input(void *aux, const struct order_problem *sim)
{
    struct comparison *cmp = aux;
    struct order_problem *op, *whole;
    struct decide_problem dp;
    char **names;

    if (cmp->compared) {
        return;
    }
    cmp->compared = true;
    op = order_problem_create(0);
    whole = order_problem_create(0);
    decide_problem_init(&dp, op, whole, cmp->f->c, cmp->f->stage,
                        ORDER_UNIT_ITERATION, time_msec());
    names = demand_port_names(cmp->f->c);
    assert_int_equal(op->n_stages, ARRAY_SIZE(mixed));
    assert_int_equal(sim->n_stages, ARRAY_SIZE(mixed));
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *a = &op->stages[i], *b = &sim->stages[i];

        assert_int_equal(a->n_demands, b->n_demands);
        for (size_t k = 0; k < a->n_demands; k++) {
            int port = port_in_simulator(names[a->demands[k].port]);
            size_t j = 0;

            while (j < b->n_demands && b->demands[j].port != port) {
                j++;
            }
            assert_true(j < b->n_demands);
            assert_float_equal(a->demands[k].seconds, b->demands[j].seconds,
                               1e-9);
        }
    }
    for (int i = 0; i < op->n_ports; i++) {
        free(names[i]);
    }
    free(names);
    decide_problem_uninit(&dp);
    order_problem_destroy(whole);
    order_problem_destroy(op);
}

FIXTURE_TEST(the_simulator_orders_by_the_same_seconds_of_each_port)
{
    struct comparison cmp = { .f = f };
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
        .input = compare_input, .aux = &cmp,
    };
    struct workload *w = make_workload(mixed, ARRAY_SIZE(mixed));
    struct sim_result result;

    set_fabric(cmp.f->c);
    give_placed(cmp.f, mixed, ARRAY_SIZE(mixed));
    simulate(w, &options, &result);
    assert_true(cmp.compared);
    sim_result_uninit(&result);
    workload_destroy(w);
}

struct seen {
    int largest_port;
};

static void
note_ports(void *aux, const struct order_problem *op)
{
    struct seen *seen = aux;

    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *s = &op->stages[i];

        for (size_t k = 0; k < s->n_demands; k++) {
            seen->largest_port = MAX(seen->largest_port, s->demands[k].port);
        }
    }
}

FIXTURE_TEST(the_simulator_can_hide_uplinks_from_orders)
{
    struct seen seen = { 0 };
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
        .input = note_ports, .aux = &seen, .hosts_only = true,
    };
    struct workload *w = make_workload(mixed, ARRAY_SIZE(mixed));
    struct sim_result result;

    simulate(w, &options, &result);
    assert_int_equal(seen.largest_port, 2 * N_HOSTS - 1);
    sim_result_uninit(&result);

    options.hosts_only = false;
    simulate(w, &options, &result);
    assert_int_equal(seen.largest_port, 2 * (N_HOSTS + N_LEAVES) - 1);
    sim_result_uninit(&result);
    workload_destroy(w);
}
