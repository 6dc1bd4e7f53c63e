/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPLAY_COMMAND_H
#define REPLAY_COMMAND_H 1

/* stagecoach-shim --replay: from the capture's file to those of what left, and
 * what was counted on standard output, one "NAME VALUE..." a line.  Returns an
 * exit status. */

struct options;

int replay_command(const struct options *);

#endif /* shim/replay/command.h */
