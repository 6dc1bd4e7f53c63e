/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/factorise-step.h"

#include "trainer/models/lanes.h"
#include "trainer/models/vector.h"

#define LONGER 1.05
#define SHORTER 0.5

WIDE float
factorise_step(const struct factorise_step *step, float *restrict w,
               float *restrict h)
{
    float error = step->value - vector_dot(step->rank, w, h);
    float by = 2 * step->rate * error;
    float keep_w = 1 - 2 * step->rate * step->shrink_w;
    float keep_h = 1 - 2 * step->rate * step->shrink_h;

    for (size_t i = 0; i < step->rank; i++) {
        float x = w[i];

        w[i] = keep_w * x + by * h[i];
        h[i] = keep_h * h[i] + by * x;
    }
    return error;
}

WIDE float
factorise_delta(const struct factorise_step *step, const float *restrict w,
                const float *restrict h, float *restrict dw,
                float *restrict dh)
{
    float error = step->value - vector_dot(step->rank, w, h);
    float by = 2 * step->rate * error;
    float lose_w = 2 * step->rate * step->shrink_w;
    float lose_h = 2 * step->rate * step->shrink_h;

    for (size_t i = 0; i < step->rank; i++) {
        dw[i] = by * h[i] - lose_w * w[i];
        dh[i] = by * w[i] - lose_h * h[i];
    }
    return error;
}

void
bold_driver_run(struct bold_driver *driver, double loss)
{
    /* NaN does not count as a decrease. */
    driver->rate *= !driver->last || loss < driver->last ? LONGER : SHORTER;
    driver->last = loss;
}
