/* SPDX-License-Identifier: Apache-2.0 */

#ifndef COMMAND_H
#define COMMAND_H 1

#include <stdbool.h>

#include "base/options.h"

/* The commands of "stagecoach".
 *
 * Each command is a function; the table in stagecoach.c names them all.  A
 * command gets its own name as argv[0] and returns an exit status: */

enum {
    EXIT_OK = 0,
    EXIT_NO = 1,                /* The result is negative, or a file is
                                 * invalid. */
    EXIT_USAGE = 2,
    EXIT_UNREACHABLE = 3,       /* A daemon or database does not reply. */
};

/* Row of the option --format, stored in a bool that is true for JSON. */
#define FORMAT_ROW(STRUCT, MEMBER)                                          \
    { "format", OPTION_CHOICE, OPTION_AT(STRUCT, MEMBER),                   \
      .value = "table|json", .deflt = "table", .help = "output format" }

struct command {
    const char *name;
    const char *usage;          /* Arguments, as in a synopsis. */
    const char *summary;        /* One line for --help. */
    int (*run)(int argc, char *argv[]);
};

/* Finds 'argv[0]' in the null-terminated 'commands' and runs it.  For an
 * unknown name it prints a message and returns EXIT_USAGE.  'parent' is used
 * in messages ("stagecoach"). */
int command_dispatch(const struct command *commands, const char *parent,
                     int argc, char *argv[]);

/* Runs command 'argv[1]' of a group of commands, or prints its help from the
 * table. */
int command_group(const struct command *commands, const char *parent,
                  int argc, char *argv[]);

/* Prints "NAME: ERROR", or ERROR alone if 'name' is null, and frees 'error'.
 * Returns EXIT_NO. */
int command_fail(const char *name, char *error);

/* Returns the value of environment variable 'name', 'deflt' if it is empty. */
const char *command_env(const char *name, const char *deflt);

/* Returns the run directory of this host: $STAGECOACH_RUNDIR or its
 * default. */
const char *command_rundir(void);

/* Returns the directory of the controller's sockets, which the caller frees.
 */
char *command_controller_rundir(void);

/* Prints and destroys 'json'. */
struct cJSON;
void command_print_json(struct cJSON *json);

/* Prints the help of "COMMAND --help" from the table, for commands without a
 * longer help text.  Returns true if it did. */
bool command_help(const struct command *commands, const char *parent,
                  int argc, char *argv[]);

int cmd_lab(int argc, char *argv[]);
int cmd_search(int argc, char *argv[]);
int cmd_sim(int argc, char *argv[]);
int cmd_run(int argc, char *argv[]);
int cmd_controller(int argc, char *argv[]);
int cmd_pki(int argc, char *argv[]);
int cmd_view(int argc, char *argv[]);
int cmd_decisions(int argc, char *argv[]);
int cmd_override(int argc, char *argv[]);
int cmd_undo(int argc, char *argv[]);
int cmd_overrides(int argc, char *argv[]);
int cmd_stages(int argc, char *argv[]);
int cmd_topology(int argc, char *argv[]);
int cmd_host(int argc, char *argv[]);
int cmd_doctor(int argc, char *argv[]);
int cmd_report(int argc, char *argv[]);
int cmd_top(int argc, char *argv[]);
int cmd_stage(int argc, char *argv[]);
int cmd_policy(int argc, char *argv[]);
int cmd_agent(int argc, char *argv[]);

#endif /* cli/command.h */
