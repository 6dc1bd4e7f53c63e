/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/optimiser.h"

#include <math.h>

#include "tests/unit/unit-test.h"

/* Each optimiser against its textbook formula in double precision. */
UNIT_TEST(optimisers_do_what_books_say)
{
    const double rate = 0.1, b1 = 0.9, b2 = 0.999, epsilon = 1e-8;
    double w[5] = { 0 }, v = 0, sum = 0, m = 0, s = 0;
    float got[5] = { 0 }, states[5][4] = { { 0 } };

    for (int t = 1; t <= 200; t++) {
        double g = sin(t) + 0.3;
        float gf = g;

        g = gf;
        w[0] += g;
        w[1] -= rate * g;
        v = b1 * v + g;
        w[2] -= rate * v;
        sum += g * g;
        w[3] -= rate * g / (sqrt(sum) + epsilon);
        m = b1 * m + (1 - b1) * g;
        s = b2 * s + (1 - b2) * g * g;
        w[4] -= rate * (m / (1 - pow(b1, t)))
                / (sqrt(s / (1 - pow(b2, t))) + epsilon);
        for (int c = 0; c < 5; c++) {
            struct optimiser_config config =
                optimiser_defaults(optimiser_by_number(c), rate, b1);
            float *of_class[4] = {
                &states[c][0],
                &states[c][1],
                &states[c][2],
                &states[c][3],
            };

            config.class->step(&config, 1, &gf, of_class, &got[c]);
            assert_true(fabs(got[c] - w[c]) < 1e-3 * (1 + fabs(w[c])));
        }
    }
    assert_null(optimiser_find("adamant"));
    assert_null(optimiser_by_number(5));
    assert_ptr_equal(optimiser_by_number(4), optimiser_find("adam"));
}
