/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_INTERRUPT_H
#define BASE_INTERRUPT_H 1

/* Long work that is interrupted keeps what it has finished.
 *
 * After interrupt_catch() the first SIGINT or SIGTERM is only remembered.  The
 * work checks for it between its parts, prints or writes what is finished, and
 * reports the interrupt in one line.  A second signal ends the program at
 * once, as both do before interrupt_catch(): files are read and options are
 * checked before it.
 *
 *    interrupt_catch();
 *    while (n < n_seeds && !interrupt_caught()) {
 *        ...work on seed 'n'...
 *        n++;
 *    }
 *    ...print the first 'n'...
 *    if (n < n_seeds) {
 *        return interrupt_say(interrupt_caught(), n, n_seeds, "seed");
 *    }
 *
 * System calls are restarted.  Any thread may call interrupt_caught(). */

#include <stddef.h>

void interrupt_catch(void);

/* Returns the signal that was caught, or 0. */
int interrupt_caught(void);

/* Prints "interrupted after N of N_ALL NOUNs" on standard error, without
 * "of N_ALL" if that is 0.  Returns the exit status of a program that signal
 * 'number' has ended. */
int interrupt_say(int number, size_t n, size_t n_all, const char *noun);

#endif /* base/interrupt.h */
