/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/tune-space.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"

/* Where 0 is off, all below this is. */
#define ZERO 0.1

/* What may be sensible of each number. */
static const struct {
    const char *section, *name;
    double min, max;
    bool logarithmic, zero;
    bool of_levels;             /* Only where levels are served. */
    bool kept;
} numbers[] = {
    { NULL, "aging_s", 1, 1e5, true, true },
    { NULL, "aging_slowdown", 1, 1e3, true, true },
    { "objective", "latest", 0.5, 3, true, true },
    { NULL, "refresh_ms", 50, 5000, true, false },
    { NULL, "slack_share", 0, 1, false, false },
    { NULL, "hysteresis", 0.002, 0.5, true, true, true, true },
    { NULL, "min_share", 0.002, 0.1, true, true, true, true },
    { "early", "theta", 0.5, 1, false, false },
    { "early", "boost", 0.01, 10, true, true },
    { "improve", "moves", 10, 1000000, true, true },
    { "sincronia", "epoch_ms", 10, 10000, true, true },
    { "fifo_lm", "heavy_mb", 1, 10000, true, false },
    { "dclas", "first_mb", 0.1, 1000, true, false },
    { "dclas", "factor", 1.1, 50, true, false },
    { "dclas", "queues", 2, 16, false, false },
};

static void
add_knob(struct tune_space *space, struct knob knob)
{
    assert(space->n < TUNE_MAX_KNOBS);
    space->knobs[space->n++] = knob;
}

static void
add_level_knobs(struct tune_space *space, const struct policy *policy)
{
    if (policy->n_levels > 1) {
        add_knob(space, (struct knob) {
            .kind = KNOB_LEVELS, .name = "/levels/dscp",
            .min = 1, .max = policy->n_levels,
        });
    }
    if (order_classes[policy->order.kind].service != ORDER_SERVICE_SHARE) {
        add_knob(space, (struct knob) {
            .kind = KNOB_FOLD, .name = "/levels/fold", .min = 0, .max = 1,
        });
    }
}

static void
add_number(struct tune_space *space, size_t i)
{
    const char *section = numbers[i].section;
    struct knob knob = {
        .kind = KNOB_NUMBER, .kept = numbers[i].kept,
        .member = policy_member_find(section, numbers[i].name),
        .min = numbers[i].min, .max = numbers[i].max,
        .logarithmic = numbers[i].logarithmic, .zero = numbers[i].zero,
    };

    snprintf(knob.name, sizeof knob.name, "%s%s/%s", section ? "/" : "",
             section ? section : "", numbers[i].name);
    add_knob(space, knob);
}

void
tune_space_init(struct tune_space *space, const struct policy *policy,
                bool levels)
{
    enum order_kind kind = policy->order.kind;

    space->n = 0;
    for (size_t i = 0;
         i < sizeof numbers / sizeof *numbers && !order_is_equal(kind); i++) {
        const struct policy_member *m =
            policy_member_find(numbers[i].section, numbers[i].name);

        if ((!m->is_read || m->is_read(kind))
            && (levels || !numbers[i].of_levels)) {
            add_number(space, i);
        }
    }
    if (levels && !order_is_equal(kind)) {
        add_level_knobs(space, policy);
    }
}

bool
tune_space_keep(struct tune_space *space, const char *name)
{
    for (size_t k = 0; k < space->n; k++) {
        if (!strcmp(space->knobs[k].name, name)) {
            space->knobs[k].kept = true;
            return true;
        }
    }
    return false;
}

bool
tune_space_equal(const struct tune_space *space, const struct policy *a,
                 const struct policy *b)
{
    for (size_t k = 0; k < space->n; k++) {
        if (knob_value(&space->knobs[k], a)
            != knob_value(&space->knobs[k], b)) {
            return false;
        }
    }
    return true;
}

static double
three_digits(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.3g", value);
    return strtod(text, NULL);
}

static double
value_at(const struct knob *knob, double x)
{
    if (knob->zero) {
        if (x < ZERO) {
            return 0;
        }
        x = (x - ZERO) / (1 - ZERO);
    }
    return three_digits(knob->logarithmic
                        ? knob->min * pow(knob->max / knob->min, x)
                        : knob->min + (knob->max - knob->min) * x);
}

static void
set_value(const struct knob *knob, struct policy *policy, double value)
{
    switch (knob->kind) {
    case KNOB_NUMBER:
        if (knob->member->type != POLICY_DOUBLE) {
            value = round(value);
        }
        policy_member_set(knob->member, policy, value);
        break;
    case KNOB_LEVELS:
        policy->n_levels = policy->order.n_levels = round(value);
        break;
    case KNOB_FOLD:
        policy->order.truncate = value >= 0.5;
        break;
    }
}

void
knob_set(const struct knob *knob, struct policy *policy, double x)
{
    set_value(knob, policy, value_at(knob, x));
}

double
knob_value(const struct knob *knob, const struct policy *policy)
{
    switch (knob->kind) {
    case KNOB_NUMBER:
        return policy_member_get(knob->member, policy);
    case KNOB_LEVELS:
        return policy->n_levels;
    case KNOB_FOLD:
        return policy->order.truncate;
    }
    abort();
}

double
knob_get(const struct knob *knob, const struct policy *policy)
{
    double value = knob_value(knob, policy);
    double x;

    if (knob->zero && value <= 0) {
        return 0;
    }
    value = fmin(fmax(value, knob->min), knob->max);
    x = knob->logarithmic ? log(value / knob->min) / log(knob->max / knob->min)
                          : (value - knob->min) / (knob->max - knob->min);
    return knob->zero ? ZERO + (1 - ZERO) * x : x;
}

void
knob_copy(const struct knob *knob, struct policy *dst,
          const struct policy *src)
{
    set_value(knob, dst, knob_value(knob, src));
}
