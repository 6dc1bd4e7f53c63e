/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach: the table of commands. */

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/run-directory.h"
#include "cli/command.h"

static const struct command commands[] = {
#ifdef HAVE_OVS
    { "lab", "run|up|down|exec ...",
      "Compare policies on a cluster on this machine.", cmd_lab },
#endif
    { "policy", "check|list|show|whatif|export ...",
      "Check, compare and export policies.", cmd_policy },
#ifdef HAVE_OVS
    { "controller",
      "init|join|start|stop|exec|status|raise-generation "
      "[OPTION...]",
      "Create, start and stop the databases and the controller.",
      cmd_controller },
    { "pki", "init|issue|rotate|show [OPTION...]",
      "Manage keys and certificates of controllers and agents.", cmd_pki },
    { "status", "[--format table|json]",
      "Show the state of the controller and its results.", cmd_view },
    { "doctor", "[--format table|json]",
      "Examine the whole cluster and print what is wrong, with its remedy.",
      cmd_doctor },
    { "top", "[--once]", "Show stages, hosts and links, once a second.",
      cmd_top },
    { "report", "[--since AGE] [--policy P] [OPTION...]",
      "Print what was observed on one page: jobs, shared links, waiting, and "
      "what an order would have saved.",
      cmd_report },
    { "order", "[--format table|json]",
      "List the stages in the order in which they get the network.",
      cmd_view },
    { "explain", "COJOB/JOB [--format table|json]",
      "Explain the rank of a job.", cmd_view },
    { "decisions", "[--follow] [--format table|json]",
      "List decisions with actor and reason.", cmd_decisions },
    { "pin", "COJOB/JOB|COJOB/RUNG|COJOB [--for TIME] [--reason TEXT]",
      "Serve the target before everything else.", cmd_override },
    { "pause", "COJOB/JOB|COJOB/RUNG|COJOB [--for TIME] [--reason TEXT]",
      "Serve everything else before the target; it continues to train.",
      cmd_override },
    { "exclude", "COJOB/JOB|COJOB/RUNG|COJOB [--for TIME] [--reason TEXT]",
      "Leave the target out of the order.", cmd_override },
    { "observe", "[--for TIME] [--reason TEXT]",
      "Apply no order, but compute and report it.", cmd_override },
    { "undo", "[ID] [--format table|json]",
      "End the last override (pin, pause, exclude, observe), or override ID.",
      cmd_undo },
    { "overrides", "[--format table|json]",
      "List manual overrides (pin, pause, exclude, observe).", cmd_overrides },
    { "stages", "[--since AGE] [--format table|json]",
      "List the network use of stages; \"sim\" reads the JSON.", cmd_stages },
    { "hosts", "[--format table|json]",
      "List the hosts and the order that they have applied.", cmd_view },
    { "users", "[--format table|json]",
      "List what each user has, was served and was refused.", cmd_view },
    { "host", "remove|revoke HOST [--reason TEXT] [--format table|json]",
      "Remove a host that has left the cluster from all reports.", cmd_host },
    { "stage", "begin|end [OPTION...]",
      "Announce the stages of a search that cannot announce them itself.",
      cmd_stage },
    { "topology", "import FILE --from slurm|topograph|volcano [OPTION...]",
      "Make the controller's topology file from that of another system.",
      cmd_topology },
    { "agent", "doctor [OPTION...]",
      "Check a host's configuration for an agent and a shim.", cmd_agent },
#endif
    { "run", "--cojob C --job J [--log LOG] -- COMMAND... | --print-env C J",
      "Run a command as a process of a job.", cmd_run },
    { "search", "run|check SEARCH.json ...",
      "Search hyper-parameters by successive halving.", cmd_search },
    { "sim", "WORKLOAD [OPTION...]",
      "Simulate coflows or searches under policies.", cmd_sim },
    { NULL, NULL, NULL, NULL },
};

static void
usage(const struct command *c, const char *parent, FILE *stream)
{
    fprintf(stream, "usage: %s COMMAND [ARG...]\n\n", parent);
    for (; c->name; c++) {
        fprintf(stream, "  %s %s\n      %s\n", c->name, c->usage, c->summary);
    }
}

static bool
is_help(const char *arg)
{
    return !strcmp(arg, "--help") || !strcmp(arg, "-h");
}

bool
command_help(const struct command *table, const char *parent,
             int argc, char *argv[])
{
    if (argc != 2 || !is_help(argv[1])) {
        return false;
    }
    for (const struct command *c = table; c->name; c++) {
        if (!strcmp(c->name, argv[0])) {
            printf("usage: %s %s %s\n\n%s\n", parent, c->name, c->usage,
                   c->summary);
            return true;
        }
    }
    return false;
}

int
command_dispatch(const struct command *table, const char *parent,
                 int argc, char *argv[])
{
    if (argc < 1) {
        usage(table, parent, stderr);
        return EXIT_USAGE;
    }
    if (is_help(argv[0]) || !strcmp(argv[0], "help")) {
        usage(table, parent, stdout);
        return EXIT_OK;
    }
    for (const struct command *c = table; c->name; c++) {
        if (!strcmp(c->name, argv[0])) {
            return c->run(argc, argv);
        }
    }
    fprintf(stderr, "%s: \"%s\" is not a command, \"%s --help\" lists them\n",
            parent, argv[0], parent);
    return EXIT_USAGE;
}

int
command_group(const struct command *table, const char *parent, int argc,
              char *argv[])
{
    return command_help(table, parent, argc - 1, argv + 1) ? EXIT_OK
           : command_dispatch(table, parent, argc - 1, argv + 1);
}

int
command_fail(const char *name, char *error)
{
    fprintf(stderr, "%s%s%s\n", name ? name : "", name ? ": " : "", error);
    free(error);
    return EXIT_NO;
}

const char *
command_env(const char *name, const char *deflt)
{
    const char *value = getenv(name);

    return value && *value ? value : deflt;
}

const char *
command_rundir(void)
{
    return command_env("STAGECOACH_RUNDIR", RUN_DIRECTORY);
}

char *
command_controller_rundir(void)
{
    return run_directory_of_controller(command_rundir());
}

void
command_print_json(cJSON *json)
{
    char *text = must(cJSON_Print(json));

    puts(text);
    cJSON_free(text);
    cJSON_Delete(json);
}

int
main(int argc, char *argv[])
{
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        puts("stagecoach " STAGECOACH_VERSION);
        return EXIT_OK;
    }
    return command_dispatch(commands, "stagecoach", argc - 1, argv + 1);
}
