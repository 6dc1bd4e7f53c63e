/* SPDX-License-Identifier: Apache-2.0 */

/* Tests of the parts of the lab that need no namespace. */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/southbound/topology/topology.h"
#include "lab/cluster/fabric.h"
#include "lab/cluster/leaf-spine.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "lab/measure/sampler.h"
#include "lab/measure/stall-watch.h"
#include "lab/run/run.h"
#include "openvswitch/dynamic-string.h"
#include "policies/policy.h"
#include "reporting/report.h"
#include "scenario/scenario.h"
#include "tests/unit/unit-test.h"
#include "util.h"

UNIT_TEST(a_port_has_eight_levels)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    struct policy *policy;
    const char *text;

    assert_null(policy_from_string(
        "p", "{\"name\": \"p\", \"order\": \"stage\"}", &policy));
    fabric_put_shaping(&ds, "p3", 50000000, 9000, QUEUES_STRICT, policy);
    text = ds_cstr(&ds);
    assert_non_null(strstr(text, "classid 1:1 htb rate 50000000bit "
                           "ceil 50000000bit"));
    for (int level = 0; level < 8; level++) {
        char *class = xasprintf("classid 1:1%d htb", level);

        assert_non_null(strstr(text, class));
        free(class);
    }
    for (int level = 0; level < 7; level++) {
        char *match = xasprintf(
            "match ip tos 0x%02x 0xfc flowid 1:1%d\n",
            (level ? policy->dscp[level - 1] : policy->control_dscp) << 2,
            level);

        assert_non_null(strstr(text, match));
        free(match);
    }
    assert_non_null(strstr(text, "protocol arp prio 9 u32 match u32 0 0 "
                           "flowid 1:10\n"));
    policy_destroy(policy);
    ds_destroy(&ds);
}

UNIT_TEST(a_port_may_have_one_queue)
{
    for (int queues = QUEUES_FIFO; queues <= QUEUES_ECN; queues++) {
        struct ds ds = DS_EMPTY_INITIALIZER;

        fabric_put_shaping(&ds, "p3", 50000000, 9000, queues, NULL);
        assert_non_null(strstr(ds_cstr(&ds), "htb rate 50000000bit"));
        assert_non_null(strstr(ds_cstr(&ds), "bfifo limit"));
        assert_null(strstr(ds_cstr(&ds), "filter"));
        ds_destroy(&ds);
    }
}

UNIT_TEST(names_derive_from_the_lab)
{
    struct plan *plan;

    assert_null(plan_create("ab1", NULL, NULL, &plan));
    assert_string_equal(plan->hosts[7].node_ns, "scl-ab1-n7");
    assert_string_equal(plan->hosts[7].pins,
                        "/sys/fs/bpf/stagecoach-lab-ab1/h7");
    assert_true(plan_owns_ns(plan, plan->hosts[7].node_ns));
    assert_true(plan_owns_ns(plan, "scl-ab1-fab"));
    assert_false(plan_owns_ns(plan, "scl-ab-fab"));
    assert_false(plan_owns_ns(plan, "scl-ab12-fab"));
    assert_false(plan_owns_ns(plan, "px-h0"));
    plan_destroy(plan);
}

/* Returns a plan with files in the new folder 'dir', a template of
 * mkdtemp(). */
static struct plan *
make_plan(char *dir)
{
    struct plan *plan;

    assert_non_null(mkdtemp(dir));
    assert_null(plan_create("ab1", dir, NULL, &plan));
    return plan;
}

static void
remove_plan(struct plan *plan, const char *dir)
{
    char *file = leaf_spine_topology(plan);

    unlink(file);
    rmdir(dir);
    free(file);
    plan_destroy(plan);
}

