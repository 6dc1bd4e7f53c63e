/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GPU_USE_H
#define GPU_USE_H 1

/* What other processes use of a GPU, as its driver counts it.
 *
 *    error = gpu_use_open(NULL, "0000:3B:00.0", &use);
 *    for (;;) {
 *        ...an iteration...
 *        gpu_use_read(use, clock_monotonic_us(), &busy, &memory);
 *    }
 *    gpu_use_close(use);
 *
 * The driver's library NVML is loaded at run time and needs no other program.
 * Its functions may take as long as an iteration, so a call less than 0.1 s
 * after the last one that used them stores the same numbers again.
 *
 *    busy     sum, over other processes, of the part of the time in which
 *             their kernels ran: the newest of the driver's samples, which it
 *             takes a few times a second
 *             (nvmlDeviceGetProcessUtilization())
 *    memory   part of the device's memory that other processes use
 *    (nvmlDeviceGetMemoryInfo(),
 *             nvmlDeviceGetComputeRunningProcesses())
 *
 * The utilisation of the whole device contains the own kernels, so it does not
 * replace a missing number: that counts as 0.  A part of a GPU (MIG) has no
 * utilisation by process.  If the driver does not list this process, as in a
 * container with process ids of its own, the own part is unknown, and both
 * numbers are 0.
 *
 * One thread. */

#include <stdint.h>

struct gpu_use;

/* 'library' is NULL for the system's NVML.  'bus_id' is the device's PCI
 * address.  Returns NULL or a message, with NULL in '*usep'. */
char *gpu_use_open(const char *library, const char *bus_id,
                   struct gpu_use **usep);
void gpu_use_close(struct gpu_use *);

/* Stores fractions from 0 to 1.  'now_us' is the time of
 * clock_monotonic_us(). */
void gpu_use_read(struct gpu_use *, int64_t now_us, double *busy,
                  double *memory);

#endif /* trainer/process/gpu-use.h */
