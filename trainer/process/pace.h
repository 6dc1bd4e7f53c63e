/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PACE_H
#define PACE_H 1

/* Emulation of slower machines, and the load by others.
 *
 * A worker computes for real and then waits until the step has taken as long
 * as on the emulated machine: as '--speed-profile' defines, or
 * '--sample-cost-us' for each sample.
 *
 *    error = pace_create(options, &pace);
 *    pace_begin(pace);                         // Time 0 of the profile.
 *    for (;;) {
 *        pace_step(pace);
 *        ...compute 'n' samples...
 *        pace_wait(pace, n, control);
 *        ...pace_elapsed(pace) seconds...
 *    }
 *
 * One thread. */

#include <stdbool.h>
#include <stdint.h>

struct control;
struct options;
struct pace;

char *pace_create(const struct options *, struct pace **);
void pace_destroy(struct pace *);

void pace_begin(struct pace *);
void pace_step(struct pace *);

/* Returns the time of clock_monotonic_us() at which a step of 'n' samples is
 * to end.  To be called once in a step: a profile may be random. */
int64_t pace_end_us(struct pace *, uint32_t n);

/* Returns true if a slower machine is emulated. */
bool pace_emulates(const struct pace *);

/* Waits until the end of a step of 'n' samples, or a stop by 'control', which
 * may be NULL. */
void pace_wait(struct pace *, uint32_t n, struct control *);

/* Seconds since the step began. */
double pace_elapsed(const struct pace *);

/* Starts to measure what others use, unless a speed profile defines it: of the
 * GPU with the PCI address 'bus_id' (gpu-use.h), or if that is NULL, of the
 * processors (machine-use.h). */
void pace_measure(struct pace *, const char *bus_id);

/* Stores the fractions of processor and memory that others use, by the
 * profile, or as measured since the last call; otherwise 0. */
void pace_use(struct pace *, double *cpu, double *memory);

/* Returns the samples for which there is memory, 0 for no limit. */
uint32_t pace_max_batch(const struct pace *);

#endif /* trainer/process/pace.h */
