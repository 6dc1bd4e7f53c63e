/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy diff: differences of two policies and their effect. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/simulate/policy-args.h"
#include "cli/simulate/policy-controller.h"
#include "cli/simulate/policy-snapshot.h"
#include "cli/simulate/policy.h"
#include "policies/policy.h"
#include "sim/run/simulate.h"

/* Maximum number of stages with another rank that are listed. */
#define MAX_LISTED 20

static const struct policy_syntax syntax = {
    .name = "stagecoach policy diff",
    .usage =
        "usage: stagecoach policy diff A B [--trace T]"
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
    .n_names = 2, .n_policies = 2, .max_policies = 2,
};

static void
print_member(const char *member, const struct policy_row *a,
             const struct policy_row *b)
{
    printf("%-24s %-24s %s\n", member, a ? a->value : "-",
           b ? b->value : "-");
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

    printf("%-24s %-24s %s\n", "member", policies[0]->name,
           policies[1]->name);
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

static void
diff_places(struct policy *const policies[2], const struct snapshot *snapshot)
{
    struct order_result results[2];

    for (int p = 0; p < 2; p++) {
        struct order_problem *op = snapshot_problem(snapshot, policies[p]);

        order_result_init(&results[p]);
        order_compute(&policies[p]->order, op, &results[p]);
        order_problem_destroy(op);
    }
    print_places(snapshot, results);
    for (int p = 0; p < 2; p++) {
        order_result_uninit(&results[p]);
    }
}

static void
diff_trace(const struct policy_args *args)
{
    double means[2];
    struct snapshot snapshot;

    snapshot_from_workload(&snapshot, args->input.workload);
    diff_places(args->policies, &snapshot);
    snapshot_uninit(&snapshot);
    for (int p = 0; p < 2; p++) {
        struct sim_result result;

        policy_args_replay(args, p, &result);
        means[p] = result.mean;
        sim_result_uninit(&result);
    }
    printf("mean completion time: %.3f s, %.3f s\n", means[0], means[1]);
}

/* Compares the orders of the controller's present stages.  Returns an exit
 * status. */
static int
diff_live(const struct policy_args *args)
{
#ifdef HAVE_OVS
    struct snapshot snapshot;
    int errnum;
    char *error = snapshot_from_controller(&snapshot, &errnum);

    if (error) {
        policy_args_fail(error);
        return errnum ? EXIT_UNREACHABLE : EXIT_NO;
    }
    diff_places(args->policies, &snapshot);
    snapshot_uninit(&snapshot);
#endif
    return EXIT_OK;
}

static int
diff(struct policy_args *args)
{
    diff_members(args->policies);
    if (args->trace) {
        diff_trace(args);
    }
    return args->live ? diff_live(args) : EXIT_OK;
}

int
policy_diff(int argc, char *argv[])
{
    return policy_command(&syntax, argc, argv, diff);
}
