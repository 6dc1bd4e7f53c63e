/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach status: the state of the controller and its results. */

#include <config.h>

#include <stdio.h>
#include <time.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "openvswitch/json.h"

static void
print_controller(const struct json *json)
{
    printf("controller  %s, generation %.0f, order %.0f, policy %s\n",
           member_string(json, "state"), member_number(json, "generation"),
           member_number(json, "version"), member_string(json, "policy"));
    printf("cluster     %.0f cojobs, %.0f jobs, %.0f stages\n",
           member_number(json, "cojobs"), member_number(json, "jobs"),
           member_number(json, "stages"));
    printf("hosts       %.0f, %.0f with a connected agent, %.0f have "
           "applied the order\n", member_number(json, "hosts"),
           member_number(json, "agents"),
           member_number(json, "hosts_applied"));
    printf("coverage    %.1f %% of the traffic belongs to jobs\n",
           100 * member_number(json, "coverage"));
}

/* Prints the comparison of the last stages with fair sharing. */
static void
print_gain(const struct json *gain)
{
    if (member_number(gain, "fair_mean_s") > 0) {
        printf("gain        mean of the last %.0f stages %.1f s; simulated "
               "%.1f s under %s and %.1f s under fair sharing: %.2f x\n",
               member_number(gain, "stages"),
               member_number(gain, "measured_mean_s"),
               member_number(gain, "policy_mean_s"),
               member_string(gain, "policy"),
               member_number(gain, "fair_mean_s"),
               member_number(gain, "ratio"));
    }
}

static void
print_order(const struct json *json)
{
    const struct json *predicted = member_object(json, "predicted");

    printf("decisions   %.0f, the longest took %.0f us\n",
           member_number(json, "decisions"),
           member_number(json, "decision_us_max"));
    if (member_number(json, "stages") > 0) {
        printf("order       sum of completion times: estimate %.3f s, lower "
               "bound %.3f s, at most %.2f x the optimum\n",
               member_number(json, "estimate_s"),
               member_number(json, "bound_s"), member_number(json, "gap"));
        printf("predicted   mean completion time of running stages %.1f s, "
               "under fair sharing %.1f s: %.2f x\n",
               member_number(predicted, "order_mean_s"),
               member_number(predicted, "fair_mean_s"),
               member_number(predicted, "ratio"));
    }
    print_gain(member_object(json, "gain"));
}

/* Prints since when, and by which operator or option, no order is applied. */
static void
print_observe(const struct json *json)
{
    const struct json *by = member_object(json, "observed_by");
    time_t at = member_number(by, "at") / 1000;
    struct tm tm;
    char text[32] = "";

    if (!member_number(json, "observe")) {
        return;
    }
    if (at && localtime_r(&at, &tm)) {
        strftime(text, sizeof text, "%F %T", &tm);
        printf("observing   since %s, by %s%s%s: no order is sent to "
               "hosts\n",
               text, member_string(by, "who"),
               *member_string(by, "reason") ? ", " : "",
               member_string(by, "reason"));
    } else {
        printf("observing   by --observe: no order is sent to hosts\n");
    }
}

static void
print_alarms(const struct json *alarms)
{
    if (!alarms->array.n) {
        printf("alarms      none\n");
    }
    for (size_t i = 0; i < alarms->array.n; i++) {
        if (alarms->array.elems[i]->type == JSON_STRING) {
            printf("ALARM       %s\n", json_string(alarms->array.elems[i]));
        }
    }
}

static void
print_status(const struct json *json)
{
    print_controller(json);
    print_order(json);
    if (member_number(json, "overrides") > 0) {
        printf("overrides   %.0f in force, \"stagecoach overrides\" lists "
               "them\n", member_number(json, "overrides"));
    }
    print_observe(json);
    print_alarms(member_array(json, "alarms"));
}

int
cmd_status(int argc, char *argv[])
{
    return controller_query(argc, argv, "controller/status", print_status);
}
