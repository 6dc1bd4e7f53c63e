/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/controller-query.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/user-name.h"
#include "cli/command.h"
#include "controller/ovsdb/rpc-call.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-get.h"

#define TIMEOUT_MS 3000
#define READY_MS 10000          /* Longest wait for the intent database. */
#define PAUSE_MS 50             /* Pause between two calls in a wait. */

struct query_options {
    bool json;
};

char *
controller_call(const char *command, size_t n_args, const char *const *args,
                int timeout_ms, char **replyp, int *errnum)
{
    char *rundir = command_controller_rundir();
    char *socket = xasprintf("%s/controller.ctl", rundir);
    char *error = rpc_unixctl(socket, command, n_args, args, timeout_ms,
                              replyp, errnum);

    free(socket);
    free(rundir);
    return error;
}

/* Calls 'request' for command 'name' and stores the reply.  Returns the exit
 * status, after a message on failure. */
static int
call(const char *name, const char *request, size_t n_args,
     const char *const *args, char **replyp)
{
    int errnum;
    char *error = controller_call(request, n_args, args, TIMEOUT_MS, replyp,
                                  &errnum);

    if (error) {
        fprintf(stderr, "stagecoach %s: %s\n", name, error);
        free(error);
        return errnum ? EXIT_UNREACHABLE : EXIT_NO;
    }
    return EXIT_OK;
}

struct operate_options {
    bool as_json;
    const char *reason;
};

int
controller_operate(int argc, char *argv[], const struct operation *op)
{
    static const struct option_row rows[] = {
        { "reason", OPTION_TEXT, OPTION_AT(struct operate_options, reason),
          .value = "TEXT", .help = "reason for the log of decisions" },
        FORMAT_ROW(struct operate_options, as_json),
        { .name = NULL },
    };
    char *name = xasprintf("stagecoach %s", op->name);
    char *usage = xasprintf("usage: %s %s%s[--reason TEXT] "
                            "[--format table|json]\n",
                            name, op->operand ? op->operand : "",
                            op->operand ? " " : "");
    const struct option_table table = {
        .name = name,
        .usage = usage,
        .rows = rows,
        .operand = op->operand,
        .min_operands = op->operand != NULL,
        .max_operands = op->operand != NULL,
    };
    struct operate_options o = { .reason = "" };
    int first;
    int status = option_table_command(&table, argc, argv, &o, &first);

    if (status < 0) {
        char *actor = user_name();
        const char *args[] = { op->operand ? argv[first] : "", actor,
                               o.reason };

        status = controller_change(op->name, op->request, op->operand ? 3 : 2,
                                   op->operand ? args : args + 1, o.as_json,
                                   op->print);
        free(actor);
    }
    free(usage);
    free(name);
    return status;
}

/* Parses the reply for command 'name'.  Returns the exit status, after a
 * message unless it is an object; then '*jsonp' is NULL. */
static int
parse(const char *name, const char *reply, struct json **jsonp)
{
    *jsonp = json_from_string(reply);
    if ((*jsonp)->type == JSON_OBJECT) {
        return EXIT_OK;
    }
    fprintf(stderr, "stagecoach %s: the reply is not a JSON object\n", name);
    json_destroy(*jsonp);
    *jsonp = NULL;
    return EXIT_NO;
}

int
controller_get(const char *name, const char *request, struct json **jsonp)
{
    char *reply;
    int status = call(name, request, 0, NULL, &reply);

    *jsonp = NULL;
    if (status == EXIT_OK) {
        status = parse(name, reply, jsonp);
    }
    free(reply);
    return status;
}

int
controller_request(const char *name, const char *request, size_t n_args,
                   const char *const *args, bool as_json,
                   void (*print)(const struct json *))
{
    char *reply;
    int status = call(name, request, n_args, args, &reply);

    if (status == EXIT_OK && as_json) {
        puts(reply);
    } else if (status == EXIT_OK) {
        struct json *json;

        status = parse(name, reply, &json);
        if (json) {
            print(json);
        }
        json_destroy(json);
    }
    free(reply);
    return status;
}

/* Waits until the controller has received the intent database.  Returns an
 * exit status, after a message unless it is EXIT_OK. */
static int
wait_ready(const char *name)
{
    long long int deadline = time_msec() + READY_MS;

    for (;;) {
        struct json *json;
        int status = controller_get(name, "controller/status", &json);
        const char *state = member_string(json, "state");
        bool ready = (strcmp(state, "disconnected")
                      && strcmp(state, "starting"));

        if (status == EXIT_OK && !ready && time_msec() > deadline) {
            fprintf(stderr, "stagecoach %s: after %d s the controller is "
                    "still \"%s\", see \"stagecoach controller status\"\n",
                    name, READY_MS / 1000, state);
            status = EXIT_NO;
        }
        json_destroy(json);
        if (status != EXIT_OK || ready) {
            return status;
        }
        xnanosleep(PAUSE_MS * 1000000LL);
    }
}

