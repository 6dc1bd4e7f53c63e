/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach pin, pause, exclude, observe, undo, overrides: manual overrides
 * of the order. */

#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/user-name.h"
#include "cli/command.h"
#include "cli/duration.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"

struct override_options {
    bool as_json;
    bool wait;                  /* Wait until the hosts have applied the
                                 * order. */
    int64_t for_ms;             /* Duration, 0 without an end. */
    const char *reason;
};

#define OVERRIDE 1              /* Mode of a command that sets an override. */
#define UNDO 2
#define AT(MEMBER) OPTION_AT(struct override_options, MEMBER)

static const struct option_row rows[] = {
    { "for", OPTION_CUSTOM, AT(for_ms), .value = "TIME", .modes = OVERRIDE,
      .parse = duration_option, .help = "end of the override, such as 15m" },
    { "reason", OPTION_TEXT, AT(reason), .value = "TEXT", .modes = OVERRIDE,
      .help = "reason that is shown with the override" },
    WAIT_HOSTS_ROW(struct override_options, wait),
    FORMAT_ROW(struct override_options, as_json),
    { .name = NULL },
};

/* Parses the options and 'min' to 'max' arguments, which 'usage' describes.
 * Stores the index of the first argument in '*first'.  Returns an exit status,
 * or -1 to continue. */
static int
parse_options(int argc, char *argv[], const char *usage, unsigned int mode,
              int min, int max, struct override_options *o, int *first)
{
    char *name = xasprintf("stagecoach %s", argv[0]);
    char *text = xasprintf("usage: %s %s\n", name, usage);
    const struct option_table table = {
        .name = name, .usage = text, .rows = rows, .modes = mode,
        .operand = mode == UNDO ? "ID" : "COJOB/JOB", .min_operands = min,
        .max_operands = max,
    };
    int status;

    *o = (struct override_options) { .reason = "" };
    status = option_table_command(&table, argc, argv, o, first);
    free(text);
    free(name);
    return status;
}

static void
print_override(const struct json *json)
{
    const char *target = member_string(json, "target");

    printf("%.0f: %s%s%s from now on; \"stagecoach undo %.0f\" ends "
           "it\n", member_number(json, "id"), member_string(json, "kind"),
           *target ? " " : "", target, member_number(json, "id"));
}

static void
print_undo(const struct json *json)
{
    const char *target = member_string(json, "target");

    printf("%.0f: %s%s%s has ended\n", member_number(json, "id"),
           member_string(json, "kind"), *target ? " " : "", target);
}

/* pin, pause and exclude, which have a target, and observe. */
int
cmd_override(int argc, char *argv[])
{
    bool has_target = strcmp(argv[0], "observe");
    char *usage = xasprintf("%s[--for TIME] [--reason TEXT] [--wait hosts] "
                            "[--format table|json]", has_target
                            ? "COJOB/JOB|COJOB/RUNG|COJOB " : "");
    struct override_options o;
    int first;
    int status = parse_options(argc, argv, usage, OVERRIDE, has_target,
                               has_target, &o, &first);

    if (status < 0) {
        char *actor = user_name();
        char *ms = xasprintf("%"PRId64, o.for_ms);
        const char *args[] = { argv[0], has_target ? argv[first] : "", ms,
                               actor, o.reason };

        status = controller_change(argv[0], "controller/override", 5, args,
                                   o.as_json, print_override);
        if (status == EXIT_OK && o.wait) {
            status = wait_hosts(argv[0], NULL, 0);
        }
        free(ms);
        free(actor);
    }
    free(usage);
    return status;
}

int
cmd_undo(int argc, char *argv[])
{
    struct override_options o;
    int first;
    int status = parse_options(argc, argv,
                               "[ID] [--wait hosts] [--format table|json]",
                               UNDO, 0, 1, &o, &first);

    if (status < 0) {
        char *actor = user_name();
        const char *args[] = { first < argc ? argv[first] : "0", actor };

        status = controller_change(argv[0], "controller/undo", 2, args,
                                   o.as_json, print_undo);
        if (status == EXIT_OK && o.wait) {
            status = wait_hosts(argv[0], NULL, 0);
        }
        free(actor);
    }
    return status;
}

/* Formats 'ms' since the epoch, or returns 'otherwise' if it is 0. */
static const char *
format_time(double ms, const char *otherwise, char text[32])
{
    time_t seconds = ms / 1000;
    struct tm tm;

    if (ms <= 0 || !localtime_r(&seconds, &tm)) {
        return otherwise;
    }
    strftime(text, 32, "%F %T", &tm);
    return text;
}

static void
print_overrides(const struct json *json)
{
    const struct json *all = member_array(json, "overrides");
    struct table *t = table_create("id\tkind\ttarget\tby\tsince\tuntil\t"
                                   "ended\treason");

    for (size_t i = 0; i < all->array.n; i++) {
        const struct json *row = all->array.elems[i];
        const char *target = member_string(row, "target");
        char at[32], until[32], ended[32];

        table_add(t, "%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%s",
                  member_number(row, "id"), member_string(row, "kind"),
                  *target ? target : "-", member_string(row, "actor"),
                  format_time(member_number(row, "at"), "-", at),
                  format_time(member_number(row, "until"), "undone", until),
                  format_time(member_number(row, "ended"), "in force", ended),
                  member_string(row, "reason"));
    }
    table_finish(t);
}

int
cmd_overrides(int argc, char *argv[])
{
    return controller_query(argc, argv, NULL, print_overrides);
}
