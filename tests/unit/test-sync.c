/* SPDX-License-Identifier: Apache-2.0 */

/* Synchronisation schemes in virtual time: no sockets, no clocks.  A cluster
 * of workers that take as long as they are told minimises (w - 1)^2 / 2. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/backend/backend.h"
#include "trainer/sync/group-plan.h"
#include "trainer/sync/groups.h"
#include "trainer/sync/sync.h"

#define N 8                     /* Workers. */
#define BATCH 512

/* As machines of 8, 16 and 4 cores, in samples a second. */
static const double mixed[N] = { 800, 800, 800, 800, 800, 800, 1600, 400 };

struct cluster {
    struct backend *b;
    struct sync_spec spec;
    struct sync *sync;
    int n_workers;
    const double *speeds;
    uint32_t role[N], n[N];     /* What the scheme told each worker. */
    double w[N];                /* Weights that each has, */
    double w_used[N];           /* and computes with. */
    double free_at[N];          /* When its step ends; < 0: it waits. */
    uint64_t iteration[N];
    uint64_t n_steps[N];
    uint32_t owed[N];           /* Weights that each is to get. */
    bool rests[N];              /* Has nothing to do. */
    bool skips[N];              /* Its step would be dropped. */
    uint64_t most_ahead;        /* Iterations, of the slowest worker. */
    uint64_t n_pushed, began[N];        /* All gradients so far, now and when
                                         * each worker's step began. */
    uint64_t oldest;            /* A gradient's age, in gradients. */
    double now;
};

static void
cluster_init(struct cluster *c, const char *scheme, int n_workers,
             const double *speeds)
{
    memset(c, 0, sizeof *c);
    assert_int_equal(backend_open(&backend_cpu, 0, 1, &c->b), 0);
    assert_null(sync_spec_parse(scheme, &c->spec));
    assert_null(sync_spec_check(&c->spec, n_workers));
    c->n_workers = n_workers;
    c->speeds = speeds;
    c->sync = c->spec.class->create(&(struct sync_config) {
        .backend = c->b, .n_workers = n_workers, .n = 1,
        .optimiser = optimiser_defaults(optimiser_find("sgd"), 0.1f, 0),
        .spec = &c->spec,
    });
    for (int i = 0; i < n_workers; i++) {
        c->free_at[i] = -1;
        c->n[i] = BATCH / n_workers;
        c->owed[i] = 1;
    }
}

static void
cluster_uninit(struct cluster *c)
{
    c->spec.class->destroy(c->sync);
    backend_close(c->b);
}

static void
take_messages(struct cluster *c)
{
    struct sync_message m;
    int to;

    while (c->spec.class->take && c->spec.class->take(c->sync, &to, &m)) {
        if (m.kind == SYNC_ROLE) {
            c->role[to] = m.n;
        } else if (m.kind == SYNC_SKIP) {
            assert_true(c->free_at[to] >= 0);
            assert_true(c->iteration[to] < m.iteration);
            c->skips[to] = true;
            c->free_at[to] = c->now;
        } else {
            assert_int_equal(m.kind, SYNC_ASSIGN);
            c->n[to] = (uint64_t) BATCH * (m.first + m.n) / m.total
                       - (uint64_t) BATCH * m.first / m.total;
        }
    }
}

/* The iteration that a worker is in: that of its weights, and those that it
 * has done since without an answer. */
static uint64_t
clock_of(const struct cluster *c, int i)
{
    return c->iteration[i] + c->owed[i];
}

/* Gives a worker what weights it is to have.  Returns true if it may start. */
static bool
take_weights(struct cluster *c, int i)
{
    const struct sync_class *class = c->spec.class;
    uint32_t ahead = class->ahead ? class->ahead(c->sync) : 0;
    uint64_t iteration;
    float loss;

    while (c->owed[i] && class->ready(c->sync, i, &iteration, &loss)) {
        c->w[i] = *class->weights(c->sync);
        c->iteration[i] = iteration;
        c->owed[i]--;
        if (class->sent) {
            class->sent(c->sync, i);
        }
    }
    return c->owed[i] <= ahead;
}

