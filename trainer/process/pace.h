/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PACE_H
#define PACE_H 1

/* How long a worker's steps take on the machine that it stands for.
 *
 * A worker computes for real and then waits until the step has taken what it
 * would have taken there.  '--speed-profile' says what that is, or
 * '--sample-cost-us', the same for every sample and always.
 *
 *    error = pace_create(options, &pace);
 *    pace_begin(pace);                         // The profile's time 0.
 *    for (;;) {
 *        pace_step(pace);
 *        ...compute 'n' samples...
 *        pace_wait(pace, n, control);
 *        ...pace_elapsed(pace) is what it took...
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

/* When the step, of 'n' samples, is to end, on clock_monotonic_us()'s
 * clock.  To be asked once a step: chance may be in it. */
int64_t pace_end_us(struct pace *, uint32_t n);

/* Whether steps take longer than their computing. */
bool pace_emulates(const struct pace *);

/* Waits until a step of 'n' samples is over, or we are told to stop by
 * 'control', which may be NULL. */
void pace_wait(struct pace *, uint32_t n, struct control *);

/* Seconds since the step began. */
double pace_elapsed(const struct pace *);

/* What others use of the machine now, and the samples it has memory for, 0:
 * any number. */
void pace_use(const struct pace *, double *cpu, double *memory);
uint32_t pace_max_batch(const struct pace *);

#endif /* trainer/process/pace.h */
