/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTERVAL_H
#define INTERVAL_H 1

/* Mean of measurements, with the 95 % confidence interval by Student's t
 * distribution: repeated experiments of the same size have their true mean in
 * 95 % of such intervals, if the measurements are about normal. */

#include <stddef.h>

struct interval {
    size_t n;                   /* Number of measurements. */
    double mean;                /* NAN without measurements. */
    double low, high;           /* NAN with fewer than two. */
};

/* Values that are NAN do not count. */
struct interval interval_of(const double *values, size_t n);

/* Returns the 97.5 % quantile of Student's t distribution with 'df' degrees
 * of freedom, at least 1, to within 0.001. */
double interval_student(size_t df);

#endif /* reporting/interval.h */
