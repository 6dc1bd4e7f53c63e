/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAIN_H
#define TRAIN_H 1

/* "stagecoach-trainer train": one job on this machine, by one command.
 *
 * Starts servers and workers (team.h), lets the workers train until the
 * target, shows progress on standard output, and ends all of them.  With
 * checkpoints, it continues from the last one.  A signal ends the job; a
 * second one kills it. */

struct options;

/* Blocks.  Prints messages on standard error.  Returns the exit status: 0 when
 * the target is reached, 1 when the training failed, 128 + N after signal N.
 */
int train_command(const struct options *);

/* "evaluate" and "export": a checkpoint's loss and accuracy on standard
 * output, or its weights in a file.  Returns NULL or a message. */
char *weights_command(const struct options *);

#endif /* trainer/train/train.h */
