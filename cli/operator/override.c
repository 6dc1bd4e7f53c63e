/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach pin, pause, exclude, observe, undo, overrides: what a person
 * decides over the order's head. */

#include <config.h>

#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/duration.h"
#include "cli/operator/table.h"
#include "cli/operator/wait-hosts.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"

struct override_options {
    bool as_json;
    bool wait;                  /* Until hosts have it in force. */
    int64_t for_ms;             /* 0: no end. */
    const char *reason;
};

/* Who types.  Of somebody who became root by sudo, the own name. */
static char *
user_name(void)
{
    const char *sudo = getenv("SUDO_USER");
    const struct passwd *pw = getpwuid(getuid());

    return (!getuid() && sudo && *sudo ? xstrdup(sudo)
            : pw ? xstrdup(pw->pw_name)
            : xasprintf("uid %ld", (long) getuid()));
}

static bool
take_for(const char *name, struct override_options *o)
{
    if (!duration_parse(optarg, &o->for_ms)) {
        fprintf(stderr, "stagecoach %s: --for: \"%s\" is not a duration, "
                "such as 90s, 15m, 2h, 7d up to a year is allowed\n", name,
                optarg);
        return false;
    }
    return true;
}

static bool
take_format(const char *name, struct override_options *o)
{
    o->as_json = !strcmp(optarg, "json");
    if (!o->as_json && strcmp(optarg, "table")) {
        fprintf(stderr, "stagecoach %s: --format: \"%s\" is not one of "
                "\"table\", \"json\"\n", name, optarg);
        return false;
    }
    return true;
}

/* Parses the options; from 'min' to 'max' arguments, which 'usage' describes,
 * are left at 'optind'.  Returns an exit status, or -1 to go on. */
static int
parse(int argc, char *argv[], const char *usage, bool wishes, int min,
      int max, struct override_options *o)
{
    static const struct option all[] = {
        {"format", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {"wait", required_argument, NULL, 'w'},
        {"for", required_argument, NULL, 'F'},
        {"reason", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    struct option options[ARRAY_SIZE(all)];
    int c;

    memcpy(options, all, sizeof all);
    if (!wishes) {
        options[3] = all[ARRAY_SIZE(all) - 1];
    }
    *o = (struct override_options) { .reason = "" };
    optind = 0;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'h') {
            printf("usage: stagecoach %s %s\n", argv[0], usage);
            return EXIT_OK;
        } else if (c == 'r') {
            o->reason = optarg;
        } else if (c == 'w') {
            o->wait = wait_hosts_parse(argv[0], optarg);
            if (!o->wait) {
                return EXIT_USAGE;
            }
        } else if (c == 'F' ? !take_for(argv[0], o)
                   : c == 'f' ? !take_format(argv[0], o) : true) {
            return EXIT_USAGE;
        }
    }
    if (argc - optind < min || argc - optind > max) {
        fprintf(stderr, "usage: stagecoach %s %s\n", argv[0], usage);
        return EXIT_USAGE;
    }
    return -1;
}

static void
print_time(struct table *t, double ms, const char *otherwise)
{
    time_t seconds = ms / 1000;
    struct tm tm;
    char text[32];

    if (ms > 0 && localtime_r(&seconds, &tm)) {
        strftime(text, sizeof text, "%F %T", &tm);
        table_add(t, "%s", text);
    } else {
        table_add(t, "%s", otherwise);
    }
}

static void
print_wish(const struct json *json)
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

static int
wish(int argc, char *argv[], bool has_target)
{
    const char *usage = (has_target
                         ? "COJOB/JOB|COJOB/RUNG|COJOB [--for TIME] "
                           "[--reason TEXT] [--wait hosts] "
                           "[--format table|json]"
                         : "[--for TIME] [--reason TEXT] [--wait hosts] "
                           "[--format table|json]");
    struct override_options o;
    int status = parse(argc, argv, usage, true, has_target, has_target, &o);

    if (status < 0) {
        char *who = user_name();
        char *ms = xasprintf("%"PRId64, o.for_ms);
        const char *args[] = { argv[0], has_target ? argv[optind] : "", ms,
                               who, o.reason };

        status = controller_ask(argv[0], "controller/override", 5, args,
                                o.as_json, print_wish);
        if (status == EXIT_OK && o.wait) {
            status = wait_hosts(argv[0], NULL, 0);
        }
        free(ms);
        free(who);
    }
    return status;
}

int
cmd_pin(int argc, char *argv[])
{
    return wish(argc, argv, true);
}

int
cmd_pause(int argc, char *argv[])
{
    return wish(argc, argv, true);
}

int
cmd_exclude(int argc, char *argv[])
{
    return wish(argc, argv, true);
}

int
cmd_observe(int argc, char *argv[])
{
    return wish(argc, argv, false);
}

int
cmd_undo(int argc, char *argv[])
{
    struct override_options o;
    int status = parse(argc, argv, "[ID] [--wait hosts] [--format table|json]",
                       false, 0, 1, &o);

    if (status < 0) {
        char *who = user_name();
        const char *args[] = { optind < argc ? argv[optind] : "0", who };

        status = controller_ask(argv[0], "controller/undo", 2, args,
                                o.as_json, print_undo);
        if (status == EXIT_OK && o.wait) {
            status = wait_hosts(argv[0], NULL, 0);
        }
        free(who);
    }
    return status;
}

static void
print_overrides(const struct json *json)
{
    const struct json *all = member_array(json, "overrides");
    struct table *t = table_create("id", "kind", "target", "by", "since",
                                   "until", "ended", "reason", NULL);

    for (size_t i = 0; i < all->array.n; i++) {
        const struct json *row = all->array.elems[i];

        table_add(t, "%.0f", member_number(row, "id"));
        table_add(t, "%s", member_string(row, "kind"));
        table_add(t, "%s", *member_string(row, "target")
                           ? member_string(row, "target") : "-");
        table_add(t, "%s", member_string(row, "who"));
        print_time(t, member_number(row, "at"), "-");
        print_time(t, member_number(row, "until"), "undone");
        print_time(t, member_number(row, "ended"), "in force");
        table_add(t, "%s", member_string(row, "reason"));
    }
    table_print(t, stdout);
    table_destroy(t);
}

int
cmd_overrides(int argc, char *argv[])
{
    return controller_query(argc, argv, "controller/overrides",
                            print_overrides);
}
