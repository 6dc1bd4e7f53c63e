/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/pace.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/balance/speed-profile.h"
#include "trainer/process/control.h"
#include "trainer/process/gpu-use.h"
#include "trainer/process/options.h"

struct pace {
    struct speed_profile *profile;
    int64_t begin_us, step_us;
    bool emulates;
    bool has_profile;           /* And not only a constant cost. */
    int n_threads;

    /* What is measured; NULL if nothing is. */
    struct batch_size_meter *machine;
    struct gpu_use *gpu;
};

char *
pace_create(const struct options *o, struct pace **pacep)
{
    struct speed_profile_set *set = NULL;
    struct pace *pace;

    if (o->speed_profile) {
        char *error = speed_profile_set_from_file(o->speed_profile, &set);

        if (error) {
            return error;
        }
    }
    pace = *pacep = allocate(1, sizeof *pace);
    pace->profile =
        set ? speed_profile_create(set, o->rank, o->seed)
            : speed_profile_create_constant(o->sample_cost_us * 1e-6);
    pace->emulates = set || o->sample_cost_us > 0;
    pace->has_profile = set;
    pace->n_threads = o->n_threads;
    speed_profile_set_destroy(set);
    pace_begin(pace);
    return NULL;
}

void
pace_destroy(struct pace *pace)
{
    if (pace) {
        batch_size_meter_destroy(pace->machine);
        gpu_use_close(pace->gpu);
        speed_profile_destroy(pace->profile);
        free(pace);
    }
}

void
pace_begin(struct pace *pace)
{
    pace->begin_us = clock_monotonic_us();
    pace_step(pace);
}

void
pace_step(struct pace *pace)
{
    pace->step_us = clock_monotonic_us();
}

int64_t
pace_end_us(struct pace *pace, uint32_t n)
{
    double began = (pace->step_us - pace->begin_us) * 1e-6;

    return pace->step_us
           + speed_profile_seconds(pace->profile, n, began) * 1e6;
}

bool
pace_emulates(const struct pace *pace)
{
    return pace->emulates;
}

void
pace_wait(struct pace *pace, uint32_t n, struct control *control)
{
    int64_t end = pace_end_us(pace, n);
    struct pollfd fd = { .fd = control ? control_signal_fd(control) : -1,
                         .events = POLLIN };

    while (!control || !control_stopped(control)) {
        int64_t left = end - clock_monotonic_us();
        struct timespec ts = { .tv_sec = left / 1000000,
                               .tv_nsec = left % 1000000 * 1000 };

        if (left <= 0) {
            break;
        }
        if (ppoll(&fd, 1, &ts, NULL) > 0) {
            control_run(control);
        }
    }
}

double
pace_elapsed(const struct pace *pace)
{
    return (clock_monotonic_us() - pace->step_us) * 1e-6;
}

void
pace_measure(struct pace *pace, const char *bus_id)
{
    double cpu, memory;
    char *error = NULL;

    if (pace->has_profile || pace->machine || pace->gpu) {
        return;
    }
    if (bus_id) {
        error = gpu_use_open(NULL, bus_id, &pace->gpu);
    } else {
        pace->machine = batch_size_meter_create(pace->n_threads);
    }
    if (error) {
        fprintf(stderr, "%s: the use of the GPU by others counts as 0\n",
                error);
        free(error);
    }
    pace_use(pace, &cpu, &memory);      /* Begins the first interval. */
}

void
pace_use(struct pace *pace, double *cpu, double *memory)
{
    int64_t now_us = clock_monotonic_us();

    *cpu = *memory = 0;
    if (pace->has_profile) {
        speed_profile_use(pace->profile,
                          (pace->step_us - pace->begin_us) * 1e-6,
                          (now_us - pace->begin_us) * 1e-6, cpu, memory);
    } else if (pace->gpu) {
        gpu_use_read(pace->gpu, now_us, cpu, memory);
    } else if (pace->machine) {
        batch_size_meter_read(pace->machine, cpu, memory);
    }
}

uint32_t
pace_max_batch(const struct pace *pace)
{
    return speed_profile_max_batch(pace->profile);
}
