/* SPDX-License-Identifier: Apache-2.0 */

/* Predicted ends of jobs that iterate: exact ones, and against simulations. */

#include <math.h>
#include <stdlib.h>

#include "order/order.h"
#include "order/result/job-ends.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/random.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define N_SEEDS 10
#define N_HOSTS 6
#define N_SEARCHES 4
#define N_JOBS 3                /* Of a search. */
#define ITERATIONS 50
#define COMPUTE_S 0.0048
#define BYTES_PER_S (50e6 / 8)

UNIT_TEST(paces_follow_from_what_is_left)
{
    const struct order_demand half = { .port = 0, .seconds = 0.5 };
    const struct order_demand whole[] = {
        { .port = 0, .seconds = 1 }, { .port = 1, .seconds = 1 },
    };
    struct job_end jobs[] = {
        { .iterations = 10, .period = 1, .demands = &half, .n_demands = 1 },
        { .iterations = 10, .period = 1, .demands = whole, .n_demands = 2 },
        { .iterations = 10, .period = 1, .demands = &whole[1],
          .n_demands = 1 },
        { .iterations = 3 },
    };

    /* The second job has half of its pace until the first one ends, and leaves
     * half of port 1 to the third one. */
    job_ends_predict(jobs, 4, 2);
    assert_float_equal(jobs[0].end, 10, 1e-9);
    assert_float_equal(jobs[1].end, 15, 1e-9);
    assert_float_equal(jobs[2].end, 20, 1e-9);
    assert_float_equal(jobs[3].end, 0, 1e-9);
    job_ends_predict(jobs, 0, 2);
}

/* A job of the simulation, with the demand of an iteration on each port. */
struct given {
    struct job_end end;
    struct order_demand demands[2 * N_HOSTS];
    int search;
    double need;                /* Seconds of all ports of its search. */
};

static struct workload *
make_searches(int seed)
{
    struct workload *w = workload_create(
        "stage", sim_fabric_create(N_HOSTS, BYTES_PER_S));
    struct sim_random r = { seed };

    for (int i = 0; i < N_SEARCHES; i++) {
        struct workload_cojob *cojob = workload_add_cojob(w, "s", 1, 0);

        for (int j = 0; j < N_JOBS; j++) {
            int hosts[4];

            sim_random_pick(&r, N_HOSTS, 4, hosts);
            workload_add_ps(workload_add_job(cojob, "t", COMPUTE_S), hosts, 2,
                            &hosts[2], 2, 4e5 + 1e5 * i);
        }
        workload_add_rung(w, cojob, ITERATIONS, N_JOBS);
    }
    return w;
}

static void
describe(const struct workload_job *job, const struct sim_fabric *fabric,
         struct given *g)
{
    *g = (struct given) { .end = {
        .iterations = ITERATIONS,
        .period = COMPUTE_S + workload_exchange_time(job, fabric),
        .n_demands = 2 * N_HOSTS,
    } };
    for (int port = 0; port < 2 * N_HOSTS; port++) {
        g->demands[port].port = port;
    }
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];
        double seconds = t->bytes / BYTES_PER_S;

        g->demands[t->src].seconds += seconds;
        g->demands[N_HOSTS + t->dst].seconds += seconds;
        g->need += ITERATIONS * 2 * seconds;
    }
}

static int
compare(const void *a_, const void *b_)
{
    const struct given *a = a_, *b = b_;

    return (a->need != b->need ? (a->need < b->need ? -1 : 1)
            : a->end.period > b->end.period ? -1
            : a->end.period < b->end.period);
}

/* Stores the predicted ends of the searches of 'w' in 'ends'. */
static void
predict(const struct workload *w, double ends[N_SEARCHES])
{
    struct given given[N_SEARCHES * N_JOBS];
    struct job_end jobs[N_SEARCHES * N_JOBS];
    size_t n = 0;

    for (int s = 0; s < N_SEARCHES; s++) {
        double need = 0;

        ends[s] = 0;
        for (int j = 0; j < N_JOBS; j++) {
            describe(&w->cojobs[s].jobs[j], w->fabric, &given[n + j]);
            need += given[n + j].need;
        }
        for (int j = 0; j < N_JOBS; j++, n++) {
            given[n].search = s;
            given[n].need = need;
        }
    }
    qsort(given, n, sizeof *given, compare);
    for (size_t i = 0; i < n; i++) {
        jobs[i] = given[i].end;
        jobs[i].demands = given[i].demands;
    }
    job_ends_predict(jobs, n, 2 * N_HOSTS);
    for (size_t i = 0; i < n; i++) {
        ends[given[i].search] = fmax(ends[given[i].search], jobs[i].end);
    }
}

UNIT_TEST(predictions_are_near_what_is_simulated)
{
    struct policy *policy;
    double error = 0;

    assert_null(policy_from_file("policies/stage.json", &policy));
    for (int seed = 1; seed <= N_SEEDS; seed++) {
        struct workload *w = make_searches(seed);
        double ends[N_SEARCHES];
        struct sim_result r;

        predict(w, ends);
        simulate_by_policy(w, policy, NULL, &r);
        for (size_t i = 0; i < r.n_stages; i++) {
            error += fabs(ends[r.stages[i].cojob] / r.stages[i].end - 1)
                     / (N_SEEDS * N_SEARCHES);
        }
        sim_result_uninit(&r);
        workload_destroy(w);
    }
    policy_destroy(policy);
    print_message("mean error %.3f\n", error);
    assert_true(error < 0.15);
}
