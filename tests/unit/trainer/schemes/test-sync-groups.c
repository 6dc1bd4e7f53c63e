/* SPDX-License-Identifier: Apache-2.0 */

/* Groups that wait each for its own, in virtual time: their members, what a
 * straggler costs, and what a pause changes. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/trainer/schemes/sync-cluster.h"
#include "tests/unit/unit-test.h"
#include "trainer/schemes/groups.h"

/* All workers' steps in a second, over those without a delay, when worker
 * 'slow' takes four times as long as the others: as Basu et al. have it,
 * (G - 1 + 1 / 4) / G. */
static double
throughput(const char *scheme, int slow)
{
    double speeds[N];
    uint64_t before = 0, after = 0;
    struct cluster c;
    double began, result;

    for (int i = 0; i < N; i++) {
        speeds[i] = i == slow ? 200 : 800;
    }
    cluster_init(&c, scheme, N, speeds);
    cluster_run(&c, 120);
    began = c.now;
    for (int i = 0; i < N; i++) {
        before += c.n_steps[i];
    }
    cluster_run(&c, 400);
    for (int i = 0; i < N; i++) {
        after += c.n_steps[i];
    }
    result = (after - before) / (c.now - began) / (N * 800 / 64.);
    cluster_uninit(&c);
    return result;
}

UNIT_TEST(groups_bound_the_cost_of_a_straggler)
{
    static const char *const schemes[] = {
        "groups,groups=2", "groups,groups=4", "groups,groups=8", "groups",
    };
    static const double expected[] = { 0.625, 0.8125, 0.90625, 0.90625 };

    for (size_t i = 0; i < 4; i++) {
        double x = throughput(schemes[i], 3);

        if (fabs(x - expected[i]) > 0.02) {
            fail_msg("%s: %g, %g expected", schemes[i], x, expected[i]);
        }
    }

    /* No worker is slow: one group stays one. */
    assert_near(throughput("groups", -1), 1);
}

/* One group of all and groups of one are schemes that have their own names. */
UNIT_TEST(one_group_is_bsp_and_groups_of_one_are_asp)
{
    static const char *const pairs[][2] = {
        { "groups,groups=1", "bsp" },
        { "groups,groups=8,tau=1000", "asp" },
    };

    for (size_t i = 0; i < N_ELEMENTS(pairs); i++) {
        struct cluster groups, other;

        cluster_init(&groups, pairs[i][0], N, mixed);
        cluster_init(&other, pairs[i][1], N, mixed);
        for (int k = 1; k < 60; k++) {
            cluster_run(&groups, k);
            cluster_run(&other, k);
            assert_near(groups.now, other.now);
            assert_near(*sync_weights(groups.sync), *sync_weights(other.sync));
        }
        cluster_uninit(&groups);
        cluster_uninit(&other);
    }
}

/* The worker that is slow is alone soon, and not for longer than it is slow.
 * When another one is, that one is alone instead. */
UNIT_TEST(groups_follow_the_slow_worker)
{
    double speeds[N] = { 800, 800, 800, 200, 800, 800, 800, 800 };
    const struct group_plan *plan;
    struct cluster c;

    cluster_init(&c, "groups", N, speeds);
    plan = groups_plan(c.sync);
    cluster_run(&c, 1);
    assert_int_equal(plan->n_groups, 2);
    assert_int_equal(plan->n[1], 1);
    assert_int_equal(plan->order[N - 1], 3);
    assert_true(c.now < 1.1 * 64 / 200);
    speeds[3] = 800;
    speeds[5] = 200;
    cluster_run(&c, 60);
    assert_int_equal(plan->n_groups, 2);
    assert_int_equal(plan->order[N - 1], 5);
    speeds[5] = 800;
    cluster_run(&c, 200);
    assert_int_equal(plan->n_groups, 1);
    for (int i = 0; i < N; i++) {
        assert_int_equal(groups_counted(c.sync, i), c.n_steps[i]);
    }
    cluster_uninit(&c);
}

UNIT_TEST(groups_are_as_many_as_servers_and_as_allowed)
{
    double speeds[N] = { 800, 800, 800, 400, 200, 100, 800, 800 };
    static const char *const schemes[] = { "groups", "groups,max=3",
                                           "groups,max=1" };
    static const int expected[] = { 4, 2, 1 };

    for (size_t i = 0; i < N_ELEMENTS(schemes); i++) {
        struct cluster c;

        cluster_init(&c, schemes[i], N, speeds);
        groups_limit(c.sync, 3);
        cluster_run(&c, 60);
        assert_int_equal(groups_plan(c.sync)->n_groups,
                         expected[i] > 2 ? 2 : expected[i]);
        groups_limit(c.sync, 100);
        cluster_run(&c, 200);
        assert_int_equal(groups_plan(c.sync)->n_groups, expected[i]);
        cluster_uninit(&c);
    }
}