/* Starts all who may start. */
static void
start_ready(struct cluster *c)
{
    take_messages(c);
    for (int i = 0; i < c->n_workers; i++) {
        uint64_t least = UINT64_MAX;

        if (!take_weights(c, i) || c->free_at[i] >= 0 || c->rests[i]) {
            continue;
        }
        c->w_used[i] = c->w[i];
        c->free_at[i] = c->now + c->n[i] / c->speeds[i];
        c->began[i] = c->n_pushed;
        for (int j = 0; j < c->n_workers; j++) {
            least = c->n_steps[j] < least ? c->n_steps[j] : least;
        }
        if (clock_of(c, i) - least > c->most_ahead) {
            c->most_ahead = clock_of(c, i) - least;
        }
    }
}

static void
finish_step(struct cluster *c, int i)
{
    const struct sync_class *class = c->spec.class;

    if (c->role[i] & SYNC_ROLE_REPORTS) {
        assert_null(class->message(c->sync, i, &(struct sync_message) {
            .kind = SYNC_REPORT, .n = c->n[i],
            .seconds = c->n[i] / c->speeds[i],
        }));
    }
    *class->inbox(c->sync, i) = c->w_used[i] - 1;
    assert_null(class->push(c->sync, i, clock_of(c, i),
                            c->skips[i] ? 0 : c->n[i],
                            (c->w_used[i] - 1) * (c->w_used[i] - 1) / 2));
    c->free_at[i] = -1;
    c->skips[i] = false;
    c->owed[i]++;
    c->n_steps[i]++;
    if (c->n_pushed - c->began[i] > c->oldest) {
        c->oldest = c->n_pushed - c->began[i];
    }
    c->n_pushed++;
}

/* Goes on until worker 0 has done 'n' steps and begins another.  Somebody is
 * always at work: no scheme has all wait for each other. */
static void
run(struct cluster *c, uint64_t n)
{
    for (;;) {
        int next = -1;

        start_ready(c);
        if (c->n_steps[0] >= n && c->free_at[0] >= 0) {
            break;
        }
        for (int i = 0; i < c->n_workers; i++) {
            if (c->free_at[i] >= 0
                && (next < 0 || c->free_at[i] < c->free_at[next])) {
                next = i;
            }
        }
        assert_true(next >= 0);
        c->now = c->free_at[next];
        finish_step(c, next);
    }
}

/* Seconds that 'scheme' takes for 'n' steps of worker 0. */
static double
time_of(const char *scheme, const double *speeds, uint64_t n)
{
    struct cluster c;
    double seconds;

    cluster_init(&c, scheme, N, speeds);
    run(&c, n);
    seconds = c.now;
    cluster_uninit(&c);
    return seconds;
}

static void
assert_near(double x, double expected)
{
    if (fabs(x - expected) > 1e-6 * fabs(expected)) {
        fail_msg("%g, %g expected", x, expected);
    }
}

static void
bsp_is_as_slow_as_its_slowest(void **state)
{
    (void) state;
    assert_near(time_of("bsp", mixed, 50), 50 * 64 / 400.);
}

static void
static_ratios_make_all_end_together(void **state)
{
    (void) state;
    assert_true(fabs(time_of("static,ratios=2:2:2:2:2:2:4:1", mixed, 50)
                     / (50 * BATCH / 6800.) - 1) < 0.035);
}

static void
lbbsp_comes_near_the_sum_of_speeds(void **state)
{
    const char *const schemes[] = { "lbbsp-cpu", "lbbsp-gpu" };

    (void) state;
    for (size_t i = 0; i < 2; i++) {
        struct cluster c;
        double before;

        cluster_init(&c, schemes[i], N, mixed);
        run(&c, 50);
        assert_int_equal(c.role[0], SYNC_ROLE_REPORTS
                                    | (i ? SYNC_ROLE_TRANSFERS : 0));
        before = c.now;
        run(&c, 100);
        assert_true((c.now - before) / (50 * BATCH / 6800.) < 1.1);
        cluster_uninit(&c);
    }
}

