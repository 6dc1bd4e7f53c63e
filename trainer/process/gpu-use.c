/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/gpu-use.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

#define NVML_FILE "libnvidia-ml.so.1"
#define MAX_PROCESSES 256       /* Of one GPU. */
#define MIN_US 100000           /* Time between two reads by NVML, us. */

/* The part of NVML's stable interface that is used: the header is not needed
 * to build. */
typedef struct nvml_device *nvml_device;

struct nvml_memory {
    unsigned long long total, free, used;       /* Bytes. */
};

struct nvml_process {
    unsigned int pid;
    unsigned long long used;    /* Bytes; ULLONG_MAX if unknown. */
    unsigned int gpu_instance, compute_instance;
};

struct nvml_sample {
    unsigned int pid;
    unsigned long long time_us;
    unsigned int sm, memory, encoder, decoder;  /* Percent. */
};

struct gpu_use {
    void *file;                 /* dlopen()'s. */
    nvml_device device;
    int64_t read_us;            /* Time of the last use; 0: none. */
    double busy, memory;        /* As of then. */
    uint64_t sample_us;         /* Driver's time of the newest sample. */
    double sampled;             /* Sum of these samples, 0 to 1. */

    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int);
    int (*find)(const char *bus_id, nvml_device *);
    int (*get_memory)(nvml_device, struct nvml_memory *);
    int (*get_processes)(nvml_device, unsigned int *n, struct nvml_process *);
    int (*get_samples)(nvml_device, struct nvml_sample *, unsigned int *n,
                       unsigned long long last_us);
};

static char *
load(struct gpu_use *use, const char *library)
{
    const struct {
        const char *name;
        void **to;
    } functions[] = {
        { "nvmlInit_v2", (void **) &use->init },
        { "nvmlShutdown", (void **) &use->shutdown },
        { "nvmlErrorString", (void **) &use->error_string },
        { "nvmlDeviceGetHandleByPciBusId_v2", (void **) &use->find },
        { "nvmlDeviceGetMemoryInfo", (void **) &use->get_memory },
        { "nvmlDeviceGetComputeRunningProcesses_v3",
          (void **) &use->get_processes },
        { "nvmlDeviceGetProcessUtilization", (void **) &use->get_samples },
    };

    use->file = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!use->file) {
        return duplicate(dlerror());    /* It contains the name. */
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        *functions[i].to = dlsym(use->file, functions[i].name);
        if (!*functions[i].to) {
            return message("%s: no function %s, the driver is too old",
                           library, functions[i].name);
        }
    }
    return NULL;
}

char *
gpu_use_open(const char *library, const char *bus_id, struct gpu_use **usep)
{
    struct gpu_use *use = allocate(1, sizeof *use);
    char *error;
    int status;

    library = library ? library : NVML_FILE;
    *usep = NULL;
    error = load(use, library);
    status = error ? 0 : use->init();
    if (!error && status) {
        error = message("%s: %s", library, use->error_string(status));
    } else if (!error) {
        status = use->find(bus_id, &use->device);
        if (!status) {
            *usep = use;
            return NULL;
        }
        error = message("%s: device %s: %s", library, bus_id,
                        use->error_string(status));
        use->shutdown();
    }
    if (use->file) {
        dlclose(use->file);
    }
    free(use);
    return error;
}

void
gpu_use_close(struct gpu_use *use)
{
    if (use) {
        use->shutdown();
        dlclose(use->file);
        free(use);
    }
}

/* Stores the memory that this process has on the device, in bytes.  Returns
 * false if the driver does not list this process. */
static bool
own_memory(struct gpu_use *use, unsigned long long *bytes)
{
    struct nvml_process processes[MAX_PROCESSES];
    unsigned int n = MAX_PROCESSES;

    if (!use->get_processes(use->device, &n, processes)) {
        for (unsigned int i = 0; i < n; i++) {
            if (processes[i].pid == (unsigned int) getpid()) {
                *bytes = processes[i].used;
                return true;
            }
        }
    }
    return false;
}

/* Each process with kernels since 'sample_us' has one sample.  Without new
 * samples, the last ones remain in force. */
static void
read_samples(struct gpu_use *use)
{
    struct nvml_sample samples[MAX_PROCESSES];
    unsigned int n = MAX_PROCESSES, percent = 0;
    uint64_t newest_us = use->sample_us;

    if (use->get_samples(use->device, samples, &n, use->sample_us)) {
        return;
    }
    for (unsigned int i = 0; i < n; i++) {
        if (samples[i].time_us > use->sample_us
            && samples[i].pid != (unsigned int) getpid()) {
            percent += samples[i].sm;
        }
        if (samples[i].time_us > newest_us) {
            newest_us = samples[i].time_us;
        }
    }
    if (newest_us > use->sample_us) {
        use->sampled = percent < 100 ? percent / 100. : 1;
        use->sample_us = newest_us;
    }
}

void
gpu_use_read(struct gpu_use *use, int64_t now_us, double *busy, double *memory)
{
    unsigned long long own;
    struct nvml_memory m;

    if (!use->read_us || now_us - use->read_us >= MIN_US) {
        use->read_us = now_us;
        use->busy = use->memory = 0;
        if (own_memory(use, &own)) {
            read_samples(use);
            use->busy = use->sampled;
            if (!use->get_memory(use->device, &m) && m.total && own < m.used) {
                use->memory = (double) (m.used - own) / m.total;
            }
        }
    }
    *busy = use->busy;
    *memory = use->memory;
}
