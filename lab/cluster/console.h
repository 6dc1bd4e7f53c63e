/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_CONSOLE_H
#define LAB_CONSOLE_H 1

/* Messages of a lab on standard error, and signals.
 *
 * On a terminal a status line at the bottom is overwritten by the next one.
 * Elsewhere a status is printed as a line now and then.  say() prints a
 * message above the status line. */


#include "openvswitch/compiler.h"

void say(const char *format, ...) OVS_PRINTF_FORMAT(1, 2);

/* 'plain' is printed if standard error is not a terminal, unless it is
 * null. */
void say_status(const char *line, const char *plain);
void say_status_end(void);

/* Returns the last 'n_lines' lines of 'file', which the caller must free;
 * never NULL. */
char *say_tail(const char *file, int n_lines);

/* Returns "WHAT failed (HOW)", by the status of a process, and the end of its
 * 'log'. */
char *say_failure(const char *what, int status, const char *log);

/* Signals
 * -------
 *
 * SIGINT, SIGTERM and SIGHUP only set a flag, which every loop checks, so that
 * a lab never ends without removing its namespaces.  SIGCHLD only wakes
 * poll_block(). */

void interrupt_init(void);

/* Returns the first of SIGINT, SIGTERM and SIGHUP that was received, or 0. */
int interrupt_signal(void);
void interrupt_wait(void);

/* Waits for a signal or 'ms' to pass. */
void interrupt_sleep(int ms);

#endif /* lab/cluster/console.h */
