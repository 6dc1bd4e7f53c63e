/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/controller-query.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "controller/ovsdb/rpc-call.h"
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

/* Parses the options and, if 'what' is nonnull, the argument that it is a word
 * for.  Returns an exit status, or -1 to go on. */
int
controller_arguments(int argc, char *argv[], const char *what, bool *jsonp)
{
    int n_arguments = what ? 1 : 0;
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
            printf("usage: stagecoach %s%s%s [--format table|json]\n",
                   argv[0], what ? " " : "", what ? what : "");
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
    if (optind + n_arguments < argc) {
        fprintf(stderr, "stagecoach %s: \"%s\": unexpected argument, there "
                "are only %soptions\n", argv[0], argv[optind + n_arguments],
                what ? "one and " : "");
        return EXIT_USAGE;
    } else if (optind + n_arguments > argc) {
        fprintf(stderr, "stagecoach %s: %s: missing, one is required\n",
                argv[0], what);
        return EXIT_USAGE;
    }
    return -1;
}

char *
controller_call(const char *command, size_t n_args, const char *const *args,
                int timeout_ms, char **replyp, int *errnum)
{
    char *socket = xasprintf("%s/controller.ctl", cli_rundir());
    char *error = rpc_unixctl(socket, command, n_args, args, timeout_ms,
                              replyp, errnum);

    free(socket);
    return error;
}

int
controller_ask(const char *name, const char *request, size_t n_args,
               const char *const *args, bool as_json,
               void (*print)(const struct json *))
{
    int status = EXIT_OK;
    char *reply, *error;
    int errnum;

    error = controller_call(request, n_args, args, TIMEOUT_MS, &reply,
                            &errnum);
    if (error) {
        fprintf(stderr, "stagecoach %s: %s\n", name, error);
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
            fprintf(stderr, "stagecoach %s: the reply is not a JSON "
                    "object\n", name);
            status = EXIT_NO;
        }
        json_destroy(json);
    }
    free(reply);
    return status;
}

int
controller_query_about(int argc, char *argv[], const char *what,
                       const char *request,
                       void (*print)(const struct json *))
{
    const char *argument;
    bool as_json;
    int status;

    status = controller_arguments(argc, argv, what, &as_json);
    if (status >= 0) {
        return status;
    }
    argument = argv[optind];
    return controller_ask(argv[0], request, what ? 1 : 0, &argument, as_json,
                          print);
}

int
controller_query(int argc, char *argv[], const char *request,
                 void (*print)(const struct json *))
{
    return controller_query_about(argc, argv, NULL, request, print);
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

const struct json *
member_object(const struct json *object, const char *name)
{
    static struct shash none = SHASH_INITIALIZER(&none);
    static const struct json empty = {
        .type = JSON_OBJECT, .count = 1, .object = &none,
    };
    const struct json *json = member(object, name);

    return json && json->type == JSON_OBJECT ? json : &empty;
}
