/* SPDX-License-Identifier: Apache-2.0 */

/* Measures the time to compute an order, and the time of plain loops over a
 * matrix.
 *
 * Stages use 16 of 300 ports, the first ports far more often than the last,
 * and have sizes from 1 to 10,000.  Times are processor time of this thread,
 * medians unless the name has another word, so that other programs have little
 * influence.
 *
 * Both algorithms find the same ranks unless rounding errors, which accumulate
 * with each charge, exceed the differences between loads: with very many
 * stages the smallest ones, placed last, can differ. */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/compare.h"
#include "order/order.h"
#include "order/primal-dual/primal-dual.h"
#include "order/problem/iteration-weight.h"
#include "order/problem/memory.h"
#include "order/result/job-ends.h"
#include "order/result/levels.h"
#include "tests/unit/order/order-instance.h"

#define N_PORTS 300
#define N_LEVELS 6
#define N_EVENTS 3000
#define N_DECISIONS 300
#define MAX_RUNS 25

static const struct instance_crowd crowd_16 = { N_PORTS, 16, 0.5 };
static const struct instance_crowd crowd_64 = { N_PORTS, 64, 0.5 };
static const struct instance_crowd crowd_all = { N_PORTS, N_PORTS, 0 };

/* Returns the processor time of this thread in seconds. */
static double
clock_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* Returns the quantile 'q' of the 'n' 'values'. */
static double
quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return values[(size_t) (q * (n - 1))];
}

static struct order_problem *
create(const struct instance_crowd *crowd, int n)
{
    struct order_problem *op = order_problem_create(crowd->n_ports);
    uint64_t seed = n;

    for (int s = 0; s < n; s++) {
        instance_add_stage(&seed, crowd, op, s);
    }
    return op;
}

/* Returns the milliseconds of the whole order, including the bound. */
static double
time_permute(const struct order_problem *op, int runs)
{
    int *order = order_alloc(op->n_stages, sizeof *order);
    double ms[MAX_RUNS];

    permute(op, 0, order);
    for (int i = 0; i < runs; i++) {
        double began = clock_now();

        permute(op, 0, order);
        ms[i] = (clock_now() - began) * 1e3;
    }
    free(order);
    return quantile(ms, runs, 0.5);
}

static double
time_crowd(const struct instance_crowd *crowd, int n, int runs)
{
    struct order_problem *op = create(crowd, n);
    double ms = time_permute(op, runs);

    order_problem_destroy(op);
    return ms;
}

/* Results of plain loops over a matrix for the same problem. */
struct dense {
    double ms;
    double same;                /* Fraction of equal ranks. */
};

static struct dense
time_dense(const struct order_problem *op)
{
    size_t n = op->n_stages;
    double *seconds = order_alloc(n * N_PORTS, sizeof *seconds);
    double *weight = order_alloc(n, sizeof *weight);
    int *expected = order_alloc(n, sizeof *expected);
    int *order = order_alloc(n, sizeof *order);
    struct dense dense = { 0, 0 };
    double began;

    for (size_t s = 0; s < n; s++) {
        weight[s] = op->stages[s].weight;
        for (size_t i = 0; i < op->stages[s].n_demands; i++) {
            const struct order_demand *d = &op->stages[s].demands[i];

            seconds[d->port * n + s] = d->seconds;
        }
    }
    began = clock_now();
    instance_permute(n, N_PORTS, seconds, weight, expected);
    dense.ms = (clock_now() - began) * 1e3;
    permute(op, 0, order);
    for (size_t k = 0; k < n; k++) {
        dense.same += (order[k] == expected[k]) / (double) n;
    }
    free(seconds);
    free(weight);
    free(expected);
    free(order);
    return dense;
}

static void
copy_stage(const struct order_stage *stage, uint64_t id,
           struct order_problem *op)
{
    int s = order_problem_add_stage(op, stage->weight, id);

    for (size_t i = 0; i < stage->n_demands; i++) {
        order_problem_add_demand(op, s, stage->demands[i].port,
                                 stage->demands[i].seconds);
    }
}

/* Ends a stage, adds one from 'others', or changes the demand of one. */
static void
happen(uint64_t *seed, struct order_problem *op,
       const struct order_problem *others, int event)
{
    int stage = instance_random(seed) % op->n_stages;
    int port = op->stages[stage].demands[0].port;

    switch (event % 3) {
    case 0:
        order_problem_remove_stage(op, stage);
        break;

    case 1:
        copy_stage(&others->stages[event], op->n_stages + event, op);
        break;

    default:
        order_problem_set_demand(op, stage, port,
                                 op->stages[stage].demands[0].seconds / 2);
        break;
    }
}

/* Stores the microseconds from an event to the new order and levels. */
static void
time_events(int n, double *median, double *p99)
{
    struct order_problem *others = create(&crowd_16, N_EVENTS);
    struct order_problem *op = create(&crowd_16, n);
    int *order = order_alloc(n + 1, sizeof *order);
    int *level = order_alloc(n + 1, sizeof *level);
    double us[N_EVENTS];
    uint64_t seed = 1;

    permute(op, 0, order);
    for (int event = 0; event < N_EVENTS; event++) {
        double began = clock_now();

        happen(&seed, op, others, event);
        permute(op, 0, order);
        levels_assign(op, order, N_LEVELS, level);
        us[event] = (clock_now() - began) * 1e6;
    }
    *median = quantile(us, N_EVENTS, 0.5);
    *p99 = quantile(us, N_EVENTS, 0.99);
    free(order);
    free(level);
    order_problem_destroy(others);
    order_problem_destroy(op);
}

