/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach hosts: lists the hosts and the order that they have applied. */

#include <config.h>

#include <stdio.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "openvswitch/json.h"

static void
print_hosts(const struct json *json)
{
    const struct json *hosts = member_array(json, "hosts");
    struct table *t = table_create("host", "agent", "state", "wanted",
                                   "applied", "tagged", NULL);

    for (size_t i = 0; i < hosts->array.n; i++) {
        const struct json *row = hosts->array.elems[i];

        table_add(t, "%s", member_string(row, "host"));
        table_add(t, "%s", member_number(row, "connected") ? "connected"
                           : "away");
        /* The kernel bypass does not apply the order. */
        table_add(t, "%s", member_number(row, "bypass") ? "bypass"
                           : member_string(row, "state"));
        table_add(t, "%.0f", member_number(row, "wanted"));
        table_add(t, "%.0f", member_number(row, "applied"));
        table_add(t, "%.1f%%", member_number(row, "coverage") * 100);
    }
    table_print(t, stdout);
    table_destroy(t);
}

int
cmd_hosts(int argc, char *argv[])
{
    return controller_query(argc, argv, "controller/hosts", print_hosts);
}