/* The controller's own reader accepts the file. */
UNIT_TEST(racks_have_a_topology_file)
{
    char dir[] = "/tmp/test-lab-XXXXXX";
    struct plan *plan = make_plan(dir);
    char *file = leaf_spine_topology(plan);
    struct topology *t;

    plan->n_hosts = 4;
    plan->rate_bps = 50000000;
    plan->leaf_spine = (struct leaf_spine) { 2, 2, 4 };
    for (int blind = 0; blind < 2; blind++) {
        plan->blind = blind;
        assert_null(leaf_spine_write_topology(plan));
        assert_null(topology_read(file, &t));
        assert_int_equal(t->n_switches, 4);
        assert_string_equal(t->switches[2].name, "spine0");
        assert_int_equal(t->switches[2].datapath, 3);
        assert_int_equal(t->n_links, 4);
        assert_int_equal(t->links[1].ends[0].sw, 0);
        assert_int_equal(t->links[1].ends[1].sw, 3);
        assert_true(t->links[1].capacity
                    == (blind ? INT64_C(10000000000000) : 12500000));
        assert_int_equal(t->n_hosts, 4);
        assert_int_equal(t->hosts[2].at.sw, 1);
        assert_int_equal(t->hosts[3].at.port, 2);
        assert_true(t->hosts[3].capacity == 50000000);
        topology_destroy(t);
    }
    free(file);
    remove_plan(plan, dir);
}

/* The queues of a switch with the kernel's datapath are those of the
 * controller, unless its ports have one. */
UNIT_TEST(the_controller_has_queues_in_the_kernel)
{
    struct scenario s = { .n_hosts = 2, .rate_bps = 50000000,
                          .datapath = DATAPATH_KERNEL };
    char dir[] = "/tmp/test-lab-XXXXXX";
    struct plan *plan = make_plan(dir);
    char *file = leaf_spine_topology(plan);
    struct topology *t;

    for (s.queues = QUEUES_STRICT; s.queues <= QUEUES_ECN; s.queues++) {
        bool strict = s.queues == QUEUES_STRICT;

        plan_set_scenario(plan, &s);
        assert_true(plan_has_controller_queues(plan) == strict);
        assert_null(leaf_spine_write_topology(plan));
        assert_null(topology_read(file, &t));
        assert_int_equal(t->n_switches, 1);
        assert_int_equal(t->n_links, 0);
        assert_int_equal(t->hosts[1].at.port, 2);
        assert_true(!t->switches[0].database == !strict);
        topology_destroy(t);
    }
    free(file);
    remove_plan(plan, dir);
}

UNIT_TEST(hosts_have_agents_by_their_actuators)
{
    static const struct scenario s = { .n_hosts = 4,
                                       .actuators = {
                                           ACTUATOR_SHIM, ACTUATOR_BPF,
                                           ACTUATOR_NONE, ACTUATOR_NONE } };
    char dir[] = "/tmp/test-lab-XXXXXX";
    struct plan *plan = make_plan(dir);

    plan_set_scenario(plan, &s);
    for (int plain = 0; plain < 2; plain++) {
        plan->plain = plain;
        assert_int_equal(plan_n_agents(plan), plain ? 0 : 2);
        for (int i = 0; i < s.n_hosts; i++) {
            assert_true(plan_orders_with(plan, i, s.actuators[i]) == !plain);
            assert_true(plan_has_agent(plan, i) == (i < 2 && !plain));
        }
        assert_false(plan_orders_with(plan, 1, ACTUATOR_SHIM));
    }
    remove_plan(plan, dir);
}