static void
backup_does_without_the_slowest(void **state)
{
    struct cluster c;

    (void) state;
    cluster_init(&c, "backup", N, mixed);
    run(&c, 50);
    assert_near(c.now, 50 * 64 / 800.);

    /* Each step of the slowest would be as long as two of the others', and
     * is dropped when they are done. */
    assert_int_equal(c.n_steps[7], 49);
    assert_true(c.skips[7]);
    assert_int_equal(c.n_steps[6], 50);
    cluster_uninit(&c);
}

/* One is late in the first iteration and another one in the third, in which
 * the first one would still be at its first. */
static void
backup_has_the_late_join_at_once(void **state)
{
    double speeds[N] = { 800, 800, 800, 80, 800, 800, 800, 800 };
    struct cluster c;

    (void) state;
    cluster_init(&c, "backup", N, speeds);
    run(&c, 1);
    assert_true(c.skips[3]);
    speeds[3] = 800;
    speeds[5] = 80;
    run(&c, 4);
    assert_near(c.now, 4 * 64 / 800.);
    assert_true(c.n_steps[3] >= 3);
    cluster_uninit(&c);
}

/* What another server's scheme had a worker drop is none of the gradients that
 * are waited for here, unless no others can come. */
static void
backup_does_not_wait_for_those_who_skip(void **state)
{
    struct cluster c;
    uint64_t iteration;
    float loss;

    (void) state;
    cluster_init(&c, "backup", 3, mixed);
    *c.spec.class->inbox(c.sync, 1) = *c.spec.class->inbox(c.sync, 2) = 1;
    assert_null(c.spec.class->push(c.sync, 0, 0, 0, 0));
    assert_null(c.spec.class->push(c.sync, 1, 0, 64, 0));
    assert_false(c.spec.class->ready(c.sync, 1, &iteration, &loss));
    assert_null(c.spec.class->push(c.sync, 2, 0, 64, 0));
    assert_true(c.spec.class->ready(c.sync, 0, &iteration, &loss));
    assert_near(*c.spec.class->weights(c.sync), -0.1);
    for (int i = 0; i < 3; i++) {
        assert_null(c.spec.class->push(c.sync, i, 1, 0, 0));
    }
    assert_true(c.spec.class->ready(c.sync, 0, &iteration, &loss));
    assert_int_equal(iteration, 2);
    cluster_uninit(&c);
}

static void
asp_waits_for_nobody(void **state)
{
    struct cluster c;

    (void) state;
    cluster_init(&c, "asp", N, mixed);
    run(&c, 100);
    assert_near(c.now, 100 * 64 / 800.);
    assert_true(llabs((long long) c.n_steps[6] - 200) <= 1);
    assert_true(llabs((long long) c.n_steps[7] - 50) <= 1);
    cluster_uninit(&c);
}

static void
ssp_keeps_its_bound(void **state)
{
    static const char *const schemes[] = {
        "ssp,staleness=0", "ssp,staleness=1", "ssp,staleness=3",
        "essp,staleness=0", "essp,staleness=1", "essp,staleness=3",
    };
    static const uint64_t bounds[] = { 0, 1, 3, 0, 1, 3 };

    (void) state;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct cluster c;

        cluster_init(&c, schemes[i], N, mixed);
        run(&c, 60);

        /* The slack is used up, and then the slowest decides. */
        assert_int_equal(c.most_ahead, bounds[i]);
        assert_true(c.now >= (60 - bounds[i] - 1) * 64 / 400.);
        cluster_uninit(&c);
    }
}

/* Everybody gets weights as often as all have pushed, and once for each push,
 * also whoever is at work. */
