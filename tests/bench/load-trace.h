/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOAD_TRACE_H
#define LOAD_TRACE_H 1

/* Traces of a worker's speed in each iteration and of the load by other
 * programs as measured from one iteration's begin to the next one's: generated
 * randomly, or recorded.
 *
 *    load_trace_generate(LOAD_STEPS, seed, n, &trace);
 *    ...trace.speeds[0] to trace.speeds[trace.n - 1]...
 *    load_trace_uninit(&trace);
 *
 * Generated traces are from emulated workers (trainer/balance/speed-profile.h)
 * with batches of about 50 ms. */

#include <stddef.h>
#include <stdint.h>

enum load_kind {
    LOAD_STEPS,                 /* Other programs start and stop, and drift. */
    LOAD_SPIKES,                /* Single slow iterations, unannounced. */
    LOAD_DRIFT,                 /* Slow change only. */
};

struct load_trace {
    size_t n;
    double *speeds;             /* [n], any unit. */
    double *cpus, *memories;    /* [n + 1], measured before each and after the
                                 * last. */
};

void load_trace_generate(enum load_kind, uint64_t seed, size_t n,
                         struct load_trace *);

/* Reads lines "SPEED CPU MEMORY" in the format of tests/data/record-speed.c;
 * skips lines that begin with '#'.  Returns 0 or an errno value. */
int load_trace_read(const char *file, struct load_trace *);
void load_trace_uninit(struct load_trace *);

#endif /* tests/bench/load-trace.h */
