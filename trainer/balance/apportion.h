/* SPDX-License-Identifier: Apache-2.0 */

#ifndef APPORTION_H
#define APPORTION_H 1

/* Divides 'total' into whole parts in proportion to 'weights', by largest
 * remainder.
 *
 * Each part is at least 1 and at most its 'max'; what a bound takes from or
 * gives to one part, the others share.  'n' <= 'total' <= the sum of 'max',
 * weights are positive, and 'scratch' is of 'n' numbers. */

#include <stdint.h>

void apportion(int n, uint32_t total, const double *weights,
               const uint32_t *max, double *scratch, uint32_t *parts);

#endif /* trainer/balance/apportion.h */
