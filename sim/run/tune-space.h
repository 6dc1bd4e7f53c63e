/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TUNE_SPACE_H
#define TUNE_SPACE_H 1

/* What tune.h turns: the numbers that matter to an order, each from 0 to 1.
 *
 * A number whose sensible values span decades is even on a logarithmic scale;
 * where 0 switches something off, the lowest tenth does.  Values have three
 * digits, because a person reads them.
 *
 * The space owns its list of knobs. */

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

/* Turns a knob, or tells where it stands: 'x' is 0 to 1. */
void knob_set(const struct knob *, struct policy *, double x);
double knob_get(const struct knob *, const struct policy *);

/* The value itself, in the units of the policy's JSON. */
double knob_value(const struct knob *, const struct policy *);
void knob_copy(const struct knob *, struct policy *dst,
               const struct policy *src);

#endif /* sim/run/tune-space.h */
