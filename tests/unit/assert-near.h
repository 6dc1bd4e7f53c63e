/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ASSERT_NEAR_H
#define ASSERT_NEAR_H 1

/* Numbers that are equal but for rounding, or infinite both. */

#include <math.h>

#include "tests/unit/unit-test.h"

static inline void
assert_near(double a, double b)
{
    if (a != b && !(fabs(a - b) <= 1e-9 * fmax(1, fabs(b)))) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

#endif /* tests/unit/assert-near.h */
