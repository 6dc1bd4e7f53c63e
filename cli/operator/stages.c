/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach stages: lists the network use of stages. */

#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/duration.h"
#include "cli/operator/table.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "timeval.h"
#include "util.h"

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
print_table(const struct json *json)
{
    const struct json *stages = member_array(json, "stages");
    struct table *t = table_create("cojob", "rung", "seconds", "busiest",
                                   "busy_s", NULL);

    for (size_t i = 0; i < stages->array.n; i++) {
        const struct json *row = stages->array.elems[i];
        double ended = member_number(row, "ended");
        const char *port;
        double busy = find_busiest(row, &port);

        table_add(t, "%s", member_string(row, "cojob"));
        table_add(t, "%.0f", member_number(row, "rung"));
        if (ended > 0) {
            table_add(t, "%.3f",
                      (ended - member_number(row, "began")) / 1000);
        } else {
            table_add(t, "running");
        }
        table_add(t, "%s", port);
        table_add(t, "%.3f", busy);
    }
    table_print(t, stdout);
    table_destroy(t);
}

static void
print_stages(const struct json *json)
{
    print_table(json);
    printf("%.0f decisions; no schedule has a mean below %.3f s\n",
           member_number(json, "decisions"),
           member_number(json, "bound_mean_s"));
}

/* Prints the stages of the history that ended within 'age_ms'. */
static int
ask_history(const char *name, int64_t age_ms, bool as_json)
{
    char *since = xasprintf("%"PRId64, (int64_t) time_wall_msec() - age_ms);
    const char *args[] = { "stages", since };
    int status = controller_ask(name, "controller/history", 2, args, as_json,
                                print_table);

    free(since);
    return status;
}

/* Removes "--since AGE" from the arguments.  Returns false after a message if
 * AGE is invalid. */
static bool
take_since(int *argcp, char *argv[], int64_t *age_msp)
{
    *age_msp = 0;
    for (int i = 1; i < *argcp; i++) {
        if (!strcmp(argv[i], "--since")) {
            const char *age = i + 1 < *argcp ? argv[i + 1] : "";

            if (!duration_parse(age, age_msp)) {
                fprintf(stderr, "stagecoach stages: --since: \"%s\" is no "
                        "time, such as 90m, 24h, 7d up to a year is "
                        "allowed\n", age);
                return false;
            }
            memmove(&argv[i], &argv[i + 2],
                    (*argcp - i - 1) * sizeof *argv);
            *argcp -= 2;
        }
    }
    return true;
}

int
cmd_stages(int argc, char *argv[])
{
    int64_t age_ms;
    int status;
    bool as_json;

    if (!take_since(&argc, argv, &age_ms)) {
        return EXIT_USAGE;
    }
    if (!age_ms) {
        return controller_query(argc, argv, "controller/stages",
                                print_stages);
    }
    status = controller_arguments(argc, argv, NULL, &as_json, NULL);
    return status >= 0 ? status : ask_history(argv[0], age_ms, as_json);
}
