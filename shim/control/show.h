/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_SHOW_H
#define SHIM_SHOW_H 1

#include <stdio.h>

/* Asks the shim whose control socket is 'path' for all it knows and prints it
 * for people.  Returns NULL or a malloc()'d message. */
char *shim_show(const char *path, FILE *);

#endif /* shim/control/show.h */
