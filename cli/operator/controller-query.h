/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROLLER_QUERY_H
#define CONTROLLER_QUERY_H 1

/* Commands that call the controller and print its reply. */

#include <stdbool.h>
#include <stddef.h>

struct json;

/* Returns the run directory: $STAGECOACH_RUNDIR or its default. */
const char *cli_rundir(void);

/* Runs a unixctl command of the controller.  Returns NULL or a malloc()'d
 * message; '*errnum' is nonzero if the controller does not reply. */
char *controller_call(const char *command, size_t n_args,
                      const char *const *args, int timeout_ms, char **replyp,
                      int *errnum);

/* Runs a command "stagecoach NAME [--format table|json]": calls 'request' and
 * prints the JSON reply unchanged or with 'print'.  Returns the exit
 * status. */
int controller_query(int argc, char *argv[], const char *request,
                     void (*print)(const struct json *));

/* Runs a command "stagecoach NAME ARG [--format table|json]": as
 * controller_query(), with ARG as the argument of 'request'.  'what' names ARG
 * in messages. */
int controller_query_about(int argc, char *argv[], const char *what,
                           const char *request,
                           void (*print)(const struct json *));

/* Parses "[ARG] [--format table|json]".  There is no ARG if 'what' is null.
 * Stores the index of ARG in '*argument', which may be null.  Returns an exit
 * status, or -1 to continue. */
int controller_arguments(int argc, char *argv[], const char *what,
                         bool *as_json, int *argument);

/* Calls 'request' with 'n_args' arguments for command 'name' and prints the
 * reply, an object, unchanged or with 'print'.  Returns the exit status, after
 * a message on failure. */
int controller_ask(const char *name, const char *request, size_t n_args,
                   const char *const *args, bool as_json,
                   void (*print)(const struct json *));

/* Members of a reply for printing: "-", 0, an empty array or an empty object
 * if the member is missing or has another type. */
const char *member_string(const struct json *, const char *name);
double member_number(const struct json *, const char *name);
const struct json *member_array(const struct json *, const char *name);
const struct json *member_object(const struct json *, const char *name);

#endif /* cli/operator/controller-query.h */
