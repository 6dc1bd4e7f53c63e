/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach order, hosts, users, explain, status, stages, decisions:
 * print a view of the controller. */

#include <config.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/duration.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "order/result/result.h"
#include "timeval.h"
#include "util.h"

/* Prints, behind 'label', how far the order is from a lower bound of the
 * running stages.  Later stages are not in it.  Where jobs do not iterate,
 * computing is not in it either. */
static void
print_quality(const char *label, const struct json *json)
{
    double gap = member_number(json, "gap");
    const char *kind = member_string(json, "bound_kind");

    if (has_member(json, "bound_strict_s")) {
        printf("%sdistance to the bound of these stages, weighted: %.2f "
               "(fluid form), %.2f (strict form); bound: %s\n",
               label, gap,
               member_number(json, "estimate_s")
                   / member_number(json, "bound_strict_s"),
               kind);
    } else if (member_number(json, "bound_s") > 0) {
        printf("%sremaining transfers of the running stages, without "
               "computing, weighted: at most %.2f x the best order "
               "(bound: %s)\n",
               label, gap, kind);
    } else {
        printf("%sno bound of these stages so far\n", label);
    }
}

static void
print_order(const struct json *json)
{
    const struct json *order = member_array(json, "order");
    struct table *t = table_create("rank\tlevel\tdscp\tcojob\trung\tjobs\t"
                                   "remaining_s\tbottleneck");

    for (size_t i = 0; i < order->array.n; i++) {
        const struct json *row = order->array.elems[i];

        table_add(t, "%.0f\t%.0f\t%.0f\t%s\t%.0f\t%zu\t%.3f\t%s",
                  member_number(row, "rank"), member_number(row, "level"),
                  member_number(row, "dscp"), member_string(row, "cojob"),
                  member_number(row, "rung"),
                  member_array(row, "jobs")->array.n,
                  member_number(row, "remaining_s"),
                  member_string(row, "bottleneck"));
    }
    table_finish(t);
    printf("order %.0f by policy %s; ", member_number(json, "version"),
           member_string(json, "policy"));
    print_quality("", json);
}

static void
print_hosts(const struct json *json)
{
    const struct json *hosts = member_array(json, "hosts");
    struct table *t = table_create("host\tagent\tstate\twanted\tapplied\t"
                                   "tagged");

    for (size_t i = 0; i < hosts->array.n; i++) {
        const struct json *row = hosts->array.elems[i];

        char *tagged = percentage(row, "coverage", 1);

        /* The kernel bypass does not apply the order. */
        table_add(t, "%s\t%s\t%s\t%.0f\t%.0f\t%s", member_string(row, "host"),
                  member_number(row, "connected") ? "connected"
                                                  : "disconnected",
                  member_number(row, "bypass") ? "bypass"
                                               : member_string(row, "state"),
                  member_number(row, "wanted"), member_number(row, "applied"),
                  tagged);
        free(tagged);
    }
    table_finish(t);
}

static void
print_users(const struct json *json)
{
    const struct json *users = member_array(json, "users");
    struct table *t = table_create("user\tuid\tcojobs\tjobs\tplaces\tweight\t"
                                   "served_s\tentries\trefused\tlast refusal");

    for (size_t i = 0; i < users->array.n; i++) {
        const struct json *row = users->array.elems[i];
        const struct json *refused = member_object(row, "refused");
        const char *user = member_string(row, "user");
        char *uid = (has_member(row, "uid")
                         ? xasprintf("%.0f", member_number(row, "uid"))
                         : xstrdup("-"));

        table_add(t, "%s\t%s\t%.0f\t%.0f\t%.0f\t%g\t%.1f\t%.0f\t%.0f\t%s",
                  has_member(row, "pod") ? member_string(row, "pod")
                  : *user                ? user
                                         : "-",
                  uid, member_number(row, "cojobs"),
                  member_number(row, "jobs"), member_number(row, "places"),
                  member_number(row, "weight"), member_number(row, "served_s"),
                  member_number(row, "entries"),
                  member_number(refused, "requests")
                      + member_number(refused, "claims")
                      + member_number(refused, "entries"),
                  member_string(row, "why"));
        free(uid);
    }
    table_finish(t);
}

static void
print_before(const struct json *before, const char *port)
{
    struct table *t;
    char *headings;

    if (!before->array.n) {
        printf("no other job is served before it there\n");
        return;
    }
    headings = xasprintf("rank\tlevel\tbefore it\t%s", port);
    t = table_create(headings);
    free(headings);
    for (size_t i = 0; i < before->array.n; i++) {
        const struct json *row = before->array.elems[i];

        table_add(t, "%.0f\t%.0f\t%s\t%.3f s", member_number(row, "rank"),
                  member_number(row, "level"), member_string(row, "job"),
                  member_number(row, "seconds"));
    }
    table_finish(t);
}

