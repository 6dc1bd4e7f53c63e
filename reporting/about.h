/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ABOUT_H
#define ABOUT_H 1

/* Returns one line about what made a page: product, version, the command of
 * this process, and the machine.  A page outlives the terminal in which it was
 * made, and figures are worth nothing without these.  The caller frees it. */
char *about_this_run(void);

#endif /* reporting/about.h */
