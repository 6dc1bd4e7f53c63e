/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIMILAR_H
#define SIMILAR_H 1

/* Finds the name that a person may have meant.
 *
 *    const char *meant = similar_name("ordre", names);
 */

#include <stdbool.h>
#include <stddef.h>

/* Number of letters to insert, delete, replace or swap with their neighbor
 * that make 'a' of 'b' (Damerau 1964), or SIZE_MAX if one of
 * them has more than 63 letters. */
size_t similar_distance(const char *a, const char *b);

/* Returns true if at most a third of the letters of 'name' differ. */
bool similar_is(const char *text, const char *name);

/* Returns the most similar of 'names', which end with NULL, or NULL if none
 * is. */
const char *similar_name(const char *text, const char *const names[]);

#endif /* base/similar.h */
