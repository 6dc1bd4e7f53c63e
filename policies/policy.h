/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_H
#define POLICY_H 1

/* Policies: parameters that an operator can set, read from JSON.
 *
 * A policy sets the objective by which stages are ordered, the weights of
 * users and cojobs, the number of levels and their DSCP, and how long an order
 * is valid without the controller.  policy.schema.json documents every member;
 * policy_from_string() is the reader, and a test keeps the two equal.  Rules
 * between members are in the reader only.
 *
 * A policy may have numbers for orders that it does not name.  They take
 * effect when "order" names these orders; until then policy_warnings() names
 * them.
 *
 *    struct policy *policy;
 *    char *error = policy_from_file("policies/stage.json", &policy);
 *    if (error) {
 *        ...report, keep the old policy, free(error)...
 *    }
 *
 * policy_members[] describes each number: name, location, range.  It serves
 * all programs that read, show or compare numbers.
 *
 * policy_rows_init() lists all members with their values, including defaults.
 *
 * Levels 0 and 7 are not assigned to jobs: level 0 is for control traffic,
 * level 7 for packets without a known flow.
 *
 * Each level has a DSCP of its own, which a switch must map to a queue.  The
 * default values, 39 for control and 35, 23, 19, 15, 11 and 7 for the levels,
 * are of the pool xxxx11 that RFC 2474 leaves to local use, so that no class
 * of a standard has them.  None is 24 to 31 (RoCE by usual settings), 46
 * (voice) or 48 to 63 (routing; RoCE's congestion notifications), and none is
 * 3, which SONiC maps to a lossless queue by default.  They fall with the
 * level: a switch that knows only the first three bits never inverts the
 * order.  policy_warnings() names a policy's values that collide.
 *
 * Every level with queued traffic gets the policy's minimum share of the
 * uplink, 2 % by default.  TCP that is starved for seconds doubles its
 * retransmission timeout and then stays silent long after the link is idle.
 * The lab's switch ports leave 2 % to each class for the same reason.
 *
 * Plain data, owned by the caller, immutable after it is read.  Rows own their
 * text. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/order.h"

/* A switch has eight queues: the first is for control traffic, the last for
 * traffic without a job. */
#define POLICY_MAX_LEVELS 6

/* Maximum number of entries of each table of weights. */
#define POLICY_MAX_FACTORS 1000

/* Factor of the weights of a user's or a cojob's stages. */
struct policy_factor {
    char *name;                 /* Valid for json_name(). */
    double factor;              /* 0.001 to 1000. */
};

struct policy_factors {
    size_t n;
    struct policy_factor *factors;      /* In the order of the text. */
};

/* What the processes of a job must have: wire/membership.h. */
enum policy_trust { POLICY_REGISTERED, POLICY_ENVIRONMENT };

/* Names of trust, null-terminated. */
extern const char *const policy_trusts[];

struct policy {
    char *name;                 /* For logs, metrics and reports; valid for
                                 * json_name(). */
    char *description;          /* For people; may be empty. */
    char *text;                 /* The JSON of the policy. */
    char hash[17];              /* Hash of 'text', 16 hex digits. */
    struct order_options order; /* 'n_levels' is the number of levels of this
                                 * policy. */
    enum policy_trust trust;
    struct policy_factors users, cojobs;        /* See policy_weight(). */
    double weight_limit; /* Of a cojob of a client of role user. */
    double weight_total; /* Of all running cojobs of such a client. */

    /* DSCP values, 0..63, which differ. */
    int n_levels;               /* Number of levels of ordered stages, 1 to
                                 * POLICY_MAX_LEVELS. */
    uint8_t dscp[POLICY_MAX_LEVELS];    /* DSCP of each level, 0 first. */
    uint8_t default_dscp;       /* DSCP of traffic without a job; its queue is
                                 * the last. */
    uint8_t control_dscp;       /* DSCP of heartbeats and clocks; its queue is
                                 * the first. */

