/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "tests/emulator/nvml-emulator.h"
#include "tests/unit/unit-test.h"
#include "trainer/process/gpu-use.h"

#define GB (1ull << 30)
#define NEAR 1e-6

struct use {
    double busy, memory;
};

static int64_t now_us = 1;

/* Reads a second later. */
static struct use
use_of(struct gpu_use *gpu)
{
    struct use use;

    now_us += 1000000;
    gpu_use_read(gpu, now_us, &use.busy, &use.memory);
    return use;
}

/* This process and two others share a device of 80 GB. */
static int
set_up(void **state)
{
    struct gpu_use *gpu;

    nvml_emulator = (struct nvml_emulator) {
        .total = 80 * GB, .used = 30 * GB, .time_us = 1000,
        .processes = {
            { .pid = 1, .used = 12 * GB, .sm = 20 },
            { .pid = getpid(), .used = 10 * GB, .sm = 40 },
            { .pid = 2, .used = 8 * GB, .sm = 30 },
        },
        .n_processes = 3,
    };
    assert_null(gpu_use_open(NVML_EMULATOR, NVML_EMULATOR_BUS_ID, &gpu));
    *state = gpu;
    return 0;
}

static int
tear_down(void **state)
{
    gpu_use_close(*state);
    assert_int_equal(nvml_emulator.n_open, 0);
    return 0;
}

#define GPU_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, set_up, tear_down, struct gpu_use *gpu)

GPU_TEST(the_use_is_that_of_other_processes)
{
    struct use use = use_of(gpu);

    assert_float_equal(use.busy, 0.5, NEAR);
    assert_float_equal(use.memory, 0.25, NEAR);
}

GPU_TEST(a_use_remains_until_there_are_new_samples)
{
    use_of(gpu);
    nvml_emulator.processes[0].sm = 70;
    assert_float_equal(use_of(gpu).busy, 0.5, NEAR);
    nvml_emulator.time_us += 1000;
    assert_float_equal(use_of(gpu).busy, 1, NEAR);
    nvml_emulator.processes[0].sm = nvml_emulator.processes[2].sm = 0;
    nvml_emulator.time_us += 1000;
    assert_float_equal(use_of(gpu).busy, 0, NEAR);
}

GPU_TEST(reads_are_at_least_a_tenth_of_a_second_apart)
{
    struct use use;

    use_of(gpu);
    nvml_emulator.used += 8 * GB;
    gpu_use_read(gpu, now_us + 99999, &use.busy, &use.memory);
    assert_float_equal(use.memory, 0.25, NEAR);
    gpu_use_read(gpu, now_us + 100000, &use.busy, &use.memory);
    assert_float_equal(use.memory, 0.35, NEAR);
}

/* As in a container with process ids of its own. */
GPU_TEST(without_this_process_in_the_list_the_use_is_0)
{
    struct use use;

    nvml_emulator.processes[1].pid = 3;
    use = use_of(gpu);
    assert_float_equal(use.busy, 0, 0);
    assert_float_equal(use.memory, 0, 0);
}

GPU_TEST(without_utilisation_by_process_only_memory_is_known)
{
    struct use use;

    nvml_emulator.no_samples = true;
    use = use_of(gpu);
    assert_float_equal(use.busy, 0, 0);
    assert_float_equal(use.memory, 0.25, NEAR);
}

GPU_TEST(a_lost_device_has_no_use)
{
    struct use use;

    nvml_emulator.lost = true;
    use = use_of(gpu);
    assert_float_equal(use.busy, 0, 0);
    assert_float_equal(use.memory, 0, 0);
}

static void
assert_error(const char *library, const char *bus_id, const char *wanted)
{
    struct gpu_use *gpu;
    char *error = gpu_use_open(library, bus_id, &gpu);

    assert_null(gpu);
    assert_says(error, wanted);
    assert_int_equal(nvml_emulator.n_open, 0);
}

UNIT_TEST(what_cannot_be_opened_is_named)
{
    memset(&nvml_emulator, 0, sizeof nvml_emulator);
    assert_error("no-such-library.so", NVML_EMULATOR_BUS_ID,
                 "no-such-library.so");
    assert_error("libm.so.6", NVML_EMULATOR_BUS_ID,
                 "libm.so.6: no function nvmlInit_v2");
    assert_error(NVML_EMULATOR, "00000000:af:00.0",
                 "device 00000000:af:00.0: Not Found");
    nvml_emulator.lost = true;
    assert_error(NVML_EMULATOR, NVML_EMULATOR_BUS_ID, "GPU is lost");
}
