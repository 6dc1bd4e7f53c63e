/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach stages: what stages took of the network. */

#include <config.h>

#include <stdio.h>

#include "cli/command.h"
#include "cli/controller-query.h"
#include "cli/table.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"

/* Returns the most seconds that a stage took of a port, and whose port that
 * is. */
static double
find_busiest(const struct json *row, const char **portp)
{
    const struct json *demand = member_object(row, "demand");
    const struct shash_node *node;
    double most = 0;

    *portp = "-";
    SHASH_FOR_EACH (node, json_object(demand)) {
        double seconds = member_number(demand, node->name);

        if (seconds > most) {
            most = seconds;
            *portp = node->name;
        }
    }
    return most;
}

static void
print_stages(const struct json *json)
{
    const struct json *stages = member_array(json, "stages");
    struct table *t = table_create("cojob", "rung", "seconds", "busiest",
                                   "busy_s", NULL);

    for (size_t i = 0; i < stages->array.n; i++) {
        const struct json *row = stages->array.elems[i];
        double ended = member_number(row, "ended");
        const char *port;
        double busy = find_busiest(row, &port);

        table_add(t, "%s", member_string(row, "cojob"));
        table_add(t, "%.0f", member_number(row, "rung"));
        if (ended > 0) {
            table_add(t, "%.3f",
                      (ended - member_number(row, "began")) / 1000);
        } else {
            table_add(t, "running");
        }
        table_add(t, "%s", port);
        table_add(t, "%.3f", busy);
    }
    table_print(t, stdout);
    table_destroy(t);
    printf("%.0f decisions; no schedule has a mean below %.3f s\n",
           member_number(json, "decisions"),
           member_number(json, "bound_mean_s"));
}

int
cmd_stages(int argc, char *argv[])
{
    return controller_query(argc, argv, "controller/stages", print_stages);
}
