/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy diff: differences of two policies and their effect. */

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/simulate/policy.h"
#include "order/order.h"
#include "order/problem/memory.h"
#include "policies/policy.h"
#include "sim/workload/workload.h"

/* Timeout of a call of the controller. */
#define ORDER_TIMEOUT_MS 3000

/* Maximum number of stages with another rank that are listed. */
#define MAX_LISTED 20

static const struct policy_syntax syntax = {
    .name = "stagecoach policy diff",
    .usage =
        "usage: stagecoach policy diff A B [--trace T] [--fabric F] [--rate R]"
#ifdef HAVE_OVS
        " [--live]"
#endif
        "\n\n"
        "Shows the members in which two policies, names or files, differ.\n"
        "With --trace or --live, also shows how each policy orders the first\n"
        "stages of T, or the stages that the controller has now.  With\n"
        "--trace, also shows the mean completion time of T under each.\n",
#ifdef HAVE_OVS
    .options = POLICY_TRACE | POLICY_LIVE,
#else
    .options = POLICY_TRACE,
#endif
    .n_names = 2,
    .n_policies = 2,
    .max_policies = 2,
};

struct snapshot_stage {
    const char *cojob;
    int rung;
};

/* Stages at one moment, to compare their order under two policies. */
struct snapshot {
    struct policy *const *policies;
    struct order_problem *problems[2];  /* Under each policy. */
    size_t n, allocated;
    struct snapshot_stage *stages;      /* By index in 'problems'. */
};

static void
snapshot_init(struct snapshot *snapshot, struct policy *const policies[2],
              int n_ports)
{
    *snapshot = (struct snapshot) { .policies = policies };
    for (int p = 0; p < 2; p++) {
        snapshot->problems[p] = order_problem_create(n_ports);
    }
}

static void
snapshot_uninit(struct snapshot *snapshot)
{
    for (int p = 0; p < 2; p++) {
        order_problem_destroy(snapshot->problems[p]);
    }
    free(snapshot->stages);
}

/* Adds a stage and returns its index.  The weight is that of the search;
 * 'user' may be null. */
static int
snapshot_add(struct snapshot *snapshot, const char *cojob, const char *user,
             int rung, double weight)
{
    for (int p = 0; p < 2; p++) {
        order_problem_add_stage(
            snapshot->problems[p],
            weight * policy_weight(snapshot->policies[p], user, cojob),
            snapshot->n);
    }
    snapshot->stages = order_grow(snapshot->stages, snapshot->n + 1,
                                  &snapshot->allocated,
                                  sizeof *snapshot->stages);
    snapshot->stages[snapshot->n] = (struct snapshot_stage) { cojob, rung };
    return snapshot->n++;
}

static void
snapshot_add_demand(struct snapshot *snapshot, int stage, int port,
                    double seconds)
{
    for (int p = 0; p < 2; p++) {
        order_problem_add_demand(snapshot->problems[p], stage, port, seconds);
    }
}

/* 'isolated' is the isolated time of the stage in seconds, 0 if unknown. */
static void
snapshot_set(struct snapshot *snapshot, int stage, double isolated,
             const struct order_traits *traits)
{
    for (int p = 0; p < 2; p++) {
        order_problem_set_release(snapshot->problems[p], stage, 0, isolated);
        order_problem_set_traits(snapshot->problems[p], stage, traits);
    }
}

/* Adds the demand of 'times' iterations of 'job' to 'stage', and updates its
 * isolated time and its traits. */
static void
add_job(struct snapshot *snapshot, int stage, const struct workload *w,
        const struct workload_job *job, double times, double *isolated,
        struct order_traits *traits)
{
    double exchange = workload_exchange_time(job, w->fabric);

    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];
        int ports[SIM_FABRIC_MAX_PATH];
        int n = sim_fabric_path(w->fabric, t->src, t->dst, ports);

        for (int k = 0; k < n; k++) {
            snapshot_add_demand(snapshot, stage, ports[k], times * t->bytes
                                / w->fabric->capacity[ports[k]]);
        }
        traits->bytes += times * t->bytes;
    }
    *isolated = fmax(*isolated, times * (job->compute + exchange));
    if (exchange > 0) {
        traits->intensity = fmax(traits->intensity, job->compute
                                 * job->devices / exchange);
    }
}

