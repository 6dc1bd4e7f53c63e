/* SPDX-License-Identifier: Apache-2.0 */

/* The measurements of process/machine-use.h as other trainers see them. */

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/process/machine-use.h"

struct batch_size_meter {
    struct machine_use *use;
};

struct batch_size_meter *
batch_size_meter_create(int n_threads)
{
    struct batch_size_meter *meter = allocate(1, sizeof *meter);
    double cpu, memory;

    meter->use = machine_use_create("", n_threads);
    batch_size_meter_read(meter, &cpu, &memory);
    return meter;
}

void
batch_size_meter_destroy(struct batch_size_meter *meter)
{
    if (meter) {
        machine_use_destroy(meter->use);
        free(meter);
    }
}

void
batch_size_meter_read(struct batch_size_meter *meter, double *cpu,
                      double *memory)
{
    struct machine_sample sample;

    machine_use_read(meter->use, clock_monotonic_us(), &sample);
    *cpu = sample.cpu;
    *memory = fmax(sample.memory, sample.stalled);
}
