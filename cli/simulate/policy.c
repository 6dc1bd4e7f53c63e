/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy: checks, compares and tunes policies. */

#include <stddef.h>

#include "cli/command.h"
#include "cli/simulate/policy.h"

static const struct command commands[] = {
    { "check", "FILE...", "Check that each file is a valid policy.",
      policy_check },
    { "show", "NAME|FILE", "Show every member of a policy.",
      policy_show },
    { "diff", "A B",
      "Show the differences between two policies and their effect.",
      policy_diff },
    { "whatif", "--trace T --policy A --policy B",
      "Simulate a workload under two policies.", policy_whatif },
    { "tune", "--trace T [OPTION...]",
      "Search for better parameters of a policy.", policy_tune },
    { NULL, NULL, NULL, NULL },
};

int
cmd_policy(int argc, char *argv[])
{
    return command_dispatch(commands, "stagecoach policy", argc - 1, argv + 1);
}
