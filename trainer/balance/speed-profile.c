/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/speed-profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "trainer/data/seeded.h"

#define MAX_WORKERS 1024
#define MAX_STEPS 10000
#define MAX_BATCH 65536
#define MAX_SECONDS 1e6
#define USE_NOISE 0.01          /* Standard deviation of what is read. */
#define USE_POINTS 8            /* Points in time of a measured mean. */

/* Numbers of a speed profile; see speed-profile.h. */

struct speed_step {
    double at_s;                /* More than the one before. */
    double factor;              /* Of the speed, more than 0, at most 1. */
    double memory;              /* That others use, 0 to 1. */
};

struct speed_numbers {
    int count;                  /* Workers of this kind. */
    double sample_s;            /* Seconds of a sample. */
    double launch_s;
    uint32_t saturation;        /* 0: none. */
    uint32_t max_batch;         /* 0: no bound. */
    struct speed_step *steps;
    size_t n_steps;
    double repeat_s;            /* More than the last at_s; 0: never. */
    double drift_period_s;      /* 0: no drift. */
    double drift_depth;         /* 0 to less than 1. */
    double jitter;              /* Relative standard deviation. */
    double spike_probability;
    double spike_factor;        /* As in struct speed_step. */
};

struct speed_profile_set {
    struct speed_numbers *numbers;
    size_t n_numbers;
};

struct speed_profile {
    struct speed_numbers n;     /* Its steps are a copy. */
    struct seeded chance;       /* Of the batches, */
    struct seeded use_chance;   /* and of what is read of the use. */
};

static void
read_steps(struct speed_numbers *n, const struct json_at *at)
{
    const struct json_at *array = json_array_or_null(at, "steps", 1,
                                                     MAX_STEPS);
    double last = -1;

    n->n_steps = json_n(array);
    n->steps = allocate(n->n_steps, sizeof *n->steps);
    for (size_t i = 0; i < n->n_steps; i++) {
        const struct json_at *step = json_element_object(array, i);

        n->steps[i].at_s = json_number(step, "at_s", 0, MAX_SECONDS);
        n->steps[i].factor = json_number(step, "factor", 1e-3, 1);
        n->steps[i].memory = json_number_or(step, "memory", 0, 1, 0);
        if (n->steps[i].at_s <= last) {
            json_fail(step, "at_s",
                      "%g; expected more than that of the step before, "
                      "%g",
                      n->steps[i].at_s, last);
        }
        last = n->steps[i].at_s;
    }
    n->repeat_s = json_number_or(at, "repeat_s", 1e-3, MAX_SECONDS, 0);
    if (n->repeat_s && !n->n_steps) {
        json_fail(at, "repeat_s", "%g; expected none without \"steps\"",
                  n->repeat_s);
    } else if (n->repeat_s && n->repeat_s <= last) {
        json_fail(at, "repeat_s",
                  "%g; expected more than the last step's \"at_s\", "
                  "%g",
                  n->repeat_s, last);
    }
}

static void
read_numbers(struct speed_numbers *n, const struct json_at *at)
{
    const struct json_at *drift = json_object_or_null(at, "drift");
    const struct json_at *spikes = json_object_or_null(at, "spikes");

    json_ignore(at, "description");
    n->count = json_integer_or(at, "count", 1, MAX_WORKERS, 1);
    n->sample_s = 1 / json_number(at, "samples_per_s", 1e-3, 1e9);
    n->launch_s = json_number_or(at, "launch_s", 0, 1e3, 0);
    n->saturation = json_integer_or(at, "saturation", 1, MAX_BATCH, 0);
    n->max_batch = json_integer_or(at, "max_batch", 1, MAX_BATCH, 0);
    read_steps(n, at);
    if (drift) {
        n->drift_period_s = json_number(drift, "period_s", 1e-3, MAX_SECONDS);
        n->drift_depth = json_number(drift, "depth", 0, 0.99);
    }
    n->jitter = json_number_or(at, "jitter", 0, 1, 0);
    if (spikes) {
        n->spike_probability = json_number(spikes, "probability", 0, 1);
        n->spike_factor = json_number(spikes, "factor", 1e-3, 1);
    }
}

char *
speed_profile_set_from_string(const char *name, const char *text,
                              struct speed_profile_set **setp)
{
    struct speed_profile_set *set = allocate(1, sizeof *set);
    struct json_check *jc = json_check_open(name, text);
    const struct json_at *top = json_check_top(jc);
    const struct json_at *workers;
    char *error;

    json_ignore(top, "description");
    free(json_name(top, "name"));
    workers = json_array(top, "workers", 1, MAX_WORKERS);
    set->n_numbers = json_n(workers);
    set->numbers = allocate(set->n_numbers, sizeof *set->numbers);
    for (size_t i = 0; i < set->n_numbers; i++) {
        read_numbers(&set->numbers[i], json_element_object(workers, i));
    }
    error = json_check_close(jc);
    if (error) {
        speed_profile_set_destroy(set);
        set = NULL;
    }
    *setp = set;
    return error;
}

char *
speed_profile_set_from_file(const char *file, struct speed_profile_set **setp)
{
    char *text, *error;

    *setp = NULL;
    error = json_read_file(file, &text);
    if (!error) {
        error = speed_profile_set_from_string(file, text, setp);
        free(text);
    }
    return error;
}

void
speed_profile_set_destroy(struct speed_profile_set *set)
{
    if (set) {
        for (size_t i = 0; i < set->n_numbers; i++) {
            free(set->numbers[i].steps);
        }
        free(set->numbers);
        free(set);
    }
}

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
    return fmin(1, fmax(0, use + USE_NOISE * seeded_normal(&sp->use_chance)));
}

void
speed_profile_use(struct speed_profile *sp, double begin, double end,
                  double *cpu, double *memory)
{
    const struct speed_step *step = NULL;
    double next, use = 0;

    for (int i = 1; i <= USE_POINTS; i++) {
        double t = begin + (end - begin) * i / USE_POINTS;

        step = find_step(&sp->n, t, &next);
        use += 1 - (step ? step->factor : 1) * drift(&sp->n, t);
    }
    *cpu = as_read(sp, use / USE_POINTS);
    *memory = as_read(sp, step ? step->memory : 0);
}
