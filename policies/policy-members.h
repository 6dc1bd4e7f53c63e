/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_MEMBERS_H
#define POLICY_MEMBERS_H 1

/* The numbers of a policy, one row each.
 *
 *
 * Motivation
 * ==========
 *
 * A number that can be tuned is read from JSON, shown with its default,
 * compared with that of another policy and searched for by a program.  All of
 * that is the same for each of them, so a row of one table says what the
 * number is called, where it is kept and what is allowed.
 *
 *
 * Usage
 * =====
 *
 *    for (size_t i = 0; i < POLICY_N_MEMBERS; i++) {
 *        const struct policy_member *m = &policy_members[i];
 *        double value = policy_member_get(m, policy);
 *        ...
 *    }
 *
 * Values are in the units of the JSON, which the names say: "epoch_ms".
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The table is constant. */

#include <stddef.h>

struct policy;

enum policy_type { POLICY_INT, POLICY_INT64, POLICY_DOUBLE };

struct policy_member {
    const char *section;        /* The object that it is in; NULL: the top. */
    const char *name;
    enum policy_type type;      /* Of the member of struct policy, */
    size_t offset;              /* that is here. */
    double scale;               /* Of that per unit of the JSON. */
    double min, max;            /* Allowed, both included, as in the JSON. */
};

#define POLICY_N_MEMBERS 22

/* Those of a section stand together. */
extern const struct policy_member policy_members[POLICY_N_MEMBERS];

double policy_member_get(const struct policy_member *, const struct policy *);
void policy_member_set(const struct policy_member *, struct policy *,
                       double value);

/* NULL if there is none; 'section' as in the struct. */
const struct policy_member *policy_member_find(const char *section,
                                               const char *name);

#endif /* policies/policy-members.h */
