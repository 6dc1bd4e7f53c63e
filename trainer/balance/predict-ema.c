/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "trainer/balance/predictor.h"
#include "trainer/balance/series.h"
#include "base/memory.h"

struct ema {
    struct predictor up;
    struct series series;
};

static struct predictor *
ema_create(uint64_t seed)
{
    struct ema *e = allocate(1, sizeof *e);

    return &e->up;
}

static void
ema_destroy(struct predictor *up)
{
    free(up);
}

static void
ema_update(struct predictor *up, double speed, double cpu, double memory)
{
    series_add(&((struct ema *) up)->series, speed, cpu, memory);
}

static double
ema_predict(struct predictor *up)
{
    return ((struct ema *) up)->series.average;
}

const struct predictor_class predictor_ema = {
    .name = "ema",
    .create = ema_create,
    .destroy = ema_destroy,
    .update = ema_update,
    .predict = ema_predict,
};