    int64_t lease_ms;           /* Time after which an order that is not
                                 * renewed expires; all jobs are then equal.
                                 * At least three renewals, which come each
                                 * second. */
    int64_t coalesce_ms;        /* Time window in which events are coalesced
                                 * into one order. */
    int64_t retag_ms;           /* Minimum time between two changes of a job's
                                 * level. */
    int64_t refresh_ms;         /* Maximum time between two orders of
                                 * iterations that are weighted by what their
                                 * searches still need. */
    double aging_s;             /* See order_problem_age(). */
    double aging_slowdown;      /* See order_problem_age(). */
    double objective_latest;    /* Of searches with jobs that iterate, see
                                 * lateness.h. */
    double owner_memory_s;      /* Time in which half of what an owner was
                                 * served is forgotten, see account.h; 0: it
                                 * does not count. */
    double min_share;           /* Minimum share of a link for each level with
                                 * queued traffic, 0 to 0.2.  It prevents
                                 * starvation. */

    /* How far the order of stages looks ahead, see order/lookahead/plan.h; 0
     * does not. */
    double lookahead_core_share; /* Of a processor, in a controller. */
    int lookahead_runs;          /* Of the judge in a second, in a
                                  * simulation. */

    /* Congestion control of the shims: see shim/cc/allocate.h. */
    double congestion_gamma;    /* Maximum share of the link to grant, 0.5 to
                                 * 1. */
    double congestion_beta;     /* Share of the phantom queue to drain in a
                                 * round trip, 0 to 1. */
    double congestion_floor;    /* Share that all flows get regardless of their
                                 * rank, 0 to 0.5. */

    /* Fit of the metric curves, see progress-curve.h; further members are in
     * 'order'. */
    int early_samples;          /* A job with fewer samples or iterations is
                                 * early. */
    double early_boot_s;        /* Maximum time for which that holds,
                                 * seconds. */
    double early_period_s;      /* Interval and horizon of predictions,
                                 * seconds. */
};

/* Read a policy into '*policyp', which the caller frees with policy_destroy().
 * Return NULL or a message that the caller frees, in which case '*policyp' is
 * NULL.  Messages begin with 'name'. */
char *policy_from_string(const char *name, const char *text,
                         struct policy **policyp);
char *policy_from_file(const char *file, struct policy **policyp);
void policy_destroy(struct policy *);

/* Returns NULL if shims can serve 'policy', which 'name' names, otherwise a
 * message that the caller frees. */
char *policy_check_served(const char *name, const struct policy *policy);

/* Returns all errors of 'text', one message per line, or NULL. */
char *policy_errors(const char *name, const char *text);

/* Returns what an operator should know of a valid policy, one message per line
 * that begins with 'name', or NULL: DSCPs that other traffic has, and members
 * that the text gives and that have no effect under its order. */
char *policy_warnings(const char *name, const struct policy *);

/* Returns the factor of the weight of 'cojob' of 'user': the product of the
 * policy's factors of both, which are 1 by default.  'user' may be null. */
double policy_weight(const struct policy *, const char *user,
                     const char *cojob);

/* Methods of assigning levels, null-terminated; the index is
 * order.truncate. */
extern const char *const policy_folds[];

/* Orders of trials, null-terminated; the index is order.trials. */
extern const char *const policy_trials[];

enum policy_type { POLICY_INT, POLICY_INT64, POLICY_DOUBLE };

/* A number of a policy. */
struct policy_member {
    const char *section;        /* Object that has it; NULL for the top. */
    const char *name;           /* Name in the JSON, with its unit. */
    enum policy_type type;      /* Type of the member of struct policy. */
    size_t offset;              /* Offset of that member. */
    double scale;               /* Unit of the JSON in units of the member. */
    double min, max;            /* Range in the JSON, inclusive. */
    bool (*is_read)(enum order_kind); /* Returns true if the order reads it;
                                       * NULL: every order does. */
};

#define POLICY_N_MEMBERS 27

/* Members of a section are adjacent. */
extern const struct policy_member policy_members[POLICY_N_MEMBERS];

/* Values are in the units of the JSON. */
double policy_member_get(const struct policy_member *, const struct policy *);
void policy_member_set(const struct policy_member *, struct policy *,
                       double value);

/* One member with its value. */
struct policy_row {
    char *member;               /* JSON pointer: "/early/theta". */
    char *value;                /* JSON, on one line. */
    bool given;                 /* True if the policy's text has it, false for
                                 * a default. */
};

struct policy_rows {
    size_t n, allocated;
    struct policy_row *rows;
};

/* Lists all members in the order of the schema. */
void policy_rows_init(struct policy_rows *, const struct policy *);
void policy_rows_uninit(struct policy_rows *);

#endif /* policies/policy.h */
