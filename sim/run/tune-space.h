/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TUNE_SPACE_H
#define TUNE_SPACE_H 1

/* Search space of tune.h: the parameters of an order, each mapped to 0 to 1.
 *
 * A parameter that spans decades has a logarithmic scale.  If 0 disables
 * something, the lowest tenth of the scale is 0.  Values have three digits, so
 * that people can read them.  The space owns its list of parameters.
 *
 * The minimum share and the hysteresis are in the space but kept: a simulation
 * without TCP shows their cost, but not the time-outs and the reordered
 * packets that they prevent, so 0 would always be the best. */

#include <stdbool.h>
#include <stddef.h>

struct policy;
struct policy_member;

enum knob_kind { KNOB_NUMBER, KNOB_LEVELS, KNOB_FOLD };

struct knob {
    enum knob_kind kind;
    char name[32];              /* As policy_rows_init() names the member. */
    bool kept;                  /* Its effect is shown, but it is not
                                 * tuned. */
    const struct policy_member *member;         /* For KNOB_NUMBER. */
    double min, max;            /* Sensible values. */
    bool logarithmic;
    bool zero;                  /* 0 is off. */
};

#define TUNE_MAX_KNOBS 20

struct tune_space {
    size_t n;
    struct knob knobs[TUNE_MAX_KNOBS];
};

/* The knobs of 'policy's order, with those of its levels if 'levels'.  There
 * are no more levels than it has: its switches may not have more queues. */
void tune_space_init(struct tune_space *, const struct policy *, bool levels);

/* Leaves the knob of that name as it is.  Returns false without such a
 * knob. */
bool tune_space_keep(struct tune_space *, const char *name);

/* Returns true if all knobs have the same values in both. */
bool tune_space_equal(const struct tune_space *, const struct policy *,
                      const struct policy *);

/* Set or get the position of a knob, 0 to 1. */
void knob_set(const struct knob *, struct policy *, double x);
double knob_get(const struct knob *, const struct policy *);

/* The value itself, in the units of the policy's JSON. */
double knob_value(const struct knob *, const struct policy *);
void knob_copy(const struct knob *, struct policy *dst,
               const struct policy *src);

#endif /* sim/run/tune-space.h */
