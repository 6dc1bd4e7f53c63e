/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/controller-query.h"

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

struct query_options {
    bool json;
};

static const struct option_row rows[] = {
    FORMAT_ROW(struct query_options, json),
    { .name = NULL },
};

int
controller_arguments(int argc, char *argv[], const char *what, bool *jsonp,
                     int *argument)
{
    char *name = xasprintf("stagecoach %s", argv[0]);
    char *usage = xasprintf("usage: %s%s%s [--format table|json]\n", name,
                            what ? " " : "", what ? what : "");
    const struct option_table table = {
        .name = name, .usage = usage, .rows = rows, .operand = what,
        .min_operands = what ? 1 : 0, .max_operands = what ? 1 : 0,
    };
    struct query_options o;
    int status = option_table_command(&table, argc, argv, &o, argument);

    *jsonp = o.json;
    free(usage);
    free(name);
    return status;
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
    int first, status;
    bool as_json;

    status = controller_arguments(argc, argv, what, &as_json, &first);
    if (status >= 0) {
        return status;
    }
    return controller_ask(argv[0], request, what ? 1 : 0,
                          (const char *const *) &argv[first], as_json, print);
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
