/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MACHINE_USE_H
#define MACHINE_USE_H 1

/* What others use of this machine, as this process can measure it.
 *
 * The balance of batches (balance/predictor.h) predicts the speed of a worker
 * from its last speeds and from the use of its processors and memory by
 * others.  On an emulated machine a profile defines that use; on a real one
 * the kernel counts it.
 *
 *    use = machine_use_create("", n_threads);
 *    for (;;) {
 *        ...an iteration...
 *        machine_use_read(use, clock_monotonic_us(), &sample);
 *        ...sample.cpu...
 *    }
 *
 * A sample covers the time since the one before.  A call less than 10 ms after
 * the last sample stores that one again: the kernel counts in steps of a clock
 * tick.
 *
 *    quota      cpu.max of this process's cgroup and of the cgroups above it;
 *               in cgroup v1 cpu.cfs_quota_us and cpu.cfs_period_us
 *    waiting    /proc/self/task/N/schedstat: waits for a processor that
 *               another process has, or because a quota is used up
 *    memory     MemAvailable of /proc/meminfo, less the own resident memory
 *    stalled    memory.pressure of the own cgroup (v2), otherwise
 *               /proc/pressure/memory
 *
 * A source that is missing or malformed counts as 0.  The first sample prints
 * one line with the names of all such sources.
 *
 * The kernel enforces a quota from the moment that it is set, so a change is
 * known before the iteration that it slows down.  What other processes take is
 * known after an iteration only.  So 'cpu' has the quota of now, and of the
 * past only how much less than their quota the threads got.
 *
 * The use of the processors by all others, /proc/stat less the own time, is
 * not a source: others also use what this process leaves, most of all while it
 * waits for slower workers, and programs of low priority use everything.  On a
 * full machine that number is high whatever the worker gets.  cpu.pressure
 * counts the waits of each process in the cgroup, also of those for which the
 * worker has to wait.
 *
 * machine_memory_left() is for allocations: MemAvailable, or less by the
 * memory.max of a cgroup (v2) above this process.  The kernel would give up
 * inactive pages of files there.
 *
 * One thread.  No function fails. */

#include <stdint.h>

struct machine_use;

/* Fractions from 0 to 1. */
struct machine_sample {
    double quota;               /* Part of the processors that the threads
                                 * could use, and that quotas deny now. */
    double waiting;             /* Part of their time of running or waiting
                                 * that the threads waited for a processor. */
    double cpu;                 /* Part of the processors that the threads
                                 * would not get: 'quota', or more if they
                                 * waited for longer than quotas cause. */
    double memory;              /* Part of the memory that others use. */
    double stalled;             /* Part of the time that tasks waited for
                                 * memory. */
};

/* 'root' is the folder with "proc"; "" is the machine's.  The paths of cgroups
 * begin there, too.  'n_threads' is the number of threads that compute. */
struct machine_use *machine_use_create(const char *root, int n_threads);
void machine_use_destroy(struct machine_use *);

/* Returns bytes.  'root' is as above. */
double machine_memory_left(const char *root);

/* 'now_us' is the time of clock_monotonic_us(). */
void machine_use_read(struct machine_use *, int64_t now_us,
                      struct machine_sample *);

#endif /* trainer/process/machine-use.h */
