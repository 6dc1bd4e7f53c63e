/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DURATION_H
#define DURATION_H 1

/* Durations such as "90s", "15m", "2h", "7d". */

#include <stdbool.h>
#include <stdint.h>

/* Stores the milliseconds of 'text', more than 0 and at most a year.  Returns
 * false if 'text' is invalid. */
bool duration_parse(const char *text, int64_t *msp);

/* Parses the value of an option that is stored in an int64_t. */
char *duration_option(const char *text, void *ms);

#endif /* cli/duration.h */
