/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach explain: explains the rank of a job. */

#include <config.h>

#include <stdio.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "openvswitch/json.h"

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
