/* SPDX-License-Identifier: Apache-2.0 */

#include "policies/policy-members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"

#define ROW(SECTION, NAME, TYPE, MEMBER, SCALE, MIN, MAX)               \
    { SECTION, NAME, POLICY_##TYPE, offsetof(struct policy, MEMBER),    \
      SCALE, MIN, MAX }

const struct policy_member policy_members[POLICY_N_MEMBERS] = {
    ROW(NULL, "lease_ms", INT64, lease_ms, 1, 100, 600000),
    ROW(NULL, "coalesce_ms", INT64, coalesce_ms, 1, 10, 50),
    ROW(NULL, "retag_ms", INT64, retag_ms, 1, 0, 60000),
    ROW(NULL, "aging_s", DOUBLE, aging_s, 1, 0, 1e6),
    ROW(NULL, "aging_slowdown", DOUBLE, aging_slowdown, 1, 0, 1e6),
    ROW(NULL, "hysteresis", DOUBLE, hysteresis, 1, 0, 0.5),
    ROW(NULL, "guard_share", DOUBLE, guard_share, 1, 0, 0.2),
    ROW("congestion", "gamma", DOUBLE, congestion_gamma, 1, 0.5, 1),
    ROW("congestion", "beta", DOUBLE, congestion_beta, 1, 0, 1),
    ROW("congestion", "floor", DOUBLE, congestion_floor, 1, 0, 0.5),
    ROW("early", "theta", DOUBLE, order.early_theta, 1, 0.1, 1),
    ROW("early", "samples", INT, early_samples, 1, 0, 1000),
    ROW("early", "boot_s", DOUBLE, early_boot_s, 1, 0, 86400),
    ROW("early", "period_s", DOUBLE, early_period_s, 1, 0.1, 3600),
    ROW("early", "boost", DOUBLE, order.early_boost, 1, 0, 100),
    ROW("improve", "moves", INT, order.improve_moves, 1, 0, 1e6),
    ROW("improve", "budget_ms", DOUBLE, order.improve_s, 1e-3, 0, 1000),
    ROW("sincronia", "epoch_ms", DOUBLE, order.epoch_s, 1e-3, 0, 60000),
    ROW("fifo_lm", "heavy_mb", DOUBLE, order.heavy_bytes, 1e6, 1e-3, 1e6),
    ROW("dclas", "first_mb", DOUBLE, order.first_bytes, 1e6, 1e-3, 1e6),
    ROW("dclas", "factor", DOUBLE, order.factor, 1, 1.1, 1000),
    ROW("dclas", "queues", INT, order.n_queues, 1, 1, 64),
};

/* Returns 'x' as one would write it: what a unit has done to the last digits
 * is undone. */
static double
rounded(double x)
{
    char text[32];

    snprintf(text, sizeof text, "%.12g", x);
    return strtod(text, NULL);
}

double
policy_member_get(const struct policy_member *m, const struct policy *policy)
{
    const char *p = (const char *) policy + m->offset;

    switch (m->type) {
    case POLICY_INT:
        return *(const int *) p / m->scale;
    case POLICY_INT64:
        return *(const int64_t *) p / m->scale;
    case POLICY_DOUBLE:
        return rounded(*(const double *) p / m->scale);
    }
    abort();
}

void
policy_member_set(const struct policy_member *m, struct policy *policy,
                  double value)
{
    char *p = (char *) policy + m->offset;

    switch (m->type) {
    case POLICY_INT:
        *(int *) p = value * m->scale;
        break;
    case POLICY_INT64:
        *(int64_t *) p = value * m->scale;
        break;
    case POLICY_DOUBLE:
        *(double *) p = value * m->scale;
        break;
    }
}

const struct policy_member *
policy_member_find(const char *section, const char *name)
{
    for (size_t i = 0; i < POLICY_N_MEMBERS; i++) {
        const struct policy_member *m = &policy_members[i];

        if (!strcmp(m->name, name)
            && (section && m->section ? !strcmp(section, m->section)
                : section == m->section)) {
            return m;
        }
    }
    return NULL;
}
