/* SPDX-License-Identifier: Apache-2.0 */

#ifndef COMPARE_COMMAND_H
#define COMPARE_COMMAND_H 1

/* "stagecoach-trainer compare SPEC.json [--format text|json] [--svg FILE]".
 *
 * 'argv' has the arguments after "compare".  Returns NULL or a message;
 * '*usage' is true if that is about the command line. */

#include <stdbool.h>

char *compare_command(int argc, char *argv[], bool *usage);

#endif /* trainer/compare/compare-command.h */
