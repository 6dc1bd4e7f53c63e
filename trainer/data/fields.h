/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FIELDS_H
#define FIELDS_H 1

/* Parsers of the fields of a line, for readers of data sets.
 *
 * Each parses a field at '*s' and moves '*s' behind it, or returns false and
 * leaves '*s' unchanged. */

#include <stdbool.h>
#include <stdint.h>

/* Parses decimal digits, at most 2^32 - 1. */
bool fields_integer(char **s, uint32_t *);

/* Parses a finite number. */
bool fields_number(char **s, float *);

bool fields_word(char **s, const char *word);

/* Returns true if only white space follows. */
bool fields_end(const char *s);

#endif /* trainer/data/fields.h */
