/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy: what an operator asks of policies. */

#include <stddef.h>

#include "cli/command.h"
#include "cli/policy.h"

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
