/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/trial-curve.h"

#include <math.h>
#include <stddef.h>

/* Iterations of the recorded accuracies. */
static const short iterations[] = { 0,   2,   4,   6,   8,   10,  12,  14, 16,
                                    18,  20,  30,  40,  50,  60,  70,  80, 90,
                                    100, 110, 120, 130, 140, 150, 160, 170 };

#define N (sizeof iterations / sizeof *iterations)

struct trial_curve {
    int n_classes;
    double learning_rate;
    signed char percent[N];
};

/* tests/bench/trial-curves.py prints the rows. */
static const struct trial_curve curves[] = {
    { 2, 0.02, { 51, 50, 66, 88, 79, 88, 88, 91, 90, 92, 90, 93, 92,
                 93, 94, 95, 95, 95, 94, 94, 95, 95, 95, 95, 95, 95 } },
    { 2, 0.03, { 51, 55, 69, 82, 89, 88, 90, 91, 94, 93, 94, 94, 95,
                 95, 96, 95, 96, 95, 95, 96, 96, 96, 96, 95, 95, 96 } },
    { 2, 0.04, { 40, 55, 76, 84, 79, 87, 88, 89, 91, 91, 90, 93, 94,
                 94, 95, 95, 95, 96, 97, 96, 96, 97, 96, 96, 97, 97 } },
    { 10, 0.02, { 8,  9,  14, 17, 18, 23, 29, 31, 36, 38, 37, 48, 50,
                  53, 53, 58, 56, 59, 61, 60, 61, 61, 62, 62, 62, 63 } },
    { 10, 0.03, { 14, 9,  11, 21, 24, 23, 30, 32, 34, 37, 42, 43, 45,
                  51, 53, 55, 60, 54, 60, 57, 61, 60, 65, 64, 66, 65 } },
    { 10, 0.044, { 11, 14, 16, 20, 23, 28, 33, 36, 40, 41, 42, 49, 51,
                   57, 56, 58, 62, 58, 64, 66, 65, 64, 67, 67, 71, 70 } },
    { 10, 0.066, { 10, 14, 14, 24, 26, 30, 32, 35, 37, 40, 39, 49, 53,
                   55, 51, 55, 60, 62, 63, 59, 66, 68, 66, 68, 64, 70 } },
    { 10, 0.096, { 9,  16, 21, 21, 29, 25, 26, 32, 32, 32, 35, 45, 42,
                   47, 51, 50, 55, 56, 54, 58, 54, 61, 62, 60, 60, 60 } },
    { 10, 0.14, { 8,  13, 20, 24, 21, 32, 33, 30, 30, 40, 38, 38, 43,
                  42, 46, 46, 45, 44, 47, 43, 46, 53, 56, 57, 50, 51 } },
    { 10, 0.2, { 8,  14, 19, 24, 26, 27, 28, 31, 33, 31, 29, 41, 36,
                 41, 32, 32, 32, 24, 33, 31, 22, 20, 25, 20, 28, 22 } },
    { 10, 0.3, { 11, 11, 14, 18, 18, 19, 21, 29, 26, 30, 26, 28, 27,
                 27, 18, 11, 11, 11, 10, 9,  11, 13, 10, 8,  9,  10 } },
};

const struct trial_curve *
trial_curve_find(int n_classes, double learning_rate)
{
    const struct trial_curve *best = NULL;
    double least = INFINITY;

    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
        double classes = log(fmax(n_classes, 2) / curves[i].n_classes);
        double rates = log(learning_rate / curves[i].learning_rate);
        double distance = hypot(10 * classes, rates);

        if (distance < least) {
            least = distance;
            best = &curves[i];
        }
    }
    return best;
}

double
trial_curve_at(const struct trial_curve *curve, double k)
{
    size_t i = 1;
    double share;

    while (i < N - 1 && iterations[i] < k) {
        i++;
    }
    share =
        fmin((k - iterations[i - 1]) / (iterations[i] - iterations[i - 1]), 1);
    return (curve->percent[i - 1]
            + share * (curve->percent[i] - curve->percent[i - 1]))
           / 100;
}