static void
essp_sends_weights_to_workers_at_work(void **state)
{
    const struct sync_class *class = &sync_essp;
    struct cluster c;
    uint64_t iteration;
    float loss;

    (void) state;
    cluster_init(&c, "essp,staleness=2", 2, mixed);
    for (int i = 0; i < 2; i++) {
        assert_true(class->ready(c.sync, i, &iteration, &loss));
        assert_int_equal(iteration, 0);
        class->sent(c.sync, i);
        assert_false(class->ready(c.sync, i, &iteration, &loss));
    }
    assert_int_equal(class->ahead(c.sync), 2);
    for (int k = 0; k < 3; k++) {
        assert_null(class->push(c.sync, 0, k, 1, 0));
        assert_false(class->ready(c.sync, 0, &iteration, &loss));
    }
    assert_null(class->push(c.sync, 1, 0, 1, 0));
    for (int i = 0; i < 2; i++) {
        assert_true(class->ready(c.sync, i, &iteration, &loss));
        assert_int_equal(iteration, 1);
        class->sent(c.sync, i);
        assert_false(class->ready(c.sync, i, &iteration, &loss));
    }
    cluster_uninit(&c);
}

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
    run(&c, 120);
    began = c.now;
    for (int i = 0; i < N; i++) {
        before += c.n_steps[i];
    }
    run(&c, 400);
    for (int i = 0; i < N; i++) {
        after += c.n_steps[i];
    }
    result = (after - before) / (c.now - began) / (N * 800 / 64.);
    cluster_uninit(&c);
    return result;
}

static void
groups_bound_what_a_straggler_costs(void **state)
{
    static const char *const schemes[] = {
        "groups,groups=2", "groups,groups=4", "groups,groups=8", "groups",
    };
    static const double expected[] = { 0.625, 0.8125, 0.90625, 0.90625 };

    (void) state;
    for (size_t i = 0; i < 4; i++) {
        double x = throughput(schemes[i], 3);

        if (fabs(x - expected[i]) > 0.02) {
            fail_msg("%s: %g, %g expected", schemes[i], x, expected[i]);
        }
    }

    /* Nobody is slow: one group stays one. */
    assert_near(throughput("groups", -1), 1);
}

/* The worker that is slow is alone soon, and not for longer than it is slow.
 * When another one is, that one is alone instead. */
static void
groups_follow_who_is_slow(void **state)
{
    double speeds[N] = { 800, 800, 800, 200, 800, 800, 800, 800 };
    const struct group_plan *plan;
    struct cluster c;

    (void) state;
    cluster_init(&c, "groups", N, speeds);
    plan = groups_plan(c.sync);
    run(&c, 1);
    assert_int_equal(plan->n_groups, 2);
    assert_int_equal(plan->n[1], 1);
    assert_int_equal(plan->order[N - 1], 3);
    assert_true(c.now < 1.1 * 64 / 200);
    speeds[3] = 800;
    speeds[5] = 200;
    run(&c, 60);
    assert_int_equal(plan->n_groups, 2);
    assert_int_equal(plan->order[N - 1], 5);
    speeds[5] = 800;
    run(&c, 200);
    assert_int_equal(plan->n_groups, 1);
    for (int i = 0; i < N; i++) {
        assert_int_equal(groups_counted(c.sync, i), c.n_steps[i]);
    }
    cluster_uninit(&c);
}

static void
groups_are_as_many_as_servers(void **state)
{
    double speeds[N] = { 800, 800, 800, 400, 200, 100, 800, 800 };
    struct cluster c;

    (void) state;
    cluster_init(&c, "groups", N, speeds);
    groups_limit(c.sync, 3);
    run(&c, 60);
    assert_int_equal(groups_plan(c.sync)->n_groups, 2);
    groups_limit(c.sync, 100);
    run(&c, 200);
    assert_int_equal(groups_plan(c.sync)->n_groups, 4);
    cluster_uninit(&c);
}

