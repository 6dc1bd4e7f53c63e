/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_PLACES_H
#define LAB_PLACES_H 1

/* The directories and cgroups that a lab's daemons want to be there.
 *
 * No state.  Functions return NULL or a malloc()'d message. */

struct plan;

char *places_make(const struct plan *);

/* Makes 'dir', which is freed, and what is above it. */
char *places_make_dir(char *dir);

#endif /* lab/cluster/places.h */
