/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/interval.h"

#include <math.h>

/* With more degrees of freedom than the table has, the expansion of Cornish
 * and Fisher around the normal quantile (Abramowitz and Stegun 26.7.5) is
 * exact to 0.0002. */
double
interval_student(size_t df)
{
    static const double table[] = { 12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                    2.4469,  2.3646, 2.3060, 2.2622, 2.2281 };
    static const double z = 1.959964;
    double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;

    if (df <= sizeof table / sizeof *table) {
        return table[df - 1];
    }
    return z + (z3 + z) / (4.0 * df)
           + (5 * z5 + 16 * z3 + 3 * z) / (96.0 * df * df)
           + (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384.0 * df * df * df);
}

struct interval
interval_of(const double *values, size_t n_values)
{
    struct interval in = { .mean = NAN, .low = NAN, .high = NAN };
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n_values; i++) {
        if (!isnan(values[i])) {
            sum += values[i];
            in.n++;
        }
    }
    if (in.n) {
        in.mean = sum / in.n;
    }
    for (size_t i = 0; i < n_values; i++) {
        if (!isnan(values[i])) {
            squares += (values[i] - in.mean) * (values[i] - in.mean);
        }
    }
    if (in.n > 1) {
        double half = interval_student(in.n - 1)
                      * sqrt(squares / (in.n - 1) / in.n);

        in.low = in.mean - half;
        in.high = in.mean + half;
    }
    return in;
}