/* Returns the milliseconds of an order with its estimate and certificate. */
static double
time_compute(const struct order_problem *op)
{
    struct order_options options = ORDER_OPTIONS_INIT(ORDER_STAGE);
    struct order_result result;
    double began, ms;

    options.improve_moves = 0;
    order_result_init(&result);
    order_compute(&options, op, &result);
    began = clock_now();
    order_compute(&options, op, &result);
    ms = (clock_now() - began) * 1e3;
    order_result_uninit(&result);
    return ms;
}

/* Predicts when the jobs of 'op' end, as the controller does with each order
 * of up to JOB_ENDS_MAX jobs. */
static void
predict_ends(const struct order_problem *op, const struct order_result *r)
{
    struct job_end jobs[JOB_ENDS_MAX];

    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[r->order[i]];

        jobs[i] = (struct job_end) {
            .iterations = 100, .period = order_stage_bottleneck(stage),
            .demands = stage->demands, .n_demands = stage->n_demands,
        };
    }
    job_ends_predict(jobs, op->n_stages, op->n_ports);
}

/* Returns the 99th percentile of the microseconds in which the iterations of
 * 'n' jobs on a quarter as many hosts get new weights, an order and levels,
 * and with 'ends' predictions: what the controller computes for jobs that
 * iterate. */
static double
time_iterations(int n, bool ends)
{
    const struct instance_crowd crowd = { n / 2, 8, 0 };
    struct order_options options = ORDER_OPTIONS_INIT(ORDER_STAGE);
    struct order_problem *op = create(&crowd, n);
    struct order_result result;
    double us[N_DECISIONS];
    uint64_t seed = 1;

    options.iterations = true;
    options.uncertified = true;
    order_result_init(&result);
    for (int i = 0; i < N_DECISIONS; i++) {
        double began = clock_now();

        for (int s = 0; s < n; s++) {
            struct iteration_need need = {
                .weight = 1, .work = 1 + 1e4 * instance_uniform(&seed),
                .slowest = 1,
            };

            order_problem_set_weight(
                op, s, iteration_weight(&need, instance_uniform(&seed), 1));
        }
        order_compute(&options, op, &result);
        if (ends) {
            predict_ends(op, &result);
        }
        us[i] = (clock_now() - began) * 1e6;
    }
    order_result_uninit(&result);
    order_problem_destroy(op);
    return quantile(us, N_DECISIONS, 0.99);
}

/* Returns the memory of a problem and its order, in bytes per demand. */
static double
bytes_per_pair(const struct instance_crowd *crowd, int n)
{
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    struct order_problem *op = create(crowd, n);
    size_t pairs = 0, after;

    time_permute(op, 1);
    after = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (size_t s = 0; s < op->n_stages; s++) {
        pairs += op->stages[s].n_demands;
    }
    order_problem_destroy(op);
    return (double) (after - before) / pairs;
}

/* Prints the results of plain loops with 'n' stages of 'crowd' under
 * 'name'. */
static void
print_dense(const char *name, const struct instance_crowd *crowd, int n,
            const char *after)
{
    struct order_problem *op = create(crowd, n);
    struct dense dense = time_dense(op);

    printf("\"dense_%s_ms\": %.3f, \"same_ranks_%s\": %.6f%s", name,
           dense.ms, name, dense.same, after);
    order_problem_destroy(op);
}

/* With an argument only the time of the full order of 4,000 stages is
 * printed. */
int
main(int argc, char *argv[])
{
    double bytes = bytes_per_pair(&crowd_16, 4000);
    struct order_problem *op = create(&crowd_16, 4000);
    double full = time_permute(op, MAX_RUNS);
    double median, p99;

    if (argc > 1) {
        printf("%.3f\n", full);
        return 0;
    }
    time_events(1000, &median, &p99);
    printf("{\"bench\": \"order-time\", \"figures\": {");
    printf("\"full_4000x300_ms\": %.3f, ", full);
    printf("\"full_16000x300_ms\": %.3f, ", time_crowd(&crowd_16, 16000, 9));
    printf("\"event_1000_p99_us\": %.1f, ", p99);
    printf("\"speedup_vs_dense\": %.1f, ", time_dense(op).ms / full);
    printf("\"event_1000_median_us\": %.1f, ", median);
    printf("\"full_1000x300_ms\": %.3f, ",
           time_crowd(&crowd_16, 1000, MAX_RUNS));
    printf("\"full_4000x300_64_ports_ms\": %.3f, ",
           time_crowd(&crowd_64, 4000, 9));
    printf("\"full_4000x300_all_ports_ms\": %.3f, ",
           time_crowd(&crowd_all, 4000, 5));
    permute_use_portable(true);
    printf("\"portable_4000x300_ms\": %.3f, ", time_permute(op, MAX_RUNS));
    permute_use_portable(false);
    printf("\"compute_4000x300_ms\": %.3f, ", time_compute(op));
    printf("\"iterations_100_p99_us\": %.1f, ", time_iterations(100, false));
    printf("\"iterations_1600_p99_us\": %.1f, ",
           time_iterations(1600, false));
    printf("\"iterations_10000_p99_us\": %.1f, ",
           time_iterations(10000, false));
    printf("\"iterations_and_ends_100_p99_us\": %.1f, ",
           time_iterations(100, true));
    printf("\"bytes_per_pair\": %.1f}, \"baseline\": {", bytes);
    order_problem_destroy(op);
    print_dense("1000x300", &crowd_16, 1000, ", ");
    print_dense("4000x300", &crowd_16, 4000, ", ");
    print_dense("16000x300", &crowd_16, 16000, ", ");
    print_dense("4000x300_64_ports", &crowd_64, 4000, ", ");
    print_dense("4000x300_all_ports", &crowd_all, 4000, "}}\n");
    return 0;
}
