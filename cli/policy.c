/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy: what an operator asks of policy files. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "policies/policy.h"

/* Prints one line for each file: that it is a policy, or why not.  A file that
 * is none does not keep the rest from being checked. */
static int
policy_check(int argc, char *argv[])
{
    bool help = argc == 2 && !strcmp(argv[1], "--help");
    int status = EXIT_OK;

    if (help || argc < 2 || argv[1][0] == '-') {
        fputs("usage: stagecoach policy check FILE...\n",
              help ? stdout : stderr);
        return help ? EXIT_OK : EXIT_USAGE;
    }
    for (int i = 1; i < argc; i++) {
        struct policy *policy;
        char *error = policy_from_file(argv[i], &policy);

        if (error) {
            puts(error);
            status = EXIT_NO;
        } else {
            printf("%s: ok\n", argv[i]);
        }
        free(error);
        policy_destroy(policy);
    }
    return status;
}

static const struct command commands[] = {
    { "check", "FILE...", "Say whether each file is a policy, or why not.",
      policy_check },
    { NULL, NULL, NULL, NULL },
};

int
cmd_policy(int argc, char *argv[])
{
    return command_dispatch(commands, "stagecoach policy", argc - 1, argv + 1);
}
