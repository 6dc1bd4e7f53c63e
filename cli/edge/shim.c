/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach shim: what a shim of this host knows and sees. */

#include "cli/edge/shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "shim/control/show.h"

static const struct command commands[] = {
    { "stats", "[SOCKET]", "Print what the shim counts and knows.",
      shim_stats },
    { "capture", "--write FILE [OPTION...]",
      "Write a job's frames to a pcapng file.", shim_capture },
    { NULL, NULL, NULL, NULL },
};

char *
shim_default_socket(void)
{
    const char *rundir = getenv("STAGECOACH_RUNDIR");
    char *path;

    if (asprintf(&path, "%s/shim.sock",
                 rundir && *rundir ? rundir : "/run/stagecoach") < 0) {
        abort();
    }
    return path;
}

int
shim_stats(int argc, char *argv[])
{
    char *path, *error;

    if (command_help(commands, "stagecoach shim", argc, argv)) {
        return EXIT_OK;
    }
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        fprintf(stderr, "stagecoach shim stats: \"%s\" is too much, one "
                "SOCKET is allowed\n", argv[argc > 2 ? 2 : 1]);
        return EXIT_USAGE;
    }
    path = argc == 2 ? strdup(argv[1]) : shim_default_socket();
    error = shim_show(path, stdout);
    free(path);
    if (error) {
        fprintf(stderr, "%s\n", error);
        free(error);
        return EXIT_UNREACHABLE;
    }
    return EXIT_OK;
}

int
cmd_shim(int argc, char *argv[])
{
    return command_dispatch(commands, "stagecoach shim", argc - 1, argv + 1);
}
