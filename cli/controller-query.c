/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/controller-query.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "controller/rpc-call.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "util.h"

#define TIMEOUT_MS 3000

const char *
cli_rundir(void)
{
    const char *rundir = getenv("STAGECOACH_RUNDIR");

    return rundir && *rundir ? rundir : "/run/stagecoach";
}

/* Returns an exit status, or -1 to go on. */
static int
parse_format(int argc, char *argv[], bool *jsonp)
{
    static const struct option options[] = {
        {"format", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;

    *jsonp = false;
    optind = 0;
    while ((c = getopt_long(argc, argv, "f:h", options, NULL)) != -1) {
        if (c == 'h') {
            printf("usage: stagecoach %s [--format table|json]\n", argv[0]);
            return EXIT_OK;
        } else if (c != 'f') {
            return EXIT_USAGE;
        } else if (!strcmp(optarg, "json")) {
            *jsonp = true;
        } else if (strcmp(optarg, "table")) {
            fprintf(stderr, "stagecoach %s: --format: \"%s\" is not one of "
                    "\"table\", \"json\"\n", argv[0], optarg);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "stagecoach %s: \"%s\": unexpected argument, there "
                "are only options\n", argv[0], argv[optind]);
        return EXIT_USAGE;
    }
    return -1;
}

int
controller_query(int argc, char *argv[], const char *request,
                 void (*print)(const struct json *))
{
    char *socket, *reply, *error;
    int status, errnum;
    bool as_json;

    status = parse_format(argc, argv, &as_json);
    if (status >= 0) {
        return status;
    }

    socket = xasprintf("%s/controller.ctl", cli_rundir());
    error = rpc_unixctl(socket, request, 0, NULL, TIMEOUT_MS, &reply,
                        &errnum);
    free(socket);
    if (error) {
        fprintf(stderr, "stagecoach %s: %s\n", argv[0], error);
        free(error);
        return errnum ? EXIT_UNREACHABLE : EXIT_NO;
    }
    if (as_json) {
        puts(reply);
    } else {
        struct json *json = json_from_string(reply);

        if (json->type == JSON_OBJECT) {
            print(json);
        } else {
            fprintf(stderr, "stagecoach %s: the answer is not a JSON "
                    "object\n", argv[0]);
            status = EXIT_NO;
        }
        json_destroy(json);
    }
    free(reply);
    return status < 0 ? EXIT_OK : status;
}

static const struct json *
member(const struct json *object, const char *name)
{
    return object->type == JSON_OBJECT
           ? shash_find_data(json_object(object), name) : NULL;
}

const char *
member_string(const struct json *object, const char *name)
{
    const struct json *json = member(object, name);

    return json && json->type == JSON_STRING ? json_string(json) : "-";
}

double
member_number(const struct json *object, const char *name)
{
    const struct json *json = member(object, name);

    return (!json ? 0
            : json->type == JSON_INTEGER ? json->integer
            : json->type == JSON_REAL ? json->real
            : json->type == JSON_TRUE);
}

const struct json *
member_array(const struct json *object, const char *name)
{
    static const struct json empty = { .type = JSON_ARRAY, .count = 1 };
    const struct json *json = member(object, name);

    return json && json->type == JSON_ARRAY ? json : &empty;
}
