/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NVML_EMULATOR_H
#define NVML_EMULATOR_H 1

/* An emulator of NVML, the library of NVIDIA's driver, with one device.
 *
 * Tests open it in place of the driver's library, and are also linked with it,
 * to change the device.  NVML_EMULATOR is its file:
 *
 *    gpu_use_open(NVML_EMULATOR, NVML_EMULATOR_BUS_ID, &use);
 *    nvml_emulator.used = nvml_emulator.total / 2;
 *
 * One thread. */

#include <stdbool.h>

#define NVML_EMULATOR_BUS_ID "00000000:3b:00.0"
#define NVML_EMULATOR_MAX 8

struct nvml_emulator_process {
    unsigned int pid;
    unsigned long long used;    /* Bytes of the device's memory. */
    unsigned int sm;            /* Percent, since the last sample. */
};

extern struct nvml_emulator {
    int n_open;                 /* nvmlInit_v2() without nvmlShutdown(). */
    bool lost;                  /* Every function fails. */
    bool no_samples;            /* There is no utilisation by process. */
    unsigned long long total, used;     /* Bytes. */
    unsigned long long time_us; /* Of the newest samples. */
    struct nvml_emulator_process processes[NVML_EMULATOR_MAX];
    unsigned int n_processes;
} nvml_emulator;

#endif /* tests/emulator/nvml-emulator.h */
