/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_CONSOLE_H
#define LAB_CONSOLE_H 1

/* What a lab tells the person who started it, on standard error.
 *
 * On a terminal there is one status line at the bottom that is written over;
 * elsewhere the status is a line of its own whenever it changes much.  Both
 * stay out of the way of say(), which is for news. */

#include <stdbool.h>

#include "openvswitch/compiler.h"

void say(const char *format, ...) OVS_PRINTF_FORMAT(1, 2);

/* 'plain' is what a log gets, if it is not null. */
void say_status(const char *line, const char *plain);
void say_status_end(void);

/* The last 'n_lines' lines of 'file', to be freed; never null. */
char *say_tail(const char *file, int n_lines);

/* Signals
 * -------
 *
 * SIGINT, SIGTERM and SIGHUP only set a flag, which every loop checks, so that
 * a lab never ends without removing its namespaces.  SIGCHLD only wakes
 * poll_block(). */

void interrupt_init(void);

/* The first of SIGINT, SIGTERM and SIGHUP that came, 0 if none did. */
int interrupt_signal(void);
void interrupt_wait(void);

/* Waits for a signal or 'ms' to pass. */
void interrupt_sleep(int ms);

#endif /* lab/cluster/console.h */
