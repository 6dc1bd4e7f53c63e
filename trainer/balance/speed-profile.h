/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SPEED_PROFILE_H
#define SPEED_PROFILE_H 1

/* How fast an emulated worker computes.
 *
 *
 * Motivation
 * ==========
 *
 * What a synchronisation scheme is worth shows on machines that differ and
 * change.  A profile says how long a batch of x samples takes a worker that
 * begins it at time t, so that a few cores can stand for a cluster: the
 * worker computes for real and then waits until that time has passed.
 *
 *
 * Usage
 * =====
 *
 *    error = speed_profile_set_from_file("mixed-8.json", &set);
 *    worker = speed_profile_create(set, rank, seed);
 *    for (;;) {
 *        ...compute 'n' samples...
 *        ...wait until speed_profile_seconds(worker, n, t) after 't'...
 *        speed_profile_use(worker, now, &cpu, &memory);
 *    }
 *
 * The file is an object with "workers", an array of objects, the first for
 * rank 0 and so on ("count": N stands for N of them; beyond the last one they
 * begin again):
 *
 *    samples_per_s   speed when nothing disturbs the worker; required
 *    launch_s        added to each batch whatever its size
 *    saturation      smaller batches take as long as this many samples
 *    max_batch       samples for which there is memory
 *    steps           [{"at_s", "factor", "memory"}], by time: from then on
 *                    others leave this part of the speed and take this part
 *                    of the memory
 *    repeat_s        the steps begin again after so many seconds
 *    drift           {"period_s", "depth"}: the speed sinks by 'depth' and
 *                    rises again, as a cosine
 *    jitter          standard deviation of a batch's time, relative
 *    spikes          {"probability", "factor"}: single batches for which
 *                    only this part of the speed is left, unannounced
 *
 * What steps and drift take shows as use of the CPU; jitter and spikes do
 * not.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A worker keeps the set that it was made of alive no longer than its
 * creation.  Chance comes from the seed and the rank: the same calls give the
 * same answers.  A worker is one thread's. */

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

/* The simplest one: a sample takes 'sample_s' seconds, always. */
struct speed_profile *speed_profile_create_constant(double sample_s);
void speed_profile_destroy(struct speed_profile *);

/* Seconds that a batch of 'n' samples takes that begins 't' seconds after the
 * worker did.  Each call is a batch of its own and draws its own chance. */
double speed_profile_seconds(struct speed_profile *, uint32_t n, double t);

/* What others use of the worker's machine at 't', 0 to 1. */
void speed_profile_use(struct speed_profile *, double t,
                       double *cpu, double *memory);

/* Samples for which the worker has memory, 0: any number. */
uint32_t speed_profile_max_batch(const struct speed_profile *);

#endif /* trainer/balance/speed-profile.h */