/* One worker is 20 times slower. */
UNIT_TEST(groups_bound_the_age_of_gradients)
{
    static const struct {
        const char *scheme;
        uint64_t tau;
        uint64_t others;        /* Of its group. */
        double throughput;      /* At most. */
    } rows[] = {
        { "groups,groups=8,tau=1", 1, 0, 0.11 },
        { "groups,groups=8,tau=3", 3, 0, 0.21 },
        { "groups,tau=5", 5, 0, 0.31 },
        { "groups,groups=4,tau=8", 8, 1, 0.45 },
        { "groups,tau=100", 100, 0, 1 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double speeds[N] = { 800, 800, 800, 40, 800, 800, 800, 800 };
        uint64_t n = 0;
        struct cluster c;

        cluster_init(&c, rows[i].scheme, N, speeds);
        cluster_run(&c, 100);
        for (int k = 0; k < N; k++) {
            n += c.n_steps[k];
        }
        assert_true(c.oldest <= rows[i].tau * N + rows[i].others);
        assert_true(c.oldest > (rows[i].tau - 1) * N
                    || rows[i].tau == 100);
        assert_true(n / c.now / (N * 800 / 64.) < rows[i].throughput);
        cluster_uninit(&c);
    }
}

/* Has 'worker' rest if it has nothing to do now. */
static bool
try_rest(struct cluster *c, int worker)
{
    cluster_start(c);
    if (c->free_at[worker] >= 0 || c->owed[worker]) {
        return false;
    }
    assert_null(groups_pause_worker(c->sync, worker));
    return true;
}

/* Has 'worker' rest after its step. */
static void
rest(struct cluster *c, int worker)
{
    c->rests[worker] = true;
    while (!try_rest(c, worker)) {
        cluster_run(c, c->n_steps[0] + 1);
    }
}

static void
wake(struct cluster *c, int worker)
{
    assert_null(groups_resume_worker(c->sync, worker));
    c->rests[worker] = false;
    c->owed[worker]++;
}

static void
assert_counted(const struct cluster *c)
{
    for (int i = 0; i < N; i++) {
        assert_int_equal(groups_counted(c->sync, i), c->n_steps[i]);
    }
}

/* Neither one of a group nor a whole one: the others make more steps than
 * 'tau' lets them while it runs. */
UNIT_TEST(groups_continue_without_paused_workers)
{
    double speeds[N];
    struct cluster c;
    uint64_t n;

    for (int i = 0; i < N; i++) {
        speeds[i] = 800;
    }
    cluster_init(&c, "groups,groups=2,tau=1", N, speeds);
    cluster_run(&c, 3);
    rest(&c, 5);
    n = c.n_steps[5];
    cluster_run(&c, 10);
    assert_int_equal(c.n_steps[5], n);
    assert_true(c.n_steps[4] >= 8);
    for (int i = 4; i < N; i++) {
        if (i != 5) {
            rest(&c, i);
        }
    }
    cluster_run(&c, 30);
    assert_true(c.n_steps[4] < 15);
    assert_counted(&c);

    /* All that wake make the next step, and age again. */
    c.oldest = 0;
    for (int i = 4; i < N; i++) {
        wake(&c, i);
    }
    cluster_run(&c, 40);
    for (int i = 4; i < N; i++) {
        assert_true(c.n_steps[i] >= n + 8);
    }
    assert_true(c.oldest <= N + 3);
    assert_counted(&c);
    cluster_uninit(&c);
}

/* A gradient is one of all, whichever workers are paused. */
UNIT_TEST(updates_without_paused_workers_keep_their_weight)
{
    struct cluster c;

    cluster_init(&c, "groups,groups=1", N, mixed);
    for (int i = 0; i < N - 2; i++) {
        *sync_inbox(c.sync, i) = 1;
        assert_null(c.spec.class->push(c.sync, i, 0, 64, 2));
    }
    assert_null(groups_pause_worker(c.sync, N - 1));
    assert_near(*sync_weights(c.sync), 0);
    assert_null(groups_pause_worker(c.sync, N - 2));
    assert_near(*sync_weights(c.sync), -0.1 * (N - 2) / N);
    *groups_inbox(c.sync, 0) = 1;
    assert_null(groups_push(c.sync, 0, 64 * (N - 2), 2));
    assert_near(*sync_weights(c.sync), -0.2 * (N - 2) / N);
    assert_int_equal(groups_counted(c.sync, 0), 2);
    assert_int_equal(groups_counted(c.sync, N - 1), 0);
    cluster_uninit(&c);
}

UNIT_TEST(a_worker_pauses_once_and_not_after_its_push)
{
    struct cluster c;
    char *error;

    cluster_init(&c, "groups,groups=1", N, mixed);
    error = groups_resume_worker(c.sync, 1);
    assert_is(error, "resumption of a worker that is not paused");
    assert_null(groups_pause_worker(c.sync, 1));
    error = groups_pause_worker(c.sync, 1);
    assert_is(error, "pause of a worker that is paused");
    error = c.spec.class->push(c.sync, 1, 0, 64, 2);
    assert_non_null(error);
    free(error);
    assert_null(c.spec.class->push(c.sync, 2, 0, 64, 2));
    error = groups_pause_worker(c.sync, 2);
    assert_is(error, "pause of a worker that has pushed");
    cluster_uninit(&c);
}

/* The means that group servers push do what the workers' gradients do. */
UNIT_TEST(means_of_groups_count_as_their_workers)
{
    struct cluster c, means;

    cluster_init(&c, "groups,groups=2", N, mixed);
    cluster_init(&means, "groups,groups=2", N, mixed);
    for (int k = 0; k < 3; k++) {
        const struct group_plan *plan = groups_plan(c.sync);
        double sum = 0;
        char *error;

        for (int i = 0; i < plan->n[1]; i++) {
            int worker = plan->order[plan->first[1] + i];

            *sync_inbox(c.sync, worker) = i;
            sum += i;
            assert_null(c.spec.class->push(c.sync, worker, k, 64, 2));
        }
        *groups_inbox(means.sync, 1) = sum / plan->n[1];
        assert_null(groups_push(means.sync, 1, 64 * plan->n[1], 2));
        assert_near(*sync_weights(c.sync),
                    *sync_weights(means.sync));
        assert_int_equal(groups_counted(means.sync, 0), 0);
        assert_int_equal(groups_counted(means.sync, N - 1), k + 1);
        assert_true(groups_ready(means.sync, 1));

        error = c.spec.class->push(c.sync, 0, k, 1, 0);
        assert_true((error == NULL) == !k);
        free(error);
    }
    cluster_uninit(&c);
    cluster_uninit(&means);
}

/* A plan has every worker once, and groups are pieces of its order. */
static void
assert_plan(const struct group_plan *plan, int n_groups, const int sizes[])
{
    int at = 0;

    assert_int_equal(plan->n_groups, n_groups);
    for (int g = 0; g < n_groups; g++) {
        assert_int_equal(plan->first[g], at);
        assert_int_equal(plan->n[g], sizes[g]);
        for (int i = 0; i < plan->n[g]; i++) {
            assert_int_equal(plan->group[plan->order[at++]], g);
        }
    }
    assert_int_equal(at, plan->n_workers);
}

UNIT_TEST(plans_put_slow_workers_together)
{
    static const double one[N] = { 4, 1, 1, 1, 1, 1, 1, 1 };
    static const double two[N] = { 1, 3, 1, 1, 1, 3, 1, 1 };
    static const double steps[N] = { 1, 2, 1, 4, 1, 8, 1, 1 };
    static const double half[N] = { 1, 1.5, 1, 1.5, 1, 1.5, 1, 1.5 };
    static const double more[N] = { 1, 1.6, 1, 1.6, 1, 1.6, 1, 1.6 };
    static const double twice[N] = { 1, 2, 1, 2, 1, 2, 1, 2 };
    struct group_plan plan;

    group_plan_init(&plan, N);
    assert_plan(&plan, 1, (int[]) { N });
    assert_near(group_plan_time(&plan, one), 4);
    group_plan_divide(&plan, 4);
    assert_near(group_plan_time(&plan, one), 8 / 6.5);
    group_plan_fit(&plan, one, N, 0.2);
    assert_plan(&plan, 2, (int[]) { 7, 1 });
    assert_int_equal(plan.order[N - 1], 0);
    assert_near(group_plan_time(&plan, one), 8 / 7.25);
    group_plan_fit(&plan, one, 1, 0.2);
    assert_plan(&plan, 1, (int[]) { N });
    group_plan_fit(&plan, two, N, 0.2);
    assert_plan(&plan, 2, (int[]) { 6, 2 });
    group_plan_fit(&plan, steps, N, 0.2);
    assert_plan(&plan, 4, (int[]){ 5, 1, 1, 1 });

    /* 1.2, 1.23 and 1.33 of the time without a delay; one group has 1.5, 1.6
     * and 2. */
    group_plan_fit(&plan, half, N, 0.201);
    assert_plan(&plan, 2, (int[]){ 4, 4 });
    group_plan_fit(&plan, more, N, 0.2);
    assert_plan(&plan, 1, (int[]){ N });
    group_plan_fit(&plan, twice, N, 0.2);
    assert_plan(&plan, 2, (int[]){ 4, 4 });
    group_plan_uninit(&plan);
}
