/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach status: whether the controller works, and how well. */

#include <config.h>

#include <stdio.h>

#include "cli/command.h"
#include "cli/controller-query.h"
#include "openvswitch/json.h"

static void
print_status(const struct json *json)
{
    printf("controller  %s, generation %.0f, order %.0f, policy %s\n",
           member_string(json, "state"), member_number(json, "generation"),
           member_number(json, "version"), member_string(json, "policy"));
    printf("cluster     %.0f cojobs, %.0f jobs, %.0f stages\n",
           member_number(json, "cojobs"), member_number(json, "jobs"),
           member_number(json, "stages"));
    printf("hosts       %.0f, %.0f with a connected agent\n",
           member_number(json, "hosts"), member_number(json, "agents"));
    printf("decisions   %.0f, the longest took %.0f us\n",
           member_number(json, "decisions"),
           member_number(json, "decision_us_max"));
    printf("order       sum of completions estimated %.3f s, at least "
           "%.3f s: at most %.2f x the best\n",
           member_number(json, "estimate_s"), member_number(json, "bound_s"),
           member_number(json, "gap"));
}

int
cmd_status(int argc, char *argv[])
{
    return controller_query(argc, argv, "controller/status", print_status);
}
