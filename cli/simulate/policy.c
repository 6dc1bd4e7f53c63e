/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy: what an operator asks of policies. */

#include <stddef.h>

#include "cli/command.h"
#include "cli/simulate/policy.h"

static const struct command commands[] = {
    { "check", "FILE...", "Say whether each file is a policy, or why not.",
      policy_check },
    { "show", "NAME|FILE", "Show all that is in force with a policy.",
      policy_show },
    { "diff", "A B", "Show in what two policies differ, and what that does.",
      policy_diff },
    { "whatif", "--trace T --policy A --policy B",
      "Replay a workload under two policies.", policy_whatif },
    { "tune", "--trace T [OPTION...]",
      "Look for better numbers for a policy.", policy_tune },
    { NULL, NULL, NULL, NULL },
};

int
cmd_policy(int argc, char *argv[])
{
    return command_dispatch(commands, "stagecoach policy", argc - 1, argv + 1);
}
