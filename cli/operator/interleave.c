/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach interleave: lists periodic jobs that could use their ports
 * alternately. */

#include <config.h>

#include <stdio.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "openvswitch/json.h"

static void
print_ports(const struct json *ports)
{
    struct table *t = table_create("port", "jobs", "use", "fits", "excess",
                                   "shifted", NULL);

    for (size_t i = 0; i < ports->array.n; i++) {
        const struct json *row = ports->array.elems[i];

        table_add(t, "%s", member_string(row, "port"));
        table_add(t, "%zu", member_array(row, "jobs")->array.n);
        table_add(t, "%.1f%%", member_number(row, "utilisation") * 100);
        table_add(t, "%s", member_number(row, "compatible") ? "yes" : "no");
        table_add(t, "%.1f%%", member_number(row, "unshifted") * 100);
        table_add(t, "%.1f%%", member_number(row, "excess") * 100);
    }
    table_print(t, stdout);
    table_destroy(t);
}

static void
print_jobs(const struct json *jobs)
{
    struct table *t = table_create("job", "period_s", "burst_s", "shift_s",
                                   NULL);

    for (size_t i = 0; i < jobs->array.n; i++) {
        const struct json *row = jobs->array.elems[i];

        table_add(t, "%s", member_string(row, "job"));
        table_add(t, "%.3f", member_number(row, "period_s"));
        table_add(t, "%.3f", member_number(row, "burst_s"));
        table_add(t, "%.3f", member_number(row, "shift_s"));
    }
    table_print(t, stdout);
    table_destroy(t);
}

static void
print_report(const struct json *json)
{
    print_ports(member_array(json, "ports"));
    putchar('\n');
    print_jobs(member_array(json, "jobs"));
}

int
cmd_interleave(int argc, char *argv[])
{
    return controller_query(argc, argv, "controller/interleave",
                            print_report);
}
