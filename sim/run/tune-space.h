/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TUNE_SPACE_H
#define TUNE_SPACE_H 1

/* Search space of tune.h: the parameters of an order, each mapped to 0 to 1.
 *
 * A parameter that spans decades has a logarithmic scale.  If 0 disables
 * something, the lowest tenth of the scale is 0.  Values have three digits, so
 * that people can read them.  The space owns its list of parameters. */

#include <stdbool.h>
#include <stddef.h>

struct policy;
struct policy_member;

enum knob_kind { KNOB_NUMBER, KNOB_LEVELS, KNOB_FOLD };

struct knob {
    enum knob_kind kind;
    const struct policy_member *member;         /* For KNOB_NUMBER. */
    double min, max;            /* Sensible values. */
    bool logarithmic;
    bool zero;                  /* 0 is off. */
};

#define TUNE_MAX_KNOBS 16

struct tune_space {
    size_t n;
    struct knob knobs[TUNE_MAX_KNOBS];
};

/* The knobs of 'policy's order, with those of its levels if 'levels'.  There
 * are no more levels than it has: its switches may not have more queues. */
void tune_space_init(struct tune_space *, const struct policy *, bool levels);

/* Set or get the position of a knob, 0 to 1. */
void knob_set(const struct knob *, struct policy *, double x);
double knob_get(const struct knob *, const struct policy *);

/* The value itself, in the units of the policy's JSON. */
double knob_value(const struct knob *, const struct policy *);
void knob_copy(const struct knob *, struct policy *dst,
               const struct policy *src);

#endif /* sim/run/tune-space.h */
