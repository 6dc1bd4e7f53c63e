/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach decisions: lists decisions with actor and reason. */

#include <config.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "util.h"

/* Interval of calls with --follow. */
#define FOLLOW_MS 500

struct decisions_options {
    bool follow, json;
};

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

/* Number of the last printed decision. */
static int64_t last;

static void
print_line(const struct json *d)
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
        print_line(all->array.elems[i]);
    }
    last = member_number(json, "last");
    fflush(stdout);
}

static void
print_json_lines(const struct json *json)
{
    const struct json *all = member_array(json, "decisions");

    for (size_t i = 0; i < all->array.n; i++) {
        char *text = json_to_string(all->array.elems[i], JSSF_SORT);

        puts(text);
        free(text);
    }
    last = member_number(json, "last");
    fflush(stdout);
}

/* Reads the decisions after 'last'. */
static int
ask(const char *name, void (*print)(const struct json *))
{
    char *after = xasprintf("%"PRId64, last);
    const char *args[] = { after };
    int status = controller_ask(name, "controller/decisions-after", 1, args,
                                false, print);

    free(after);
    return status;
}

int
cmd_decisions(int argc, char *argv[])
{
    struct decisions_options o = { .follow = false };
    int status = option_table_command(&table, argc, argv, &o, NULL);

    if (status >= 0) {
        return status;
    }
    vlog_set_levels(NULL, VLF_CONSOLE, VLL_ERR);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    do {
        status = ask(argv[0], o.json ? print_json_lines : print_decisions);
        if (o.follow && !status) {
            poll_timer_wait(FOLLOW_MS);
            poll_block();
        }
    } while (o.follow && !status && !ferror(stdout));
    return status;
}
