/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DURATION_H
#define DURATION_H 1

/* Lengths of time as people write them: "90s", "15m", "2h", "7d". */

#include <stdbool.h>
#include <stdint.h>

/* Stores the milliseconds of 'text', which are more than 0 and at most a
 * year's, or returns false. */
bool duration_parse(const char *text, int64_t *msp);

/* Stores what 'ms' are, roughly, such as "2h". */
void duration_format(int64_t ms, char *buffer, int size);

#endif /* cli/duration.h */
