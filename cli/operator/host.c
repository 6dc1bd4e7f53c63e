/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach host remove, host revoke: a host that has left the cluster, and
 * one that is refused. */

#include <config.h>

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"

static void
print_removed(const struct json *json)
{
    printf("%s: removed; it is listed again when its agent connects\n",
           member_string(json, "host"));
}

static void
print_revoked(const struct json *json)
{
    printf("%.0f: %s is refused from now on; \"stagecoach undo %.0f\" accepts "
           "it again\n",
           member_number(json, "id"), member_string(json, "target"),
           member_number(json, "id"));
}

static int
operate(int argc, char *argv[])
{
    static const struct operation operations[] = {
        { "host remove", "controller/host-remove", "HOST", print_removed },
        { "host revoke", "controller/host-revoke", "HOST", print_revoked },
    };

    return controller_operate(argc, argv,
                              &operations[!strcmp(argv[0], "revoke")]);
}

int
cmd_host(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "remove", "HOST [--reason TEXT] [--format table|json]",
          "Remove a host without a running agent from all reports.", operate },
        { "revoke", "HOST [--reason TEXT] [--format table|json]",
          "Refuse a host or a client of REST by the name in its certificate.",
          operate },
        { NULL, NULL, NULL, NULL },
    };

    return command_dispatch(commands, "stagecoach host", argc - 1, argv + 1);
}
