/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/speed-profile.h"

#include <stdlib.h>

#include "base/json-check.h"
#include "trainer/balance/speed-profile-set.h"
#include "base/memory.h"

#define MAX_WORKERS 1024
#define MAX_STEPS 10000
#define MAX_BATCH 65536
#define MAX_SECONDS 1e6

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
            json_fail(step, "at_s", "%g, more than that of the step before, "
                      "%g, is allowed", n->steps[i].at_s, last);
        }
        last = n->steps[i].at_s;
    }
    n->repeat_s = json_number_or(at, "repeat_s", 1e-3, MAX_SECONDS, 0);
    if (n->repeat_s && !n->n_steps) {
        json_fail(at, "repeat_s", "%g, none is allowed without \"steps\"",
                  n->repeat_s);
    } else if (n->repeat_s && n->repeat_s <= last) {
        json_fail(at, "repeat_s", "%g, more than the last step's \"at_s\", "
                  "%g, is allowed", n->repeat_s, last);
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
        n->drift_period_s = json_number(drift, "period_s", 1e-3,
                                        MAX_SECONDS);
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
    set->name = json_name(top, "name");
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
speed_profile_set_from_file(const char *file,
                            struct speed_profile_set **setp)
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
        free(set->name);
        free(set);
    }
}