UNIT_TEST(a_report_names_what_chooses_queues)
{
    static const struct {
        enum fabric_kind fabric;
        enum ovs_datapath datapath;
        enum port_queues queues;
        const char *running;
        bool in_sync;
        const char *text;
    } rows[] = {
        { FABRIC_OVS, 0, QUEUES_STRICT, "netdev", true, "by DSCP in the lab" },
        { FABRIC_OVS, 0, QUEUES_STRICT, NULL, true, "unknown" },
        { FABRIC_LEAF_SPINE, 0, QUEUES_STRICT, "netdev", true, "ignores" },
        { FABRIC_BRIDGE, 0, QUEUES_STRICT, NULL, true, "a bridge" },
        { FABRIC_OVS, 0, QUEUES_FIFO, "netdev", true, "one at each port" },
        { FABRIC_OVS, DATAPATH_KERNEL, QUEUES_ECN, "system", true, "marks" },
        { FABRIC_OVS, DATAPATH_KERNEL, QUEUES_STRICT, "system", true,
          "by the controller's flows" },
        { FABRIC_OVS, DATAPATH_KERNEL, QUEUES_STRICT, "system", false,
          "unknown" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct plan plan = {
            .fabric = rows[i].fabric, .datapath = rows[i].datapath,
            .queues = rows[i].queues,
        };

        assert_non_null(strstr(fabric_queues_to_string(
            &plan, rows[i].running, rows[i].in_sync), rows[i].text));
    }
}

UNIT_TEST(names_that_could_collide_are_refused)
{
    static const char *const bad[] = {
        "", "a-b", "../x", "ninechars", "a b",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct plan *plan;
        char *error = plan_create(bad[i], NULL, NULL, &plan);

        assert_non_null(error);
        assert_null(plan);
        free(error);
    }
}

UNIT_TEST(a_stall_is_reported_once)
{
    struct stall_watch *sw = stall_watch_create(50000000);
    int told = 0;

    /* Traffic for 3 s, then only retransmissions. */
    for (int ms = 0; ms <= 12000; ms += 500) {
        bool stalled = stall_watch_job(sw, "a", "t0", 7,
                                       ms <= 3000 ? 1000000
                                       : ms % 2000 ? 60 : 9000, ms);

        assert_true(!stalled || (ms > 8000 && ms <= 8500));
        told += stalled;
    }
    assert_int_equal(told, 1);

    /* The job continues, and stalls again. */
    assert_false(stall_watch_job(sw, "a", "t0", 8, 1000000, 12500));
    for (int ms = 13000; ms <= 20000; ms += 500) {
        told += stall_watch_job(sw, "a", "t0", 8, 0, ms);
    }
    assert_int_equal(told, 2);

    /* Time between stages, without samples, is not a stall. */
    assert_false(stall_watch_job(sw, "a", "t0", 8, 0, 90000));
    stall_watch_destroy(sw);
}

UNIT_TEST(computing_is_not_a_stall)
{
    struct stall_watch *sw = stall_watch_create(50000000);

    for (int ms = 0; ms <= 30000; ms += 500) {
        assert_false(stall_watch_job(sw, "a", "t0", ms / 4000, 0, ms));
    }
    stall_watch_destroy(sw);
}

/* Events of a search change the report and the list of running jobs. */
UNIT_TEST(events_update_the_state_of_a_search)
{
    static const char *const lines[] = {
        "{\"event\": \"search-begin\", \"time\": 1000500, \"cojob\": \"a\","
        " \"jobs\": 2}",
        "{\"event\": \"job-begin\", \"time\": 1000600, \"cojob\": \"a\","
        " \"job\": \"t0\", \"hyperparameters\": {}}",
        "{\"event\": \"job-begin\", \"time\": 1000600, \"cojob\": \"a\","
        " \"job\": \"t1\", \"hyperparameters\": {}}",
        "{\"event\": \"stage-begin\", \"time\": 1000700, \"cojob\": \"a\","
        " \"rung\": 0, \"iterations\": 10, \"jobs\": [\"t0\", \"t1\"]}",
        "{\"event\": \"job-ready\", \"time\": 1001000, \"cojob\": \"a\","
        " \"job\": \"t0\", \"seconds\": 0.5}",
        "{\"event\": \"job-ready\", \"time\": 1001100, \"cojob\": \"a\","
        " \"job\": \"t1\", \"seconds\": 0.6}",
        "{\"event\": \"progress\", \"time\": 1001500, \"cojob\": \"a\","
        " \"job\": \"t0\", \"rung\": 0, \"iteration\": 10, \"loss\": 1.5}",
        "this is not JSON",
        "{\"event\": \"sneeze\", \"time\": 1001500}",
        "{\"event\": \"progress\", \"time\": 1001600, \"cojob\": \"a\","
        " \"job\": \"t1\", \"rung\": 0, \"iteration\": 4, \"loss\": 1.9,"
        " \"accuracy\": 0.25}",
    };
    struct scenario_search ss = {
        .cojob = CONST_CAST(char *, "a"),
        .text = CONST_CAST(char *,
            "{\"placements\": [{\"workers\": [\"h0\"], \"servers\": [\"h2\"]},"
            "                  {\"workers\": [\"h1\"], \"servers\": []}]}"),
    };
    struct report *r = report_create("x", "lab");
    struct report_policy *p = report_add_policy(r, "fair");
    struct ds ds = DS_EMPTY_INITIALIZER;
    struct run_job jobs[4];
    struct run *run;
    struct plan *plan;

    assert_null(plan_create("x", NULL, NULL, &plan));
    run = search_run_create(plan, &ss, p, 1000000, 0);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        search_run_event(run, lines[i]);
    }

    /* t0 has reached the target, t1 trains. */
    assert_int_equal(run->class->jobs(run, jobs, 4), 1);
    assert_string_equal(jobs[0].job, "t1");
    assert_int_equal(jobs[0].hosts, 1 << 1);
    assert_int_equal(jobs[0].target, 10);
    run->class->status(run, &ds);
    assert_string_equal(ds_cstr(&ds), " rung 0 4/10");

    search_run_event(run, "{\"event\": \"stage-end\", \"time\": 1003000,"
                     " \"cojob\": \"a\", \"rung\": 0, \"seconds\": 2}");
    search_run_event(run, "{\"event\": \"search-end\", \"time\": 1003000,"
                     " \"cojob\": \"a\", \"best\": \"t1\", \"seconds\": 2}");
    assert_int_equal(run->class->jobs(run, jobs, 4), 0);
    assert_int_equal(p->n_stages, 1);
    assert_float_equal(p->stages[0].start, 0.7, 1e-9);
    assert_float_equal(p->startup_s, 1.1, 1e-9);
    assert_float_equal(p->stages[0].end, 3, 1e-9);
    assert_float_equal(p->searches[0].accuracy, 0.25, 1e-9);

    ds_destroy(&ds);
    run->class->destroy(run);
    plan_destroy(plan);
    report_destroy(r);
}

