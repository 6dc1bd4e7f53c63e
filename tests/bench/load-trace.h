/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOAD_TRACE_H
#define LOAD_TRACE_H 1

/* How fast a worker was in each iteration, and what others used of its
 * machine just before: made by chance, or recorded.
 *
 *    load_trace_generate(LOAD_STEPS, seed, n, &trace);
 *    ...trace.speeds[0] to trace.speeds[trace.n - 1]...
 *    load_trace_uninit(&trace);
 *
 * Generated ones are emulated workers (trainer/balance/speed-profile.h) with
 * batches of about 50 ms. */

#include <stddef.h>
#include <stdint.h>

enum load_kind {
    LOAD_STEPS,                 /* Others come and go, and drift. */
    LOAD_SPIKES,                /* Single slow iterations, unannounced. */
    LOAD_DRIFT,                 /* Slow change only. */
};

struct load_trace {
    size_t n;
    double *speeds;             /* [n], any unit. */
    double *cpus, *memories;    /* [n + 1], before each and after the last. */
};

struct speed_profile;

/* An emulated worker of 'samples_per_s' at best that 'kind' happens to.
 * Everything about it, but not when, is the same for all seeds. */
struct speed_profile *load_profile(enum load_kind, double samples_per_s,
                                   uint64_t seed);

void load_trace_generate(enum load_kind, uint64_t seed, size_t n,
                         struct load_trace *);

/* Reads lines "SPEED CPU MEMORY" as tests/data/record-speed.c prints them;
 * those that begin with '#' are left out.  Returns 0 or an errno value. */
int load_trace_read(const char *file, struct load_trace *);
void load_trace_uninit(struct load_trace *);

#endif /* tests/bench/load-trace.h */