/* Returns words for 'code', what decided an order. */
static const char *
decider_words(const char *code)
{
    static const char *const words[] = {
        [ORDER_BY_RULE] = "baseline rule",
        [ORDER_BY_PERMUTATION] = "permutation",
        [ORDER_BY_KEY] = "key of iterating jobs",
        [ORDER_BY_PLAN] = "plan ahead",
        [ORDER_BY_OVERRIDE] = "override",
        [ORDER_BY_START] = "its first weights",
    };

    for (int i = 0; order_decider_names[i]; i++) {
        if (!strcmp(order_decider_names[i], code)) {
            return words[i];
        }
    }
    return code;
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
    printf("ranked by: %s\n", decider_words(member_string(json, "ranked_by")));
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
    if (!has_member(json, "iterations_left")) {
        printf("its remaining iterations are unknown: there are no reports, "
               "and its traffic does not show iterations\n");
    } else if (*bottleneck) {
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
    if (!has_member(ends, "estimate_s")) {
        printf("when its stage ends is unknown\n");
    } else {
        printf(
            "its stage ends in about %.1f s: in %.1f s without competing "
            "traffic, in %.1f s if all other traffic of its ports is served "
            "first\n",
            member_number(ends, "estimate_s"),
            member_number(ends, "earliest_s"),
            member_number(ends, "latest_s"));
    }
    print_quality("", json);
}

static void
print_progress(const struct json *json)
{
    const struct json *counted = shash_find_data(json_object(json), "counted");

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

static void
print_controller(const struct json *json)
{
    printf("controller  %s, generation %.0f, order %.0f, policy %s\n",
           member_string(json, "state"), member_number(json, "generation"),
           member_number(json, "version"), member_string(json, "policy"));
    printf("cluster     %.0f cojobs, %.0f jobs, %.0f stages\n",
           member_number(json, "cojobs"), member_number(json, "jobs"),
           member_number(json, "stages"));
    printf("hosts       %.0f, %.0f with a connected agent",
           member_number(json, "hosts"), member_number(json, "agents"));
    if (has_member(json, "order_age_s") && member_number(json, "agents")) {
        printf("; the order is %.1f s old, the slowest host %.1f s behind",
               member_number(json, "order_age_s"),
               member_number(json, "order_lag_s"));
    }
    putchar('\n');
    if (has_member(json, "coverage")) {
        printf("coverage    %.1f %% of the traffic belongs to jobs\n",
               100 * member_number(json, "coverage"));
    } else {
        printf("coverage    unknown: no host has reported traffic\n");
    }
    if (member_number(json, "gpu_s") > 0) {
        printf("GPU time    %.1f hours, of which jobs waited %.1f %% for the "
               "network\n",
               member_number(json, "gpu_s") / 3600,
               100 * member_number(json, "gpu_waited_s")
                   / member_number(json, "gpu_s"));
    }
}

/* Prints a comparison of stages with a plain network, if there is one. */
static void
print_comparison(const struct json *json, const char *title, const char *name)
{
    if (member_number(json, "plain_mean_s") > 0) {
        printf("%s %.0f stages %.1f s, without Stagecoach %.1f s by "
               "simulation: %.2f x\n",
               title, member_number(json, "stages"), member_number(json, name),
               member_number(json, "plain_mean_s"),
               member_number(json, "ratio"));
    }
}

static void
print_estimates(const struct json *json)
{
    const struct json *ranked = member_object(json, "ranked");

    printf("decisions   %.0f, the longest took %.0f us\n",
           member_number(json, "decisions"),
           member_number(json, "decision_us_max"));
    printf("ranked by   %s; so far",
           decider_words(member_string(json, "ranked_by")));
    for (int i = 0; i < ORDER_BY_OVERRIDE; i++) {
        printf("%s %s %.0f", i ? "," : "", order_decider_names[i],
               member_number(ranked, order_decider_names[i]));
    }
    putchar('\n');
    if (member_number(json, "stages") > 0) {
        print_quality("bound       ", json);
    }
    print_comparison(member_object(json, "predicted"),
                     "predicted   mean of the running", "order_mean_s");
    print_comparison(member_object(json, "gain"),
                     "gain        mean of the last", "measured_mean_s");
}

/* Prints since when, and by which operator, no order is applied. */
static void
print_observe(const struct json *json)
{
    const struct json *by = member_object(json, "observed_by");
    time_t at = member_number(by, "at") / 1000;
    struct tm tm;
    char text[32] = "";

    if (at && localtime_r(&at, &tm)) {
        strftime(text, sizeof text, "%F %T", &tm);
        printf("observing   since %s, by %s%s%s: no order is sent to "
               "hosts\n",
               text, member_string(by, "actor"),
               *member_string(by, "reason") ? ", " : "",
               member_string(by, "reason"));
    }
}

static void
print_alarms(const struct json *alarms)
{
    if (!alarms->array.n) {
        printf("alarms      none\n");
    }
    for (size_t i = 0; i < alarms->array.n; i++) {
        printf("ALARM       %s\n",
               member_string(alarms->array.elems[i], "text"));
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

/* Prints the view that the command is called after. */
int
cmd_view(int argc, char *argv[])
{
    static const struct {
        const char *name, *operand;
        void (*print)(const struct json *);
    } views[] = {
        { "order", NULL, print_order },
        { "hosts", NULL, print_hosts },
        { "users", NULL, print_users },
        { "status", NULL, print_status },
        { "explain", "COJOB/JOB", print_explanation },
    };
    size_t i = 0;

    while (strcmp(views[i].name, argv[0])) {
        i++;
    }
    return controller_query(argc, argv, views[i].operand, views[i].print);
}

struct stages_options {
    int64_t age_ms;             /* 0 for the stages since the controller's
                                 * start. */
    bool json;
};

/* Returns the largest number of seconds that a stage used a port, and stores
 * the port. */
static double
find_busiest(const struct json *row, const char **portp)
{
    const struct json *demand = member_object(row, "demand");
    const struct shash_node *node;
    double most = 0;

    *portp = "-";
    SHASH_FOR_EACH (node, json_object(demand)) {
        double seconds = member_number(demand, node->name);

        if (seconds > most) {
            most = seconds;
            *portp = node->name;
        }
    }
    return most;
}

static void
print_stages(const struct json *json)
{
    const struct json *stages = member_array(json, "stages");
    struct table *t = table_create("cojob\trung\tseconds\tbusiest\tbusy_s");

    for (size_t i = 0; i < stages->array.n; i++) {
        const struct json *row = stages->array.elems[i];
        double ended = member_number(row, "ended");
        const char *port;
        double busy = find_busiest(row, &port);

        table_add(t, "%s\t%.0f", member_string(row, "cojob"),
                  member_number(row, "rung"));
        if (ended > 0) {
            table_add(t, "%.3f", (ended - member_number(row, "began")) / 1000);
        } else {
            table_add(t, "running");
        }
        table_add(t, "%s\t%.3f", port, busy);
    }
    table_finish(t);
}

int
cmd_stages(int argc, char *argv[])
{
    static const struct option_row rows[] = {
        { "since", OPTION_CUSTOM, OPTION_AT(struct stages_options, age_ms),
          .value = "AGE", .parse = duration_option,
          .help = "stages of the history that ended within AGE" },
        FORMAT_ROW(struct stages_options, json),
        { .name = NULL },
    };
    static const struct option_table table = {
        .name = "stagecoach stages", .rows = rows,
        .usage = "usage: stagecoach stages [--since AGE] "
                 "[--format table|json]\n",
    };
    struct stages_options o = { .age_ms = 0 };
    int status = option_table_command(&table, argc, argv, &o, NULL);
    const char *args[] = { "stages", NULL };
    char *since;

    if (status >= 0) {
        return status;
    }
    if (!o.age_ms) {
        return controller_request(argv[0], "controller/stages", 0, NULL,
                                  o.json, print_stages);
    }
    since = xasprintf("%"PRId64, (int64_t) time_wall_msec() - o.age_ms);
    args[1] = since;
    status = controller_request(argv[0], "controller/history", 2, args, o.json,
                                print_stages);
    free(since);
    return status;
}

/* Interval of calls with --follow. */
#define FOLLOW_MS 500

static struct decisions_options {
    bool follow, json;
    int64_t last;               /* Number of the last printed decision. */
} decisions;

static void
print_decision(const struct json *d)
{
    time_t seconds = member_number(d, "at") / 1000;
    struct tm tm;
    char at[32] = "-";

    if (localtime_r(&seconds, &tm)) {
        strftime(at, sizeof at, "%T", &tm);
    }
    printf("%s %5.0f %-8s %s: %s (%s)\n", at, member_number(d, "id"),
           member_string(d, "kind"), member_string(d, "subject"),
           member_string(d, "reason"), member_string(d, "actor"));
}

/* Prints the new decisions.  The numbers of a restarted controller begin with
 * 1. */
static void
print_decisions(const struct json *json)
{
    const struct json *all = member_array(json, "decisions");

    for (size_t i = 0; i < all->array.n; i++) {
        if (decisions.json) {
            print_and_destroy(json_clone(all->array.elems[i]));
        } else {
            print_decision(all->array.elems[i]);
        }
    }
    decisions.last = member_number(json, "last");
    fflush(stdout);
}

int
cmd_decisions(int argc, char *argv[])
{
    static const struct option_row rows[] = {
        { "follow", OPTION_FLAG, OPTION_AT(struct decisions_options, follow),
          .help = "keep printing new decisions" },
        FORMAT_ROW(struct decisions_options, json),
        { .name = NULL },
    };
    static const struct option_table table = {
        .name = "stagecoach decisions", .rows = rows,
        .usage = "usage: stagecoach decisions [--follow] "
                 "[--format table|json]\n",
    };
    int status = option_table_command(&table, argc, argv, &decisions, NULL);

    if (status >= 0) {
        return status;
    }
    vlog_set_levels(NULL, VLF_CONSOLE, VLL_ERR);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    do {
        char *after = xasprintf("%"PRId64, decisions.last);
        const char *args[] = { after };

        status = controller_request(argv[0], "controller/decisions-after", 1,
                                    args, false, print_decisions);
        free(after);
        if (decisions.follow && !status) {
            poll_timer_wait(FOLLOW_MS);
            poll_block();
        }
    } while (decisions.follow && !status && !ferror(stdout));
    return status;
}