UNIT_TEST(tools_fail_with_their_last_line)
{
    static const char *const fails[] = {
        "sh", "-c", "echo one >&2; echo two >&2; exit 3", NULL
    };
    static const char *const hangs[] = { "sleep", "100", NULL };
    static const char *const missing[] = { "/nonexistent/tool", NULL };
    static const char *const echoes[] = { "cat", NULL };
    char *output, *error;

    assert_is(tool_run(NULL, fails, NULL, 5000, &output), "sh -c: two");
    assert_null(output);

    assert_is(tool_run(NULL, hangs, NULL, 50, NULL), "sleep: timed out");

    error = tool_run(NULL, missing, NULL, 5000, NULL);
    assert_says(error, "No such file or directory");

    error = tool_run(NULL, echoes, "some input\n", 5000, &output);
    assert_null(error);
    assert_is(output, "some input\n");
}

/* Shortened output of the kernel. */
UNIT_TEST(tcp_counters_are_found_by_name)
{
    static const char text[] =
        "TcpExt: SyncookiesSent TCPTimeouts TCPTimeoutsOther TCPLast\n"
        "TcpExt: 1 23 4 18446744073709551615\n"
        "IpExt: InOctets TCPTimeouts\n"
        "IpExt: 77 99\n"
        "MPTcpExt: Odd\n";
    static const struct {
        const char *group, *name;
        uint64_t value;
    } there[] = {
        { "TcpExt", "SyncookiesSent", 1 }, { "TcpExt", "TCPTimeouts", 23 },
        { "TcpExt", "TCPLast", UINT64_MAX }, { "IpExt", "TCPTimeouts", 99 },
    };
    static const char *const missing[][2] = {
        { "TcpExt", "TCPTimeout" }, { "TcpExt", "TcpExt:" },
        { "Tcp", "TCPTimeouts" }, { "MPTcpExt", "Odd" },
    };
    uint64_t value;

    for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
        assert_true(sampler_find_counter(text, there[i].group, there[i].name,
                                         &value));
        assert_true(value == there[i].value);
    }
    for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
        assert_false(sampler_find_counter(text, missing[i][0], missing[i][1],
                                          &value));
    }
    assert_false(sampler_find_counter("TcpExt: A B\nTcpExt: 1\n", "TcpExt",
                                      "B", &value));
    assert_false(sampler_find_counter("TcpExt: A\nTcpExt: x\n", "TcpExt", "A",
                                      &value));
    assert_false(sampler_find_counter("", "TcpExt", "A", &value));
}
