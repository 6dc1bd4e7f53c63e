/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/emulator/nvml-emulator.h"

#include <string.h>

/* As in the interface of NVML 12; see trainer/process/gpu-use.c. */
enum {
    SUCCESS = 0, ERROR_NOT_SUPPORTED = 3, ERROR_NOT_FOUND = 6,
    ERROR_INSUFFICIENT_SIZE = 7, ERROR_GPU_IS_LOST = 15,
};

struct memory {
    unsigned long long total, free, used;
};

struct process {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
};

struct sample {
    unsigned int pid;
    unsigned long long time_us;
    unsigned int sm, memory, encoder, decoder;
};

struct nvml_emulator nvml_emulator;

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int);
int nvmlDeviceGetHandleByPciBusId_v2(const char *, void **);
int nvmlDeviceGetMemoryInfo(void *, struct memory *);
int nvmlDeviceGetComputeRunningProcesses_v3(void *, unsigned int *,
                                            struct process *);
int nvmlDeviceGetProcessUtilization(void *, struct sample *, unsigned int *,
                                    unsigned long long);

int
nvmlInit_v2(void)
{
    if (nvml_emulator.lost) {
        return ERROR_GPU_IS_LOST;
    }
    nvml_emulator.n_open++;
    return SUCCESS;
}

int
nvmlShutdown(void)
{
    nvml_emulator.n_open--;
    return SUCCESS;
}

const char *
nvmlErrorString(int error)
{
    return error == ERROR_NOT_FOUND ? "Not Found"
           : error == ERROR_GPU_IS_LOST ? "GPU is lost" : "an error";
}

int
nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
    *device = &nvml_emulator;
    return strcmp(bus_id, NVML_EMULATOR_BUS_ID) ? ERROR_NOT_FOUND : SUCCESS;
}

int
nvmlDeviceGetMemoryInfo(void *device, struct memory *m)
{
    const struct nvml_emulator *e = device;

    *m = (struct memory) { e->total, e->total - e->used, e->used };
    return e->lost ? ERROR_GPU_IS_LOST : SUCCESS;
}

int
nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *n,
                                        struct process *processes)
{
    const struct nvml_emulator *e = device;

    if (e->lost) {
        return ERROR_GPU_IS_LOST;
    }
    if (*n < e->n_processes) {
        *n = e->n_processes;
        return ERROR_INSUFFICIENT_SIZE;
    }
    *n = e->n_processes;
    for (unsigned int i = 0; i < *n; i++) {
        processes[i] = (struct process) {
            .pid = e->processes[i].pid, .used = e->processes[i].used,
        };
    }
    return SUCCESS;
}

int
nvmlDeviceGetProcessUtilization(void *device, struct sample *samples,
                                unsigned int *n, unsigned long long last_us)
{
    const struct nvml_emulator *e = device;
    unsigned int found = 0;

    if (e->lost || e->no_samples) {
        return e->lost ? ERROR_GPU_IS_LOST : ERROR_NOT_SUPPORTED;
    }
    for (unsigned int i = 0; i < e->n_processes && e->time_us > last_us;
         i++) {
        if (e->processes[i].sm && found < *n) {
            samples[found++] = (struct sample) {
                .pid = e->processes[i].pid, .time_us = e->time_us,
                .sm = e->processes[i].sm,
            };
        }
    }
    *n = found;
    return found ? SUCCESS : ERROR_NOT_FOUND;
}
