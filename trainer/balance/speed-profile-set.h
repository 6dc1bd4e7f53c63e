/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SPEED_PROFILE_SET_H
#define SPEED_PROFILE_SET_H 1

/* Numbers of a speed profile, for its reader and its arithmetic; see
 * speed-profile.h. */

#include <stddef.h>
#include <stdint.h>

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
    char *name;
    struct speed_numbers *numbers;
    size_t n_numbers;
};

#endif /* trainer/balance/speed-profile-set.h */
