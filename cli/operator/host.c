/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach host remove: removes a host that has left the cluster. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/user-name.h"
#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "util.h"

struct host_options {
    bool as_json;
    const char *reason;
};

static void
print_removed(const struct json *json)
{
    printf("%s: removed; it is listed again when its agent connects\n",
           member_string(json, "host"));
}

static int
remove_host(int argc, char *argv[])
{
    static const struct option_row rows[] = {
        { "reason", OPTION_TEXT, OPTION_AT(struct host_options, reason),
          .value = "TEXT", .help = "reason for the log of decisions" },
        FORMAT_ROW(struct host_options, as_json),
        { .name = NULL },
    };
    static const struct option_table table = {
        .name = "stagecoach host remove",
        .usage = "usage: stagecoach host remove HOST [--reason TEXT] "
                 "[--format table|json]\n",
        .rows = rows, .operand = "HOST", .min_operands = 1, .max_operands = 1,
    };
    struct host_options o = { .reason = "" };
    int first;
    int status = option_table_command(&table, argc, argv, &o, &first);

    if (status < 0) {
        char *who = user_name();
        const char *args[] = { argv[first], who, o.reason };

        status = controller_change("host remove", "controller/host-remove", 3,
                                   args, o.as_json, print_removed);
        free(who);
    }
    return status;
}

int
cmd_host(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "remove", "HOST [--reason TEXT] [--format table|json]",
          "Remove a host without a running agent from all reports.",
          remove_host },
        { NULL, NULL, NULL, NULL },
    };

    return command_dispatch(commands, "stagecoach host", argc - 1, argv + 1);
}
