/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "trainer/balance/predictor.h"
#include "base/memory.h"

struct memoryless {
    struct predictor up;
    double speed;
};

static struct predictor *
memoryless_create(uint64_t seed)
{
    struct memoryless *m = allocate(1, sizeof *m);

    return &m->up;
}

static void
memoryless_destroy(struct predictor *up)
{
    free(up);
}

static void
memoryless_update(struct predictor *up, double speed, double cpu,
                  double memory)
{
    ((struct memoryless *) up)->speed = speed;
}

static double
memoryless_predict(struct predictor *up)
{
    return ((struct memoryless *) up)->speed;
}

const struct predictor_class predictor_memoryless = {
    .name = "memoryless",
    .create = memoryless_create,
    .destroy = memoryless_destroy,
    .update = memoryless_update,
    .predict = memoryless_predict,
};
