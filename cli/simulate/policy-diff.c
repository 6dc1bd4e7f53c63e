/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy diff: the members in which two policies differ. */

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/simulate/policy.h"
#include "policies/policy.h"

static const struct policy_syntax syntax = {
    .name = "stagecoach policy diff",
    .usage =
        "usage: stagecoach policy diff A B\n\n"
        "Shows the members in which two policies, names or files, differ.\n",
    .options = POLICY_PLAIN,
    .n_policies = 2,
};

static void
print_row(const char *member, const char *a, const char *b)
{
    printf("%-24s %-24s %s\n", member, a, b);
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
            print_row(member, a->rows[i].value, row ? row->value : "-");
            n++;
        }
    }
    for (size_t i = 0; i < b->n; i++) {
        if (!policy_rows_find(a, b->rows[i].member)) {
            print_row(b->rows[i].member, "-", b->rows[i].value);
            n++;
        }
    }
    if (!n) {
        puts("no difference");
    }
}

static int
diff(struct policy_args *args)
{
    struct policy_rows rows[2];

    print_row("member", args->policies[0]->name, args->policies[1]->name);
    for (int p = 0; p < 2; p++) {
        policy_rows_init(&rows[p], args->policies[p]);
    }
    print_members(&rows[0], &rows[1]);
    for (int p = 0; p < 2; p++) {
        policy_rows_uninit(&rows[p]);
    }
    return EXIT_OK;
}

int
policy_diff(int argc, char *argv[])
{
    return policy_command(&syntax, argc, argv, diff);
}