/* Adds the first stages of all cojobs, all present and without traffic so far.
 * The cojob that arrives last has age 0. */
static void
add_workload(struct snapshot *snapshot, const struct workload *w)
{
    double last = 0;

    for (size_t i = 0; i < w->n_cojobs; i++) {
        last = fmax(last, w->cojobs[i].arrival);
    }
    for (size_t i = 0; i < w->n_cojobs; i++) {
        const struct workload_cojob *cojob = &w->cojobs[i];
        struct order_traits traits = {
            .gain = INFINITY, .early = true, .arrival = last - cojob->arrival,
        };
        double isolated = 0;
        int stage;

        if (!cojob->n_rungs) {
            continue;
        }
        stage = snapshot_add(snapshot, cojob->name, cojob->user, 0,
                             cojob->weight);
        for (size_t j = 0; j < cojob->rungs[0].n_jobs; j++) {
            add_job(snapshot, stage, w, &cojob->jobs[j],
                    cojob->rungs[0].iterations, &isolated, &traits);
        }
        snapshot_set(snapshot, stage, isolated, &traits);
    }
}

static void
print_member(const char *member, const struct policy_row *a,
             const struct policy_row *b)
{
    printf("%-24s %-24s %s\n", member, a ? a->value : "-", b ? b->value : "-");
}

/* Prints the members that differ between 'a' and 'b' or exist in only one of
 * them, except name and description. */
static void
print_members(const struct policy_rows *a, const struct policy_rows *b)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++) {
        const char *member = a->rows[i].member;
        const struct policy_row *row = policy_rows_find(b, member);

        if (strcmp(member, "/name") && strcmp(member, "/description")
            && (!row || strcmp(row->value, a->rows[i].value))) {
            print_member(member, &a->rows[i], row);
            n++;
        }
    }
    for (size_t i = 0; i < b->n; i++) {
        if (!policy_rows_find(a, b->rows[i].member)) {
            print_member(b->rows[i].member, NULL, &b->rows[i]);
            n++;
        }
    }
    if (!n) {
        puts("no difference");
    }
}

static void
diff_members(struct policy *const policies[2])
{
    struct policy_rows rows[2];

    printf("%-24s %-24s %s\n", "member", policies[0]->name, policies[1]->name);
    for (int p = 0; p < 2; p++) {
        policy_rows_init(&rows[p], policies[p]);
    }
    print_members(&rows[0], &rows[1]);
    for (int p = 0; p < 2; p++) {
        policy_rows_uninit(&rows[p]);
    }
}

/* Lists the stages whose rank differs, in the order of the first policy. */
static void
print_places(const struct snapshot *snapshot,
             const struct order_result results[2])
{
    size_t n_moved = 0;

    for (size_t k = 0; k < snapshot->n; k++) {
        int s = results[0].order[k];
        bool moved = results[0].rank[s] != results[1].rank[s]
                     || results[0].level[s] != results[1].level[s];

        n_moved += moved;
        if (moved && n_moved == 1) {
            printf("\n%-28s %5s %7s %7s %7s %7s\n", "stage", "rung", "rank A",
                   "level A", "rank B", "level B");
        }
        if (moved && n_moved <= MAX_LISTED) {
            printf("%-28s %5d %7d %7d %7d %7d\n", snapshot->stages[s].cojob,
                   snapshot->stages[s].rung, results[0].rank[s],
                   results[0].level[s], results[1].rank[s],
                   results[1].level[s]);
        }
    }
    printf("%s%zu of %zu stages change their rank%s\n", n_moved ? "" : "\n",
           n_moved, snapshot->n,
           n_moved > MAX_LISTED ? ", only the first are listed" : "");
}

