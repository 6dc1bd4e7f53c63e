/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROLLER_QUERY_H
#define CONTROLLER_QUERY_H 1

/* Commands that call the controller and print its reply. */

#include <stdbool.h>
#include <stddef.h>

struct json;

/* Runs a unixctl command of the controller.  Returns NULL or a malloc()'d
 * message; '*errnum' is nonzero if the controller does not reply. */
char *controller_call(const char *command, size_t n_args,
                      const char *const *args, int timeout_ms, char **replyp,
                      int *errnum);

/* Runs a command "stagecoach NAME [ARG] [--format table|json]": calls
 * "controller/NAME", with the argument ARG if 'what', its name for messages,
 * is not null, and prints the JSON reply unchanged or with 'print'.  Returns
 * the exit status. */
int controller_query(int argc, char *argv[], const char *what,
                     void (*print)(const struct json *));

/* Calls 'request' with 'n_args' arguments for command 'name' and prints the
 * reply, an object, unchanged or with 'print'.  Returns the exit status, after
 * a message on failure. */
int controller_request(const char *name, const char *request, size_t n_args,
                       const char *const *args, bool as_json,
                       void (*print)(const struct json *));

/* Calls 'request' likewise, which changes the intent database.  A controller
 * that has just started connects to it first; waits for that up to 10 s. */
int controller_change(const char *name, const char *request, size_t n_args,
                      const char *const *args, bool as_json,
                      void (*print)(const struct json *));

/* A command "stagecoach NAME [OPERAND] [--reason TEXT]
 * [--format table|json]" of an operator. */
struct operation {
    const char *name;    /* Such as "host remove". */
    const char *request; /* Takes the operand, the user and the
                          * reason. */
    const char *operand; /* Its name for messages, NULL without one. */
    void (*print)(const struct json *);
};

/* Runs an operation like controller_change().  Returns the exit status. */
int controller_operate(int argc, char *argv[], const struct operation *);

/* Calls 'request' without arguments for command 'name' and stores the reply,
 * an object, which the caller destroys.  Returns the exit status, after a
 * message on failure. */
int controller_get(const char *name, const char *request, struct json **);

/* Prints and destroys 'json'. */
void print_and_destroy(struct json *);

/* Members of a reply for printing: "-", 0, an empty array or an empty object
 * if the member is missing or has another type. */
const char *member_string(const struct json *, const char *name);
double member_number(const struct json *, const char *name);
bool has_member(const struct json *, const char *name);

/* Returns a share as "75.0%", or "unknown"; the caller frees. */
char *percentage(const struct json *, const char *name, int digits);
const struct json *member_array(const struct json *, const char *name);
const struct json *member_object(const struct json *, const char *name);

/* Option "--wait=hosts": waits until the hosts have applied a change of the
 * order (controller/northbound/views/control.h).
 * ------------------------------------------------------------------------- */

/* Timeout. */
#define WAIT_HOSTS_MS 30000

/* Row of the option --wait, stored in a bool. */
#define WAIT_HOSTS_ROW(STRUCT, MEMBER)                                      \
    { "wait", OPTION_CUSTOM, OPTION_AT(STRUCT, MEMBER), .value = "hosts",   \
      .parse = wait_hosts_parse,                                            \
      .help = "wait until all hosts have applied the change" }

/* Sets the bool at 'wait' if 'text' is "hosts".  Returns NULL or a message. */
char *wait_hosts_parse(const char *text, void *wait);

/* Waits.  'args' are the arguments of "controller/rollout"; 'n_args' is 0 or
 * 3.  Returns an exit status, after a message with the lagging hosts unless it
 * is EXIT_OK. */
int wait_hosts(const char *command, const char *const args[], size_t n_args);

#endif /* cli/operator/controller-query.h */
