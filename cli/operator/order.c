/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach order: the stages in the order in which they get the network. */

#include <config.h>

#include <stdio.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "openvswitch/json.h"

static void
print_order(const struct json *json)
{
    const struct json *order = member_array(json, "order");
    struct table *t = table_create("rank", "level", "dscp", "cojob", "rung",
                                   "jobs", "remaining_s", "bottleneck", NULL);

    for (size_t i = 0; i < order->array.n; i++) {
        const struct json *row = order->array.elems[i];

        table_add(t, "%.0f", member_number(row, "rank"));
        table_add(t, "%.0f", member_number(row, "level"));
        table_add(t, "%.0f", member_number(row, "dscp"));
        table_add(t, "%s", member_string(row, "cojob"));
        table_add(t, "%.0f", member_number(row, "rung"));
        table_add(t, "%zu", member_array(row, "jobs")->array.n);
        table_add(t, "%.3f", member_number(row, "remaining_s"));
        table_add(t, "%s", member_string(row, "bottleneck"));
    }
    table_print(t, stdout);
    table_destroy(t);
    printf("order %.0f by policy %s: estimate %.3f s, bound %.3f s, "
           "gap %.2f\n",
           member_number(json, "version"), member_string(json, "policy"),
           member_number(json, "estimate_s"), member_number(json, "bound_s"),
           member_number(json, "gap"));
}

int
cmd_order(int argc, char *argv[])
{
    return controller_query(argc, argv, "controller/order", print_order);
}
