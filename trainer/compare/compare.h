/* SPDX-License-Identifier: Apache-2.0 */

#ifndef COMPARE_H
#define COMPARE_H 1

/* "stagecoach-trainer compare": the same training under several schemes.
 * Blocks for minutes.  Returns the exit status. */
int compare_command(int argc, char *argv[]);

#endif /* trainer/compare/compare.h */
