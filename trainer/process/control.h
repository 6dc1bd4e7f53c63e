/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAINER_CONTROL_H
#define TRAINER_CONTROL_H 1

/* What a trainer process is told while it runs.
 *
 * Whoever started the process tells it by lines on its standard input, "until
 * M" or "stop", and by ending the input; anybody by SIGTERM or SIGINT, which
 * this turns into something to poll for.  A terminal, a pipe, a file or a
 * socket counts as standard input; /dev/null says nothing and never ends.
 *
 *    struct control *control = control_create();
 *    poll({ control_signal_fd(control), control_input_fd(control), ...});
 *    control_run(control);
 *    if (control_stopped(control)) ...
 *
 * One a process; one thread. */

#include <stdbool.h>
#include <stdint.h>

struct control;

/* 'until' is the first target. */
struct control *control_create(uint64_t until);
void control_destroy(struct control *);

/* Descriptors to poll for input; -1, which poll() skips, if there is none. */
int control_signal_fd(const struct control *);
int control_input_fd(const struct control *);

/* Takes what there is to take, without waiting. */
void control_run(struct control *);

bool control_stopped(const struct control *);   /* "stop" or a signal. */
bool control_ended(const struct control *);     /* That, or no more input. */
bool control_silent(const struct control *);    /* Nobody can say more. */
uint64_t control_target(const struct control *);        /* Iterations. */
int control_n_targets(const struct control *);  /* Other than 0, so far. */

#endif /* trainer/process/control.h */
