/* SPDX-License-Identifier: Apache-2.0 */

#include <limits.h>
#include <math.h>
#include <string.h>

#include "order/lookahead/judge.h"
#include "order/lookahead/plain-network.h"
#include "order/lookahead/plan.h"
#include "tests/unit/unit-test.h"

#define N_PORTS 2
#define MAX_JOBS 4

/* Searches on two ports of 1 byte per second. */
struct example {
    struct judge_situation s;
    struct judge_search searches[MAX_JOBS];
    struct judge_job jobs[MAX_JOBS];
    struct judge_demand demands[MAX_JOBS][N_PORTS];
    struct judge_flow flows[MAX_JOBS][N_PORTS];
    struct announced_rung rungs[MAX_JOBS][2];
};

static const double capacity[N_PORTS] = { 1, 1 };
static const int ports[N_PORTS] = { 0, 1 };

static void
example_init(struct example *e)
{
    memset(e, 0, sizeof *e);
    e->s = (struct judge_situation){ .n_ports = N_PORTS,
                                     .capacity = capacity,
                                     .searches = e->searches,
                                     .jobs = e->jobs,
                                     .n_levels = INT_MAX,
                                     .refresh_s = 0.2 };
}

/* Adds a job that moves 'a' and 'b' bytes in each of ten iterations to the
 * last search. */
static void
add_job(struct example *e, double a, double b)
{
    size_t i = e->s.n_searches - 1, k = e->s.n_jobs++;
    struct judge_job *job = &e->jobs[k];
    const double bytes[N_PORTS] = { a, b };

    *job = (struct judge_job){ .demands = e->demands[k],
                               .flows = e->flows[k],
                               .exchange = a > b ? a : b,
                               .state = JUDGE_COMPUTING,
                               .iterations = 10 };
    for (int p = 0; p < N_PORTS; p++) {
        if (bytes[p] > 0) {
            e->flows[k][job->n_flows++] = (struct judge_flow){
                .ports = &ports[p], .n_ports = 1, .bytes = bytes[p]
            };
            e->demands[k][job->n_demands++] =
                (struct judge_demand){ p, bytes[p] };
        }
    }
    e->searches[i].n_jobs++;
    e->rungs[i][0].n_jobs++;
}

/* Adds a search that keeps one job, unless 'later' is 0. */
static void
add_search(struct example *e, int later)
{
    size_t i = e->s.n_searches++;

    e->searches[i] = (struct judge_search){ .weight = 1,
                                            .first_job = e->s.n_jobs,
                                            .rungs = e->rungs[i],
                                            .n_rungs = later ? 2 : 1 };
    e->rungs[i][0].iterations = 10;
    e->rungs[i][1] = (struct announced_rung){ later, 1 };
}

/* Returns the objective of one run of judge_run(). */
static double
judged(const struct judge_situation *s, const size_t places[], double *ends)
{
    struct judge *judge = judge_create(s);
    double objective = judge_run(judge, NULL, places, INFINITY, ends);

    judge_destroy(judge);
    return objective;
}

/* Two searches of one job each; only the first may need port 1. */
static void
make_two(struct example *e, double first, double first_b, double second)
{
    example_init(e);
    add_search(e, 0);
    add_job(e, first, first_b);
    add_search(e, 0);
    add_job(e, second, 0);
}

static const size_t in_order[] = { 0, 0 };

/* The rungs end at these times, and the objective is 'objective'. */
static void
assert_ends(const struct example *e, const size_t places[], double objective,
            double first, double second)
{
    double ends[2];

    assert_float_equal(judged(&e->s, places, ends), objective, 1e-9);
    assert_float_equal(ends[0], first, 1e-9);
    assert_float_equal(ends[1], second, 1e-9);
}

UNIT_TEST(a_job_alone_takes_its_isolated_time)
{
    struct example e;

    example_init(&e);
    add_search(&e, 5);
    add_job(&e, 2, 1);
    e.jobs[0].compute = 0.5;
    assert_ends(&e, in_order, 37, 24.5, 37); /* It begins with an exchange. */
}

/* The second search needs less. */
UNIT_TEST(a_port_is_served_by_rank_or_shared)
{
    struct example e;

    make_two(&e, 2, 0, 1);
    assert_ends(&e, in_order, 40, 30, 10);
    e.s.n_levels = 1;
    assert_ends(&e, in_order, 50, 30, 20);

    /* The last level has a fifth of the port. */
    e.s.n_levels = 2;
    e.s.min_share = 0.2;
    assert_ends(&e, in_order, 42.5, 30, 12.5);
}

/* The job that survives is the second one, which needs more. */
UNIT_TEST(a_rung_begins_when_the_slowest_job_has_ended)
{
    static const size_t places[] = { 1, 0 };
    struct example e;

    example_init(&e);
    add_search(&e, 5);
    add_job(&e, 1, 0);
    add_job(&e, 0, 3);
    assert_ends(&e, places, 45, 30, 45);
}

UNIT_TEST(runs_start_from_the_same_state)
{
    static const double factors[] = { 0.1, 1 };
    struct example e;
    struct judge *judge;
    double ends[2][2];

    make_two(&e, 1, 0.8, 1.5);
    judge = judge_create(&e.s);
    judge_run(judge, NULL, in_order, INFINITY, ends[0]);
    assert_float_equal(judge_run(judge, factors, in_order, INFINITY, NULL), 35,
                       1e-9);
    judge_run(judge, NULL, in_order, INFINITY, ends[1]);
    assert_memory_equal(ends[0], ends[1], sizeof ends[0]);
    judge_destroy(judge);
}

