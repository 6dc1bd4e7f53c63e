/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_H
#define POLICY_H 1

/* What an operator can tune, read from JSON.
 *
 *
 * Motivation
 * ==========
 *
 * A policy says by which objective stages are ordered, into how many levels
 * the order is folded, which DSCP each level has, and how long an order holds
 * when the controller is gone.  policy.schema.json documents every member;
 * policy_from_string() is what runs, and a test keeps the two equal.  Only
 * rules between members are the reader's alone.
 *
 *
 * Usage
 * =====
 *
 *    struct policy *policy;
 *    char *error = policy_from_file("policies/stage.json", &policy);
 *    if (error) {
 *        ...report, keep the old policy, free(error)...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data, owned by the caller, immutable after it is read. */

#include <stdint.h>

#include "controller/order/order.h"

/* Of the eight queues of a switch the first is for control, the last for what
 * belongs to no job. */
#define POLICY_MAX_LEVELS 6

struct policy {
    char *name;                 /* In logs, metrics and reports: what
                                 * json_name() allows. */
    char *description;          /* For people; may be empty. */
    char *text;                 /* The JSON it was read from. */
    char hash[17];              /* Of 'text', 16 hex digits. */
    struct order_options order; /* Its 'n_levels' is that of this policy. */

    /* DSCP values, 0..63.  control_dscp, dscp[0], dscp[1], ..., default_dscp
     * fall, and so do their first three bits, by which a switch may choose
     * the queue. */
    int n_levels;               /* Levels that ordered stages share, 1 to
                                 * POLICY_MAX_LEVELS. */
    uint8_t dscp[POLICY_MAX_LEVELS];    /* Of each level, level 0 first. */
    uint8_t default_dscp;       /* Of traffic that belongs to no job; its
                                 * queue is the last. */
    uint8_t control_dscp;       /* Of heartbeats and clocks; its queue is the
                                 * first. */

    int64_t lease_ms;           /* An order that is not renewed for so long
                                 * ends, and everything is fair. */
    int64_t coalesce_ms;        /* Events within so long make one order. */
    int64_t retag_ms;           /* A job's level changes at most once in so
                                 * long. */
    double aging_s;             /* A stage's weight w grows with its age to
                                 * w (1 + age / aging_s); 0 is no aging. */
};

/* Read a policy into '*policyp', which the caller frees with policy_destroy().
 * Return NULL or a message that the caller frees; then '*policyp' is NULL.
 * 'name' is what messages begin with. */
char *policy_from_string(const char *name, const char *text,
                         struct policy **policyp);
char *policy_from_file(const char *file, struct policy **policyp);
void policy_destroy(struct policy *);

#endif /* policies/policy.h */