/* Compares the orders of the stages. */
static void
diff_places(const struct snapshot *snapshot)
{
    struct order_result results[2];

    for (int p = 0; p < 2; p++) {
        const struct policy *policy = snapshot->policies[p];

        order_problem_age(snapshot->problems[p], policy->aging_s,
                          policy->aging_slowdown);
        order_result_init(&results[p]);
        order_compute(&policy->order, snapshot->problems[p], &results[p]);
    }
    print_places(snapshot, results);
    for (int p = 0; p < 2; p++) {
        order_result_uninit(&results[p]);
    }
}

/* Returns an exit status. */
static int
diff_trace(const struct policy_args *args)
{
    const struct workload *w = args->input.workload;
    double means[2];
    struct sim_result result;
    struct snapshot snapshot;
    int n = 0;

    snapshot_init(&snapshot, args->policies, w->fabric->n_ports);
    add_workload(&snapshot, w);
    diff_places(&snapshot);
    snapshot_uninit(&snapshot);
    while (n < 2 && policy_args_replay(args, n, &result)) {
        means[n++] = result.mean;
        sim_result_uninit(&result);
    }
    if (n < 2) {
        return interrupt_say(interrupt_caught(), n, 2, "simulation");
    }
    printf("mean completion time: %.3f s, %.3f s\n", means[0], means[1]);
    return EXIT_OK;
}

#ifdef HAVE_OVS
static double
number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* Adds the names of the ports in 'row' to 'ports', with their numbers. */
static void
number_ports(cJSON *ports, const cJSON *row)
{
    const cJSON *demand;

    cJSON_ArrayForEach (demand,
                        cJSON_GetObjectItemCaseSensitive(row, "demand")) {
        if (!cJSON_GetObjectItemCaseSensitive(ports, demand->string)) {
            cJSON_AddNumberToObject(ports, demand->string,
                                    cJSON_GetArraySize(ports));
        }
    }
}

static void
add_row(struct snapshot *snapshot, const cJSON *ports, const cJSON *row)
{
    const char *cojob = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(row, "cojob"));
    const char *owner = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(row, "owner"));
    double weight = number(row, "weight");
    int stage = snapshot_add(snapshot, cojob ? cojob : "-", owner,
                             number(row, "rung"), weight > 0 ? weight : 1);
    const cJSON *demand;

    cJSON_ArrayForEach (demand,
                        cJSON_GetObjectItemCaseSensitive(row, "demand")) {
        if (cJSON_IsNumber(demand)) {
            snapshot_add_demand(snapshot, stage, number(ports, demand->string),
                                demand->valuedouble);
        }
    }
    snapshot_set(snapshot, stage, 0, &(struct order_traits) {
        .gain = INFINITY, .early = true, .arrival = number(row, "age_s"),
    });
}
#endif

/* Compares the orders of the stages of the controller's last order.  Returns
 * an exit status. */
static int
diff_live(const struct policy_args *args)
{
#ifdef HAVE_OVS
    struct snapshot snapshot;
    const cJSON *rows, *row;
    cJSON *json, *ports;
    char *reply;
    int errnum;
    char *error = controller_call("controller/order", 0, NULL,
                                  ORDER_TIMEOUT_MS, &reply, &errnum);

    if (error) {
        command_fail(NULL, error);
        return errnum ? EXIT_UNREACHABLE : EXIT_NO;
    }
    json = cJSON_Parse(reply);
    ports = cJSON_CreateObject();
    rows = cJSON_GetObjectItemCaseSensitive(json, "order");
    cJSON_ArrayForEach (row, rows) {
        number_ports(ports, row);
    }
    snapshot_init(&snapshot, args->policies, cJSON_GetArraySize(ports));
    cJSON_ArrayForEach (row, rows) {
        add_row(&snapshot, ports, row);
    }
    diff_places(&snapshot);
    snapshot_uninit(&snapshot);
    cJSON_Delete(ports);
    cJSON_Delete(json);
    free(reply);
#endif
    return EXIT_OK;
}

static int
diff(struct policy_args *args)
{
    int status = EXIT_OK;

    diff_members(args->policies);
    if (args->trace) {
        status = diff_trace(args);
    }
    return !status && args->live ? diff_live(args) : status;
}

int
policy_diff(int argc, char *argv[])
{
    return policy_command(&syntax, argc, argv, diff);
}
