/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_JSON_H
#define POLICY_JSON_H 1

/* A policy as JSON again: all that is in force with it, and changes to it.
 *
 *
 * Motivation
 * ==========
 *
 * Most of a policy is what its file does not say.  Who wants to know what is
 * in force, or in what two policies differ, needs the defaults too; and a
 * program that has found a better number should write the policy that a person
 * wrote, with that number in it, and not another one.
 *
 *
 * Usage
 * =====
 *
 *    struct policy_rows rows;
 *    policy_rows_init(&rows, policy);
 *    for (size_t i = 0; i < rows.n; i++) {
 *        printf("%s %s\n", rows.rows[i].member, rows.rows[i].value);
 *    }
 *    policy_rows_uninit(&rows);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Rows own their text; policies are only read. */

#include <stdbool.h>
#include <stddef.h>

struct cJSON;
struct policy;

/* One member, with its value in force. */
struct policy_row {
    char *member;               /* JSON pointer: "/early/theta". */
    char *value;                /* JSON, on one line. */
    bool given;                 /* The policy's text has it; otherwise it is
                                 * the default. */
};

struct policy_rows {
    size_t n, allocated;
    struct policy_row *rows;
};

/* All members in the order of the schema; "aging_s" stands for
 * "/weights/age_s" too. */
void policy_rows_init(struct policy_rows *, const struct policy *);
void policy_rows_uninit(struct policy_rows *);

/* The row of 'member', or NULL. */
const struct policy_row *policy_rows_find(const struct policy_rows *,
                                          const char *member);

/* Returns a policy's text with another name and description and with the
 * numbers of 'changed' where they differ from its own; the caller frees. */
char *policy_rewrite(const struct policy *, const struct policy *changed,
                     const char *name, const char *description);

#endif /* policies/policy-json.h */
