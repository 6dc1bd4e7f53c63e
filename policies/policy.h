/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_H
#define POLICY_H 1

/* What an operator can tune, read from JSON.
 *
 *
 * Motivation
 * ==========
 *
 * A policy says by which objective stages are ordered, whose stages weigh
 * more, into how many levels the order is folded, which DSCP each level has,
 * and how long an order holds when the controller is gone.  policy.schema.json
 * documents every member; policy_from_string() is what runs, and a test keeps
 * the two equal.  Only rules between members are the reader's alone.
 *
 * A policy may have numbers for orders that it does not name; they wait until
 * its "order" is another one.
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

#include <stddef.h>
#include <stdint.h>

#include "order/order.h"

/* Of the eight queues of a switch the first is for control, the last for what
 * belongs to no job. */
#define POLICY_MAX_LEVELS 6

/* Entries of each of the tables of weights, at most. */
#define POLICY_MAX_FACTORS 1000

/* By what the weight of somebody's stages is multiplied. */
struct policy_factor {
    char *name;                 /* What json_name() allows. */
    double factor;              /* 0.001 to 1000. */
};

struct policy_factors {
    size_t n;
    struct policy_factor *factors;      /* In the order of the text. */
};

struct policy {
    char *name;                 /* In logs, metrics and reports: what
                                 * json_name() allows. */
    char *description;          /* For people; may be empty. */
    char *text;                 /* The JSON it was read from. */
    char hash[17];              /* Of 'text', 16 hex digits. */
    struct order_options order; /* Its 'n_levels' is that of this policy. */
    struct policy_factors users, cojobs;        /* See policy_weight(). */

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
    double aging_s;             /* A stage's weight grows with its age by */
    double aging_slowdown;      /* these, see order_problem_age(). */
    double hysteresis;          /* Stages swap places only if that gains more
                                 * than this share of the estimate, 0 to
                                 * 0.5.  For the orders of stages, sincronia
                                 * and interleave. */
    double guard_share;         /* Of a link for each level that waits, at
                                 * least, so that none starves: 0 to 0.2. */

    /* How a shim divides its downlink, if it does: see shim/cc/allocate.h. */
    double congestion_gamma;    /* Share of the link to be used, 0.5 to 1. */
    double congestion_beta;     /* Share of the phantom queue to be drained in
                                 * a round trip, 0 to 1. */
    double congestion_floor;    /* Share that all flows have alike, whatever
                                 * their rank, 0 to 0.5. */

    /* How early stages are known, for who fits the curves of metrics; what
     * order_compute() reads of it is in 'order'. */
    int early_samples;          /* A job with fewer, or fewer iterations, is
                                 * early in any case, */
    double early_boot_s;        /* but for so many seconds at most. */
    double early_period_s;      /* Improvement is predicted for so many
                                 * seconds, and that often. */
};

/* Read a policy into '*policyp', which the caller frees with policy_destroy().
 * Return NULL or a message that the caller frees; then '*policyp' is NULL.
 * 'name' is what messages begin with. */
char *policy_from_string(const char *name, const char *text,
                         struct policy **policyp);
char *policy_from_file(const char *file, struct policy **policyp);
void policy_destroy(struct policy *);

/* Returns all that is wrong with 'text', one message a line, or NULL. */
char *policy_errors(const char *name, const char *text);

/* By what the weight of 'user's 'cojob' is multiplied: the product of what the
 * policy has for both, where nothing is 1.  'user' may be null. */
double policy_weight(const struct policy *, const char *user,
                     const char *cojob);

/* The names of ways to fold the order into levels, null-terminated; the index
 * is order.truncate. */
extern const char *const policy_folds[];

#endif /* policies/policy.h */
