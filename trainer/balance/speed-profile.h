/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SPEED_PROFILE_H
#define SPEED_PROFILE_H 1

/* Speed of an emulated worker.
 *
 * Synchronisation schemes differ on machines that are unequal or change.  A
 * profile defines the duration of a batch of x samples that begins at time t,
 * so that a few cores can emulate a cluster: the worker computes for real and
 * then waits until that time has passed.
 *
 *    error = speed_profile_set_from_file("mixed-8.json", &set);
 *    worker = speed_profile_create(set, rank, seed);
 *    for (;;) {
 *        ...compute 'n' samples...
 *        ...wait until speed_profile_seconds(worker, n, t) after 't'...
 *        speed_profile_use(worker, t, now, &cpu, &memory);
 *    }
 *
 * The file is an object with "workers", an array of objects, the first for
 * rank 0 and so on ("count": N stands for N workers; further ranks start again
 * with the first one):
 *
 *    samples_per_s   speed when nothing disturbs the worker; required
 *    launch_s        added to each batch whatever its size
 *    saturation      smaller batches take as long as this many samples
 *    max_batch       samples for which there is memory
 *    steps           [{"at_s", "factor", "memory"}], by time: from then on
 *                    other programs leave this part of the speed and use this
 *                    part of the memory
 *    repeat_s        period of the steps, in seconds
 *    drift           {"period_s", "depth"}: the speed sinks by 'depth' and
 *                    rises again, as a cosine
 *    jitter          standard deviation of a batch's time, relative
 *    spikes          {"probability", "factor"}: single batches for which
 *                    only this part of the speed is left, unannounced
 *
 * Steps and drift are visible as load of the CPU; jitter and spikes are not.
 *
 * A worker does not need the set after its creation.  Random numbers depend
 * on seed and rank only: the same calls give the same results.  A worker
 * belongs to one thread. */

#include <stddef.h>
#include <stdint.h>

struct speed_profile;
struct speed_profile_set;

/* Return NULL or a message; '*setp' is then NULL. */
char *speed_profile_set_from_file(const char *file,
                                  struct speed_profile_set **setp);
char *speed_profile_set_from_string(const char *name, const char *text,
                                    struct speed_profile_set **setp);
void speed_profile_set_destroy(struct speed_profile_set *);
size_t speed_profile_set_n(const struct speed_profile_set *);

struct speed_profile *speed_profile_create(const struct speed_profile_set *,
                                           int rank, uint64_t seed);

/* Creates a worker of constant speed, 'sample_s' seconds per sample. */
struct speed_profile *speed_profile_create_constant(double sample_s);
void speed_profile_destroy(struct speed_profile *);

/* Returns the duration in seconds of a batch of 'n' samples that begins 't'
 * seconds after the worker.  Each call is another batch with its own random
 * numbers. */
double speed_profile_seconds(struct speed_profile *, uint32_t n, double t);

/* Stores the load by other programs, 0 to 1, as a worker can measure it: the
 * mean use of the processor from 'begin' to 'end', and the memory at 'end'. */
void speed_profile_use(struct speed_profile *, double begin, double end,
                       double *cpu, double *memory);

/* Returns the largest batch for which the worker has memory, 0 if
 * unlimited. */
uint32_t speed_profile_max_batch(const struct speed_profile *);

#endif /* trainer/balance/speed-profile.h */
