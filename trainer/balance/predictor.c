/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/predictor.h"

#include <math.h>
#include <string.h>

const struct predictor_class *const predictor_classes[] = {
    &predictor_memoryless,
    &predictor_ema,
    &predictor_arima,
    &predictor_rnn,
    &predictor_lstm,
    &predictor_lstm_x,
    &predictor_narx,
    NULL,
};

const struct predictor_class *
predictor_class_find(const char *name)
{
    for (size_t i = 0; predictor_classes[i]; i++) {
        if (!strcmp(predictor_classes[i]->name, name)) {
            return predictor_classes[i];
        }
    }
    return NULL;
}

struct predictor *
predictor_create(const struct predictor_class *class, uint64_t seed)
{
    struct predictor *p = class->create(seed);

    p->class = class;
    return p;
}

void
predictor_destroy(struct predictor *p)
{
    if (p) {
        p->class->destroy(p);
    }
}

/* An unknown load counts as 0. */
static double
share(double use)
{
    return use > 0 ? fmin(use, 1) : 0;
}

void
predictor_update(struct predictor *p, double speed, double cpu,
                 double memory)
{
    if (isfinite(speed) && speed > 0) {
        p->class->update(p, speed, share(cpu), share(memory));
    }
}

double
predictor_predict(struct predictor *p)
{
    return p->class->predict(p);
}
