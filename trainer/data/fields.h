/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FIELDS_H
#define FIELDS_H 1

/* Fields of a line of text, for the makers of data sets.
 *
 * Each takes what '*s' begins with and moves it behind that, or returns false
 * and leaves it. */

#include <stdbool.h>
#include <stdint.h>

/* Decimal digits, at most 2^32 - 1. */
bool fields_integer(char **s, uint32_t *);

/* A finite number. */
bool fields_number(char **s, float *);

bool fields_word(char **s, const char *word);

/* Whether nothing but blanks is left of the line. */
bool fields_end(const char *s);

#endif /* trainer/data/fields.h */
