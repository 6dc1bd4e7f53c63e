/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/speed-profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/balance/speed-profile-set.h"
#include "base/memory.h"
#include "trainer/data/seeded.h"

#define USE_NOISE 0.01          /* Standard deviation of what is read. */

struct speed_profile {
    struct speed_numbers n;     /* Its steps are a copy. */
    struct seeded chance;       /* Of the batches, */
    struct seeded use_chance;   /* and of what is read of the use. */
};

size_t
speed_profile_set_n(const struct speed_profile_set *set)
{
    size_t n = 0;

    for (size_t i = 0; i < set->n_numbers; i++) {
        n += set->numbers[i].count;
    }
    return n;
}

static struct speed_profile *
create(const struct speed_numbers *n, uint64_t seed, int rank)
{
    struct speed_profile *sp = allocate(1, sizeof *sp);

    sp->n = *n;
    sp->n.steps = allocate(n->n_steps, sizeof *n->steps);
    if (n->n_steps) {
        memcpy(sp->n.steps, n->steps, n->n_steps * sizeof *n->steps);
    }
    seeded_init(&sp->chance, seed, 2 * (uint64_t) rank);
    seeded_init(&sp->use_chance, seed, 2 * (uint64_t) rank + 1);
    return sp;
}

struct speed_profile *
speed_profile_create(const struct speed_profile_set *set, int rank,
                     uint64_t seed)
{
    size_t place = rank % speed_profile_set_n(set);
    size_t i = 0;

    while (place >= set->numbers[i].count) {
        place -= set->numbers[i++].count;
    }
    return create(&set->numbers[i], seed, rank);
}

struct speed_profile *
speed_profile_create_constant(double sample_s)
{
    return create(&(struct speed_numbers) { .sample_s = sample_s }, 0, 0);
}

void
speed_profile_destroy(struct speed_profile *sp)
{
    if (sp) {
        free(sp->n.steps);
        free(sp);
    }
}

uint32_t
speed_profile_max_batch(const struct speed_profile *sp)
{
    return sp->n.max_batch;
}

/* The step that is in force at 't', NULL before the first one.  Stores in
 * '*end' when the next one comes, infinity if none does. */
static const struct speed_step *
find_step(const struct speed_numbers *n, double t, double *end)
{
    double begun = n->repeat_s ? floor(t / n->repeat_s) * n->repeat_s : 0;
    size_t low = 0, high = n->n_steps;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (begun + n->steps[middle].at_s <= t) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *end = low < n->n_steps ? begun + n->steps[low].at_s
           : n->n_steps && n->repeat_s ? begun + n->repeat_s : INFINITY;
    return low ? &n->steps[low - 1] : NULL;
}

/* The part of the speed that drift leaves at 't'. */
static double
drift(const struct speed_numbers *n, double t)
{
    return n->drift_period_s
           ? 1 - n->drift_depth
                 * (1 - cos(2 * M_PI * t / n->drift_period_s)) / 2
           : 1;
}

/* The work that the steps leave of one repetition, in seconds. */
static double
work_of_period(const struct speed_numbers *n)
{
    double work = n->steps[0].at_s;

    for (size_t i = 0; i < n->n_steps; i++) {
        double end = i + 1 < n->n_steps ? n->steps[i + 1].at_s : n->repeat_s;

        work += (end - n->steps[i].at_s) * n->steps[i].factor;
    }
    return work;
}

/* The seconds from 't' until 'work', seconds of an undisturbed worker, is
 * done.  Drift is slow and taken as it is at 't'. */
static double
duration(const struct speed_numbers *n, double work, double t)
{
    double left = work / drift(n, t);
    double now = t;

    if (n->n_steps && n->repeat_s) {
        double period = work_of_period(n);
        double whole = floor(left / period);

        now += whole * n->repeat_s;
        left -= whole * period;
    }
    for (;;) {
        double end;
        const struct speed_step *step = find_step(n, now, &end);
        double factor = step ? step->factor : 1;

        if (left <= (end - now) * factor) {
            return now - t + left / factor;
        }
        left -= fmax(0, end - now) * factor;
        now = fmax(end, nextafter(now, INFINITY));  /* Rounding included. */
    }
}

double
speed_profile_seconds(struct speed_profile *sp, uint32_t n, double t)
{
    uint32_t samples = n < sp->n.saturation ? sp->n.saturation : n;
    double work = samples * sp->n.sample_s;

    if (sp->n.jitter) {
        work *= exp(sp->n.jitter * seeded_normal(&sp->chance));
    }
    if (seeded_uniform(&sp->chance) < sp->n.spike_probability) {
        work /= sp->n.spike_factor;
    }
    return sp->n.launch_s + duration(&sp->n, work, t);
}

static double
as_read(struct speed_profile *sp, double use)
{
    return fmin(1, fmax(0, use + USE_NOISE
                               * seeded_normal(&sp->use_chance)));
}

void
speed_profile_use(struct speed_profile *sp, double t,
                  double *cpu, double *memory)
{
    double end;
    const struct speed_step *step = find_step(&sp->n, t, &end);

    *cpu = as_read(sp, 1 - (step ? step->factor : 1) * drift(&sp->n, t));
    *memory = as_read(sp, step ? step->memory : 0);
}