/* The second search goes first until its early phase is over, after three of
 * its ten iterations.  Without it, the first one would, which needs less. */
UNIT_TEST(early_phases_have_ends_that_count)
{
    struct example e;

    make_two(&e, 1, 0, 2);
    e.jobs[1].to_early = 3;
    e.s.early_boost = 100;
    assert_ends(&e, in_order, 16 + 30 + 100 * 6, 16, 30);
    e.s.early_boost = 0;
    assert_float_equal(judged(&e.s, in_order, NULL), 40, 1e-9);
}

/* The first search has more work, but no other needs its second port. */
UNIT_TEST(a_plan_finds_the_better_order)
{
    const struct plan_options options = { .n_runs = 60 };
    double factors[] = { 1, 1 }, again[] = { 1, 1 };
    struct example e;

    make_two(&e, 1, 0.8, 1.5);
    assert_float_equal(plan_improve(&e.s, &options, factors).saved,
                       1 - 35 / 40.0, 1e-9);
    assert_true(factors[0] * 1.8 < factors[1] * 1.5);
    plan_improve(&e.s, &options, again);
    assert_memory_equal(factors, again, sizeof factors);
}

/* The last plan is much worse than the key. */
UNIT_TEST(a_plan_is_never_worse_than_the_key)
{
    struct example e;

    make_two(&e, 1, 0.8, 1.5);
    e.demands[0][1].bytes = 0.1;
    for (int n_runs = 0; n_runs < 12; n_runs++) {
        const struct plan_options options = { .n_runs = n_runs };
        double factors[] = { 100, 1 };

        assert_true(plan_improve(&e.s, &options, factors).saved >= 0);
        assert_true(factors[0] <= factors[1]);
    }
}

/* Alone, the first search takes 20 s and the second one 10 s, which goes
 * first by its key.  The first one needs 25 s in a plain network, and arrived
 * 30 s ago. */
UNIT_TEST(a_search_that_is_late_goes_first)
{
    struct example e;

    make_two(&e, 2, 0, 1);
    e.searches[0].age = 18;
    e.searches[0].plain = (struct plain_times){
        .spent = 12, .before = 10, .end = 25, .whole = 25
    };
    assert_ends(&e, in_order, 40, 30, 10);
    e.s.latest = 1.1;
    assert_ends(&e, in_order, 20 + 30 + JUDGE_LATE * 22.5, 20, 30);
}

/* By its key, the second search goes first.  That would make the first one
 * later than 1.25 times 20 s, which costs more than it saves. */
UNIT_TEST(a_plan_avoids_that_a_search_is_too_late)
{
    const struct plan_options options = { .n_runs = 60 };
    double factors[] = { 1, 1 };
    struct example e;

    make_two(&e, 2, 0, 1);
    e.searches[0].plain.end = e.searches[0].plain.whole = 20;
    e.s.latest = 1.25;
    assert_float_equal(judged(&e.s, in_order, NULL), 40 + JUDGE_LATE * 5,
                       1e-9);
    assert_float_equal(plan_improve(&e.s, &options, factors).saved,
                       1 - 50 / (40 + JUDGE_LATE * 5.0), 1e-9);
}

static void
assert_times(const struct plain_times *t, double before, double end,
             double whole)
{
    assert_true(t->id);
    assert_float_equal(t->before, before, 1e-9);
    assert_float_equal(t->end, end, 1e-9);
    assert_float_equal(t->whole, whole, 1e-9);
}

/* A stage of 10 s, with one of 5 s to follow, begins at 0, and another one of
 * 10 s at 5.  They share the port from then on.  The first search is faster
 * than that in the real network and begins its second stage at 8. */
UNIT_TEST(the_plain_network_follows)
{
    struct plain_network *p = plain_network_create();
    struct plain_times *a, *b;
    struct example e;

    example_init(&e);
    add_search(&e, 5);
    add_job(&e, 1, 0);
    a = &e.searches[0].plain;
    plain_network_follow(p, &e.s, 0);
    assert_times(a, 0, 10, 15);

    add_search(&e, 0);
    add_job(&e, 1, 0);
    b = &e.searches[1].plain;
    e.searches[0].age = 6;
    e.searches[1].age = 1;
    e.searches[1].unknown = true;
    plain_network_follow(p, &e.s, 6);
    assert_times(a, 0, 10, 15);
    assert_true(!b->id);
    e.searches[1].unknown = false;
    plain_network_follow(p, &e.s, 6);
    assert_times(a, 0, 15, 25);
    assert_times(b, 0, 20, 20);

    plain_next(a, 8);
    assert_float_equal(a->spent, 8, 0);
    e.searches[0].age = 0;
    e.searches[0].n_rungs = 1;
    e.rungs[0][0].iterations = e.jobs[0].iterations = 5;
    plain_network_follow(p, &e.s, 8);
    assert_times(a, 15, 25, 25);
    assert_times(b, 0, 20, 20);

    /* Both ended long ago. */
    e.s.n_searches = 0;
    plain_network_follow(p, &e.s, 49);
    e.s.n_searches = 1;
    plain_next(a, 30);
    plain_network_follow(p, &e.s, 50);
    assert_times(a, 0, 5, 5);
    assert_float_equal(a->spent, 0, 0);
    plain_network_destroy(p);
}
