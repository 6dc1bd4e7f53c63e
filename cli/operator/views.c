/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach order, hosts, interleave, explain, status: print a view of the
 * controller. */

#include <config.h>

#include <stdio.h>
#include <time.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "openvswitch/json.h"

static void
print_order(const struct json *json)
{
    const struct json *order = member_array(json, "order");
    struct table *t = table_create("rank", "level", "dscp", "cojob", "rung",
                                   "jobs", "remaining_s", "bottleneck", NULL);

    for (size_t i = 0; i < order->array.n; i++) {
        const struct json *row = order->array.elems[i];

        table_add(t, "%.0f", member_number(row, "rank"));
        table_add(t, "%.0f", member_number(row, "level"));
        table_add(t, "%.0f", member_number(row, "dscp"));
        table_add(t, "%s", member_string(row, "cojob"));
        table_add(t, "%.0f", member_number(row, "rung"));
        table_add(t, "%zu", member_array(row, "jobs")->array.n);
        table_add(t, "%.3f", member_number(row, "remaining_s"));
        table_add(t, "%s", member_string(row, "bottleneck"));
    }
    table_print(t, stdout);
    table_destroy(t);
    printf("order %.0f by policy %s: estimate %.3f s, bound %.3f s, "
           "gap %.2f\n",
           member_number(json, "version"), member_string(json, "policy"),
           member_number(json, "estimate_s"), member_number(json, "bound_s"),
           member_number(json, "gap"));
}

int
cmd_order(int argc, char *argv[])
{
    return controller_query(argc, argv, "controller/order", print_order);
}

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

static void
print_shared_ports(const struct json *ports)
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
print_periodic_jobs(const struct json *jobs)
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
print_interleave(const struct json *json)
{
    print_shared_ports(member_array(json, "ports"));
    putchar('\n');
    print_periodic_jobs(member_array(json, "jobs"));
}

int
cmd_interleave(int argc, char *argv[])
{
    return controller_query(argc, argv, "controller/interleave",
                            print_interleave);
}

static void
print_before(const struct json *before, const char *port)
{
    struct table *t;

    if (!before->array.n) {
        printf("no other job is served before it there\n");
        return;
    }
    t = table_create("rank", "level", "before it", port, NULL);
    for (size_t i = 0; i < before->array.n; i++) {
        const struct json *row = before->array.elems[i];

        table_add(t, "%.0f", member_number(row, "rank"));
        table_add(t, "%.0f", member_number(row, "level"));
        table_add(t, "%s", member_string(row, "job"));
        table_add(t, "%.3f s", member_number(row, "seconds"));
    }
    table_print(t, stdout);
    table_destroy(t);
}

static void
print_rank(const struct json *json)
{
    printf("%s is job %.0f of order %.0f by policy %s, which orders by %s; "
           "its level is %.0f (DSCP %.0f)\n",
           member_string(json, "job"), member_number(json, "rank"),
           member_number(json, "version"), member_string(json, "policy"),
           member_string(json, "order"), member_number(json, "level"),
           member_number(json, "dscp"));
}

static void
print_why(const struct json *json)
{
    const struct json *why = member_array(json, "why");
    const char *bottleneck = member_string(json, "bottleneck");
    double left = member_number(json, "iterations_left");

    for (size_t i = 0; i < why->array.n; i++) {
        if (why->array.elems[i]->type == JSON_STRING) {
            printf("  %s\n", json_string(why->array.elems[i]));
        }
    }
    if (*bottleneck) {
        printf("isolated, its %.0f iteration%s would take %.1f s, including "
               "%.1f s of %s\n", left, left > 1 ? "s" : "",
               member_number(json, "alone_s"),
               member_number(json, "remaining_s"), bottleneck);
    } else {
        printf("network demand unknown: no traffic so far\n");
    }
}

static void
print_ends(const struct json *json)
{
    const struct json *ends = member_object(json, "ends");

    printf("it waits for %s\n",
           member_string(member_object(json, "waits_for"), "words"));
    printf("its stage ends in about %.1f s: in %.1f s without competing "
           "traffic, in %.1f s if all other traffic of its ports is served "
           "first\n",
           member_number(ends, "estimate_s"),
           member_number(ends, "earliest_s"),
           member_number(ends, "latest_s"));
}

static void
print_progress(const struct json *json)
{
    const struct json *counted = shash_find_data(json_object(json),
                                                 "counted");

    if (!counted) {
        printf("iteration count unknown so far\n");
    } else {
        printf("it has done %.0f iterations%s\n",
               member_number(json, "iteration"),
               counted->type == JSON_TRUE
               ? ", estimated from its traffic" : "");
    }
}

static void
print_bursts(const struct json *bursts)
{
    for (size_t i = 0; i < bursts->array.n; i++) {
        const struct json *b = bursts->array.elems[i];

        printf("on %s it sends bursts of %.0f bytes every %.3f s, %.0f %% of "
               "the time\n", member_string(b, "host"),
               member_number(b, "burst_bytes"), member_number(b, "period_s"),
               100 * member_number(b, "duty"));
    }
}

static void
print_explanation(const struct json *json)
{
    print_rank(json);
    print_progress(json);
    print_why(json);
    print_ends(json);
    print_bursts(member_array(json, "bursts"));
    if (*member_string(json, "bottleneck")) {
        print_before(member_array(json, "before"),
                     member_string(json, "bottleneck"));
    }
}

int
cmd_explain(int argc, char *argv[])
{
    return controller_query_about(argc, argv, "COJOB/JOB",
                                  "controller/explain", print_explanation);
}

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
print_estimates(const struct json *json)
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
    print_estimates(json);
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
