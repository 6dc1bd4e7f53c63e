/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_RESULT_H
#define ORDER_RESULT_H 1

/* Output of every order: ranks, levels and estimated completion times.
 *
 * The orders differ only in the permutation of the stages and, for some, in
 * which stages share a level.  Ranks, levels and estimates follow from that in
 * the same way for all of them.
 *
 * An order by rank computes a permutation and calls order_result_ranked().  An
 * order that shares calls order_result_shared().
 *
 * A result owns its arrays and reuses them for the next order_compute(). */

#include <stddef.h>

#include "order/problem/sort.h"

struct improver;
struct order_options;
struct order_problem;

/* The lower bound that is the best of all. */
enum order_bound {
    ORDER_BOUND_NONE,     /* None was computed, or all are 0. */
    ORDER_BOUND_ISOLATED, /* No stage ends before its isolated end. */
    ORDER_BOUND_PORTS,    /* Each port by itself: the primal-dual
                           * permutation, or shortest remaining time. */
    ORDER_BOUND_LP,       /* The linear program of ascent.h. */
    ORDER_BOUND_FLUID,    /* Of jobs that iterate: the fluid form of
                           * fluid.h, exact... */
    ORDER_BOUND_PRICES,   /* ...or bounded by prices. */
    ORDER_N_BOUNDS
};

/* Indexed by enum order_bound; null-terminated. */
extern const char *const order_bound_names[];

/* What decided an order. */
enum order_decider {
    ORDER_BY_RULE,        /* The rule of the policy's baseline. */
    ORDER_BY_PERMUTATION, /* The primal-dual permutation; unless jobs
                           * iterate, "stage" improves it, or smallest
                           * bottleneck first, by local search. */
    ORDER_BY_KEY,         /* The key of jobs that iterate, see
                           * iteration-weight.h. */
    ORDER_BY_PLAN,        /* The same key, times the factors of a plan, see
                           * lookahead/plan.h. */
    ORDER_BY_OVERRIDE,    /* An operator; of single stages and jobs
                           * only. */
    ORDER_BY_START,       /* Its first parameters; of single jobs only. */
    ORDER_N_DECIDERS
};

/* Indexed by enum order_decider; null-terminated. */
extern const char *const order_decider_names[];

/* Result of order_compute().  Arrays have 'n' elements. */
struct order_result {
    size_t n, allocated;
    int *order;                 /* Stage index at each rank, 0 first. */
    int *rank;                  /* Rank of each stage. */
    int *level;                 /* Level of each stage, 0 .. n_levels - 1, 0
                                 * first; never falls along the order among
                                 * stages that share a port. */
    double *completion;         /* Estimated completion of each stage, seconds
                                 * from the problem's time 0: the time at which
                                 * the last of its ports has served it, each
                                 * port regarded alone, but not before its
                                 * isolated completion.  For
                                 * ORDER_SERVICE_SHARE the stages of a level
                                 * share each port equally. */
    double *sent_limit;         /* Bytes sent at which the stage's level
                                 * changes without any other event; INFINITY
                                 * for never.  See 'sent' of the traits. */
    double estimate;            /* Weighted sum of 'completion'. */
    double improvement;         /* Share of the estimate that the local search
                                 * saved, 0 to 1. */
    double bound;               /* Certificate: lower bound on the weighted sum
                                 * of completion times of every schedule; at
                                 * most 'estimate'.  0 if 'uncertified'. */
    enum order_bound bound_kind;        /* The bound that 'bound' is. */
    enum order_decider decider;         /* What decided 'order'. */
    double checked;             /* Time of the problem when ORDER_BY_KEY was
                                 * last compared with ORDER_BY_PERMUTATION and
                                 * used; INFINITY before that. */
    struct improver *improver;  /* Memory of the local search, or NULL. */
};

void order_result_init(struct order_result *);
void order_result_uninit(struct order_result *);

/* Prepares the result for an order of 'n' stages: the improvement is 0, the
 * limits are INFINITY and a rule decides. */
void order_result_resize(struct order_result *, size_t n);

/* Copies 'order' into the result and sets the ranks. */
void order_result_set_order(struct order_result *, const int *order);

/* Sets the levels of a result that has its order. */
void order_result_set_levels(const struct order_options *,
                             const struct order_problem *,
                             struct order_result *);

/* Returns the weighted sum of the stages' completion times if they are served
 * in 'order': a stage ends when all ports have served it and the stages before
 * it, and not before its isolated time.  Stores the completion times in
 * 'completion' unless that is NULL. */
double order_estimate(const struct order_problem *, const int *order,
                      double *completion);

/* Estimate the completion of each stage and their weighted sum, if each port
 * serves by ranks, or by levels, shared equally among the stages of a level.
 * All stages must have begun. */
void order_result_estimate(const struct order_problem *,
                           struct order_result *);
void order_result_estimate_shared(const struct order_problem *,
                                  struct order_result *);

/* Sets order, levels and estimate of stages that are served strictly by
 * 'order'. */
void order_result_ranked(const struct order_options *,
                         const struct order_problem *, const int *order,
                         struct order_result *);

/* Sorts the stages by 'key' and calls order_result_ranked(). */
void order_result_by_key(const struct order_options *,
                         const struct order_problem *, order_key_func *key,
                         struct order_result *);

/* Sets order, levels and estimate of stages that share by groups: 'group' of
 * each rank starts at 0 and never falls.  Groups beyond the number of levels
 * share the last level. */
void order_result_shared(const struct order_options *,
                         const struct order_problem *, const int *order,
                         const int *group, struct order_result *);

#endif /* order/result/result.h */