/* One worker is 20 times slower. */
static void
groups_keep_gradients_young(void **state)
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

    (void) state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double speeds[N] = { 800, 800, 800, 40, 800, 800, 800, 800 };
        uint64_t n = 0;
        struct cluster c;

        cluster_init(&c, rows[i].scheme, N, speeds);
        run(&c, 100);
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
    start_ready(c);
    if (c->free_at[worker] >= 0 || c->owed[worker]) {
        return false;
    }
    assert_null(groups_rest(c->sync, worker));
    return true;
}

/* Has 'worker' rest after its step. */
static void
rest(struct cluster *c, int worker)
{
    c->rests[worker] = true;
    while (!try_rest(c, worker)) {
        run(c, c->n_steps[0] + 1);
    }
}

static void
wake(struct cluster *c, int worker)
{
    assert_null(groups_wake(c->sync, worker));
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
static void
groups_go_on_without_those_who_rest(void **state)
{
    double speeds[N];
    struct cluster c;
    uint64_t n;

    (void) state;
    for (int i = 0; i < N; i++) {
        speeds[i] = 800;
    }
    cluster_init(&c, "groups,groups=2,tau=1", N, speeds);
    run(&c, 3);
    rest(&c, 5);
    n = c.n_steps[5];
    run(&c, 10);
    assert_int_equal(c.n_steps[5], n);
    assert_true(c.n_steps[4] >= 8);
    for (int i = 4; i < N; i++) {
        if (i != 5) {
            rest(&c, i);
        }
    }
    run(&c, 30);
    assert_true(c.n_steps[4] < 15);
    assert_counted(&c);

    /* All that wake make the next step, and age again. */
    c.oldest = 0;
    for (int i = 4; i < N; i++) {
        wake(&c, i);
    }
    run(&c, 40);
    for (int i = 4; i < N; i++) {
        assert_true(c.n_steps[i] >= n + 8);
    }
    assert_true(c.oldest <= N + 3);
    assert_counted(&c);
    cluster_uninit(&c);
}

/* A gradient is one of all, whoever rests. */
static void
weights_of_the_others_stay_right(void **state)
{
    struct cluster c;

    (void) state;
    cluster_init(&c, "groups,groups=1", N, mixed);
    for (int i = 0; i < N - 2; i++) {
        *c.spec.class->inbox(c.sync, i) = 1;
        assert_null(c.spec.class->push(c.sync, i, 0, 64, 2));
    }
    assert_null(groups_rest(c.sync, N - 1));
    assert_near(*c.spec.class->weights(c.sync), 0);
    assert_null(groups_rest(c.sync, N - 2));
    assert_near(*c.spec.class->weights(c.sync), -0.1 * (N - 2) / N);
    *groups_inbox(c.sync, 0) = 1;
    assert_null(groups_push(c.sync, 0, 64 * (N - 2), 2));
    assert_near(*c.spec.class->weights(c.sync), -0.2 * (N - 2) / N);
    assert_int_equal(groups_counted(c.sync, 0), 2);
    assert_int_equal(groups_counted(c.sync, N - 1), 0);
    cluster_uninit(&c);
}

static void
nobody_rests_twice_or_while_it_has_pushed(void **state)
{
    struct cluster c;
    char *error;

    (void) state;
    cluster_init(&c, "groups,groups=1", N, mixed);
    error = groups_wake(c.sync, 1);
    assert_string_equal(error, "end of a rest, there is none");
    free(error);
    assert_null(groups_rest(c.sync, 1));
    error = groups_rest(c.sync, 1);
    assert_string_equal(error, "rest of a worker that rests");
    free(error);
    error = c.spec.class->push(c.sync, 1, 0, 64, 2);
    assert_non_null(error);
    free(error);
    assert_null(c.spec.class->push(c.sync, 2, 0, 64, 2));
    error = groups_rest(c.sync, 2);
    assert_string_equal(error, "rest of a worker that has pushed");
    free(error);
    cluster_uninit(&c);
}

/* The means that group servers push do what the workers' gradients do. */
static void
means_of_groups_count_as_their_workers(void **state)
{
    struct cluster c, means;

    (void) state;
    cluster_init(&c, "groups,groups=2", N, mixed);
    cluster_init(&means, "groups,groups=2", N, mixed);
    for (int k = 0; k < 3; k++) {
        const struct group_plan *plan = groups_plan(c.sync);
        double sum = 0;
        char *error;

        for (int i = 0; i < plan->n[1]; i++) {
            int worker = plan->order[plan->first[1] + i];

            *c.spec.class->inbox(c.sync, worker) = i;
            sum += i;
            assert_null(c.spec.class->push(c.sync, worker, k, 64, 2));
        }
        *groups_inbox(means.sync, 1) = sum / plan->n[1];
        assert_null(groups_push(means.sync, 1, 64 * plan->n[1], 2));
        assert_near(*c.spec.class->weights(c.sync),
                    *means.spec.class->weights(means.sync));
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

static void
plans_put_slow_workers_together(void **state)
{
    static const double one[N] = { 4, 1, 1, 1, 1, 1, 1, 1 };
    static const double two[N] = { 1, 3, 1, 1, 1, 3, 1, 1 };
    static const double steps[N] = { 1, 2, 1, 4, 1, 8, 1, 1 };
    struct group_plan plan;

    (void) state;
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
    assert_plan(&plan, 4, (int[]) { 5, 1, 1, 1 });
    group_plan_uninit(&plan);
}

/* The problem has one minimum: all schemes must find it. */
static void
every_scheme_converges(void **state)
{
    static const char *const schemes[] = {
        "bsp", "asp", "ssp", "essp", "backup",
        "static,ratios=2:2:2:2:2:2:4:1",
        "lbbsp-cpu", "lbbsp-gpu", "groups", "groups,groups=4",
    };

    (void) state;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct cluster c;

        cluster_init(&c, schemes[i], N, mixed);
        run(&c, 150);
        assert_true(fabs(*c.spec.class->weights(c.sync) - 1) < 0.01);
        cluster_uninit(&c);
    }
}

/* A worker that pushes what it was not asked for. */
static void
refuses_gradients_out_of_turn(void **state)
{
    static const char *const schemes[] = {
        "bsp", "asp", "ssp", "essp", "backup",
    };

    (void) state;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct cluster c;
        char *error;

        cluster_init(&c, schemes[i], 2, mixed);
        error = c.spec.class->push(c.sync, 0, 1, 1, 0);
        assert_string_equal(error, "gradient of iteration 1, 0 is allowed");
        free(error);
        assert_null(c.spec.class->push(c.sync, 0, 0, 1, 0));
        error = c.spec.class->push(c.sync, 0, 0, 1, 0);
        assert_non_null(error);
        free(error);
        cluster_uninit(&c);
    }
}

static void
refuses_a_batch_that_is_too_small_to_divide(void **state)
{
    struct cluster c;
    char *error;

    (void) state;
    cluster_init(&c, "lbbsp-cpu", 2, mixed);
    assert_null(c.spec.class->push(c.sync, 0, 0, 1, 0));
    error = c.spec.class->push(c.sync, 1, 0, 0, 0);
    assert_non_null(error);
    free(error);
    cluster_uninit(&c);
}

/* What another server's scheme decides, one that follows does not repeat. */
static void
followers_are_silent(void **state)
{
    struct cluster c;
    struct sync *sync;
    struct sync_message m;
    int to;

    (void) state;
    cluster_init(&c, "lbbsp-cpu", 2, mixed);
    sync = c.spec.class->create(&(struct sync_config) {
        .backend = c.b, .n_workers = 2, .n = 1,
        .optimiser = optimiser_defaults(optimiser_find("sgd"), 0.1f, 0),
        .spec = &c.spec, .follows = true,
    });
    assert_null(c.spec.class->push(sync, 0, 0, 8, 0));
    assert_null(c.spec.class->push(sync, 1, 0, 8, 0));
    assert_false(c.spec.class->take(sync, &to, &m));
    assert_true(c.spec.class->take(c.sync, &to, &m));
    c.spec.class->destroy(sync);
    cluster_uninit(&c);
}

static const struct {
    const char *text, *error;
} bad_specs[] = {
    { "psb", "\"psb\" is not a scheme" },
    { "", "\"\" is not a scheme" },
    { "bsp,staleness=1", "\"staleness\" is not a parameter of bsp" },
    { "ssp,stale", "\"stale\" is not a parameter of ssp" },
    { "ssp,", "\"\" is not a parameter of ssp" },
    { "ssp,staleness=-1",
      "staleness: \"-1\" is not an integer from 0 to 1000000" },
    { "backup,backups=x",
      "backups: \"x\" is not an integer from 0 to 1023" },
    { "static,ratios=1:0",
      "ratios: \"1:0\" is not up to 64 numbers from 0 to 1e6 with colons" },
    { "static,ratios=1:2:",
      "ratios: \"1:2:\" is not up to 64 numbers from 0 to 1e6 with colons" },
    { "groups,groups=3", "groups: 3 is not a power of 2" },
    { "groups,tau=0", "tau: \"0\" is not an integer from 1 to 1000000" },
    { "lbbsp-cpu,predictor=oracle",
      "predictor: \"oracle\" is not a predictor" },
};

static void
names_what_is_wrong_with_a_scheme(void **state)
{
    struct sync_spec spec;
    char *error;

    (void) state;
    for (size_t i = 0; i < sizeof bad_specs / sizeof bad_specs[0]; i++) {
        error = sync_spec_parse(bad_specs[i].text, &spec);
        assert_non_null(error);
        assert_string_equal(error, bad_specs[i].error);
        free(error);
    }
    assert_null(sync_spec_parse("static,ratios=1:2", &spec));
    error = sync_spec_check(&spec, 3);
    assert_string_equal(error, "ratios: 2 for 3 workers");
    free(error);
    assert_null(sync_spec_parse("backup,backups=3", &spec));
    error = sync_spec_check(&spec, 3);
    assert_string_equal(error, "backups: 3 of 3 workers");
    free(error);
    assert_null(sync_spec_parse("essp,staleness=65", &spec));
    error = sync_spec_check(&spec, 3);
    assert_string_equal(error, "staleness: 65, at most 64 are allowed for "
                        "essp");
    free(error);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bsp_is_as_slow_as_its_slowest),
        cmocka_unit_test(static_ratios_make_all_end_together),
        cmocka_unit_test(lbbsp_comes_near_the_sum_of_speeds),
        cmocka_unit_test(backup_does_without_the_slowest),
        cmocka_unit_test(backup_has_the_late_join_at_once),
        cmocka_unit_test(backup_does_not_wait_for_those_who_skip),
        cmocka_unit_test(asp_waits_for_nobody),
        cmocka_unit_test(ssp_keeps_its_bound),
        cmocka_unit_test(essp_sends_weights_to_workers_at_work),
        cmocka_unit_test(groups_bound_what_a_straggler_costs),
        cmocka_unit_test(groups_follow_who_is_slow),
        cmocka_unit_test(groups_are_as_many_as_servers),
        cmocka_unit_test(groups_keep_gradients_young),
        cmocka_unit_test(groups_go_on_without_those_who_rest),
        cmocka_unit_test(weights_of_the_others_stay_right),
        cmocka_unit_test(nobody_rests_twice_or_while_it_has_pushed),
        cmocka_unit_test(means_of_groups_count_as_their_workers),
        cmocka_unit_test(plans_put_slow_workers_together),
        cmocka_unit_test(every_scheme_converges),
        cmocka_unit_test(refuses_gradients_out_of_turn),
        cmocka_unit_test(refuses_a_batch_that_is_too_small_to_divide),
        cmocka_unit_test(followers_are_silent),
        cmocka_unit_test(names_what_is_wrong_with_a_scheme),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