int
controller_change(const char *name, const char *request, size_t n_args,
                  const char *const *args, bool as_json,
                  void (*print)(const struct json *))
{
    int status = wait_ready(name);

    return (status == EXIT_OK ? controller_request(name, request, n_args, args,
                                                   as_json, print)
                              : status);
}

int
controller_query(int argc, char *argv[], const char *what,
                 void (*print)(const struct json *))
{
    static const struct option_row rows[] = {
        FORMAT_ROW(struct query_options, json), { .name = NULL }
    };
    char *name = xasprintf("stagecoach %s", argv[0]);
    char *request = xasprintf("controller/%s", argv[0]);
    char *usage = xasprintf("usage: %s%s%s [--format table|json]\n", name,
                            what ? " " : "", what ? what : "");
    const struct option_table table = {
        .name = name, .usage = usage, .rows = rows, .operand = what,
        .min_operands = what ? 1 : 0, .max_operands = what ? 1 : 0,
    };
    struct query_options o;
    int first;
    int status = option_table_command(&table, argc, argv, &o, &first);

    if (status < 0) {
        status = controller_request(argv[0], request, what ? 1 : 0,
                                    (const char *const *) &argv[first], o.json,
                                    print);
    }
    free(usage);
    free(request);
    free(name);
    return status;
}

void
print_and_destroy(struct json *json)
{
    char *text = json_to_string(json, JSSF_SORT);

    puts(text);
    free(text);
    json_destroy(json);
}

const char *
member_string(const struct json *object, const char *name)
{
    const struct json *json = json_get(object, name, JSON_STRING);

    return json ? json_string(json) : "-";
}

bool
has_member(const struct json *object, const char *name)
{
    return object->type == JSON_OBJECT
           && shash_find(json_object(object), name);
}

char *
percentage(const struct json *object, const char *name, int digits)
{
    return (has_member(object, name) ? xasprintf(
                "%.*f%%", digits, 100 * member_number(object, name))
                                     : xstrdup("unknown"));
}

double
member_number(const struct json *object, const char *name)
{
    return (json_get(object, name, JSON_TRUE) ? 1
            : json_get_number(object, name));
}

const struct json *
member_array(const struct json *object, const char *name)
{
    static const struct json empty = { .type = JSON_ARRAY, .count = 1 };
    const struct json *json = json_get(object, name, JSON_ARRAY);

    return json ? json : &empty;
}

const struct json *
member_object(const struct json *object, const char *name)
{
    static struct shash none = SHASH_INITIALIZER(&none);
    static const struct json empty = {
        .type = JSON_OBJECT, .count = 1, .object = &none,
    };
    const struct json *json = json_get(object, name, JSON_OBJECT);

    return json ? json : &empty;
}

char *
wait_hosts_parse(const char *text, void *wait)
{
    *(bool *) wait = true;
    return (strcmp(text, "hosts")
            ? xasprintf("\"%s\" is not one of \"hosts\"", text) : NULL);
}

/* Prints the hosts that have not applied the order. */
static void
print_lagging(const char *command, const struct json *json)
{
    const struct json *behind = member_array(json, "behind");
    struct ds names = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < behind->array.n; i++) {
        ds_put_format(&names, "%s%s", i ? ", " : ": ",
                      json_string(behind->array.elems[i]));
    }
    fprintf(stderr, "stagecoach %s: --wait: after %d s %.0f of %.0f hosts "
            "with an agent and %.0f %% of the switches' flows have "
            "applied the order%s%s\n", command, WAIT_HOSTS_MS / 1000,
            member_number(json, "hosts_applied"),
            member_number(json, "hosts"),
            100 * member_number(json, "switches_applied"),
            behind->array.n ? "; lagging" : "", ds_cstr(&names));
    ds_destroy(&names);
}

int
wait_hosts(const char *command, const char *const args[], size_t n_args)
{
    char *name = xasprintf("%s: --wait", command);
    long long int deadline = time_msec() + WAIT_HOSTS_MS;
    bool done = false;
    int status = EXIT_OK;

    while (status == EXIT_OK && !done) {
        struct json *json;
        char *reply;

        status = call(name, "controller/rollout", n_args, args, &reply);
        if (status != EXIT_OK) {
            break;
        }
        json = json_from_string(reply);
        done = member_number(json, "done");
        if (!done && time_msec() > deadline) {
            print_lagging(command, json);
            status = EXIT_NO;
        } else if (!done) {
            xnanosleep(PAUSE_MS * 1000000LL);
        }
        json_destroy(json);
        free(reply);
    }
    free(name);
    return status;
}
