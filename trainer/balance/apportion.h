/* SPDX-License-Identifier: Apache-2.0 */

#ifndef APPORTION_H
#define APPORTION_H 1

/* Divides 'total' into whole parts in proportion to 'weights', by largest
 * remainder.
 *
 * Each part is at least 1 and at most its 'max'; the other parts share the
 * difference.  'n' <= 'total' <= the sum of 'max', weights are positive, and
 * 'scratch' has 'n' elements. */

#include <stdint.h>

void apportion(int n, uint32_t total, const double *weights,
               const uint32_t *max, double *scratch, uint32_t *parts);

#endif /* trainer/balance/apportion.h */
