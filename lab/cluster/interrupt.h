/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_INTERRUPT_H
#define LAB_INTERRUPT_H 1

/* Signals as something to look at, never as something that happens.
 *
 * A lab that ends in the middle of anything would leave namespaces behind, so
 * SIGINT, SIGTERM and SIGHUP only set a flag that every loop looks at, and
 * SIGCHLD only wakes poll_block(). */

#include <stdbool.h>

void interrupt_init(void);

/* The first of SIGINT, SIGTERM and SIGHUP that came, 0 if none did. */
int interrupt_signal(void);
void interrupt_wait(void);

/* Waits for a signal or 'ms' to pass. */
void interrupt_sleep(int ms);

#endif /* lab/cluster/interrupt.h */
