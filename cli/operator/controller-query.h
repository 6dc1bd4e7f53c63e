/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROLLER_QUERY_H
#define CONTROLLER_QUERY_H 1

/* Commands that ask the controller something and show the answer. */

#include <stdbool.h>
#include <stddef.h>

struct json;

/* The run directory: $STAGECOACH_RUNDIR or its default. */
const char *cli_rundir(void);

/* Runs a unixctl command of the controller.  Returns NULL or a malloc()'d
 * message; '*errnum' is nonzero if the controller does not reply. */
char *controller_call(const char *command, size_t n_args,
                      const char *const *args, int timeout_ms, char **replyp,
                      int *errnum);

/* Runs a command "stagecoach NAME [--format table|json]": asks the controller
 * for 'request' and prints the JSON as it is or by 'print'.  Returns the exit
 * status. */
int controller_query(int argc, char *argv[], const char *request,
                     void (*print)(const struct json *));

/* The same of "stagecoach NAME WHAT [--format table|json]", where WHAT, which
 * 'what' is a word for, is asked for. */
int controller_query_about(int argc, char *argv[], const char *what,
                           const char *request,
                           void (*print)(const struct json *));

/* Parses "[WHAT] [--format table|json]"; 'what' may be null.  Stores the index
 * of the argument in '*argument', which may be null.  Returns an exit status, or
 * -1 to go on. */
int controller_arguments(int argc, char *argv[], const char *what,
                         bool *as_json, int *argument);

/* Asks the controller for 'request' with 'n_args' arguments on behalf of
 * command 'name' and prints the answer, an object, as it is or by 'print'.
 * Returns the exit status; what is wrong it has said. */
int controller_ask(const char *name, const char *request, size_t n_args,
                   const char *const *args, bool as_json,
                   void (*print)(const struct json *));

/* Members of the answer for printing: "-", 0, an empty array or an empty
 * object if there is no such member or it has another type. */
const char *member_string(const struct json *, const char *name);
double member_number(const struct json *, const char *name);
const struct json *member_array(const struct json *, const char *name);
const struct json *member_object(const struct json *, const char *name);

#endif /* cli/operator/controller-query.h */
