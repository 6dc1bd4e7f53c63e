/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAINER_CONTROL_H
#define TRAINER_CONTROL_H 1

/* Commands to a running trainer process, and its threads.
 *
 * They are lines on standard input, "until M", "peers HOST:PORT,..." for peers
 * that were started without addresses, and "stop", and its end; SIGTERM
 * and SIGINT mean "stop".  Standard input is read if it is a terminal, a pipe,
 * a file or a socket; /dev/null has no commands and no end.
 *
 *    struct control *control = control_create(until);
 *    ...poll control_signal_fd(control) and control_input_fd(control)...
 *    control_run(control);
 *    if (control_stopped(control)) ...
 *
 * One per process; one thread.  Other threads block all signals: the main
 * thread polls for them.
 *
 *    error = thread_start(&id, "heartbeats", heartbeat_main, heartbeat); */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct control;

/* 'until' is the first target, iterations. */
struct control *control_create(uint64_t until);
void control_destroy(struct control *);

/* Descriptors to poll for input; -1, which poll() ignores, for none. */
int control_signal_fd(const struct control *);
int control_input_fd(const struct control *);

/* Reads signals and commands, without waiting; waits for one. */
void control_run(struct control *);
void control_wait(struct control *);

bool control_stopped(const struct control *);   /* "stop" or a signal. */
bool control_ended(const struct control *);     /* Or the input's end. */
bool control_input_closed(const struct control *);      /* No more commands. */
uint64_t control_target(const struct control *);        /* Iterations. */
int control_n_targets(const struct control *);  /* So far, without 0. */

/* The addresses of the line "peers", or NULL; valid until control_run(). */
const char *control_peers(const struct control *);

/* Returns NULL or a message "PLACE: cannot start a thread: WHY". */
char *thread_start(pthread_t *, const char *place, void *(*main)(void *),
                   void *aux);

#endif /* trainer/process/control.h */
