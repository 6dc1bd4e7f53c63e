/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_SHOW_H
#define SHIM_SHOW_H 1

#include <stdio.h>

/* Prints the state of the shim with the control socket 'path': slots and
 * counters.  Returns NULL or a message. */
char *shim_show(const char *path, FILE *);

#endif /* shim/control/show.h */
