/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_H
#define DECIDE_H 1

/* From events to an order: which job gets which rank and level.
 *
 *
 * Motivation
 * ==========
 *
 * Whatever happens makes the cluster dirty; a little later, so that events
 * that belong together make one order, everything is computed again from what
 * is known then.  Between events the order is computed again each second,
 * because progress alone changes what is left.  An order that would only
 * swap stages that are about equal is not worth the reordering of packets,
 * so those keep the order that they had.
 *
 * decide-problem.h says what is ordered, decide-places.h which place each job
 * gets by the order, decide-rows.h what people are told.
 *
 *
 * Usage
 * =====
 *
 *    decide_set_policy(d, policy);
 *    if (decide_run(d, time_msec())) {
 *        ...write what the jobs' 'rank' and 'level' say...
 *    }
 *    decide_wait(d);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The cluster, the log and the policy belong to the caller and must outlive
 * the next decide_run(); main thread only. */

#include <stdbool.h>

struct cluster;
struct decision_log;
struct ds;
struct job;
struct json;
struct policy;
struct decide;
struct decide_rows;

/* 'log' is told when a stage gets another place; NULL: nobody is. */
struct decide *decide_create(struct cluster *, struct decision_log *log);
void decide_destroy(struct decide *);

void decide_set_policy(struct decide *, const struct policy *);
void decide_touch(struct decide *);
bool decide_run(struct decide *, long long now);
bool decide_is_settled(const struct decide *);
void decide_wait(const struct decide *);

/* Of the last order: its stages, and the sums of their completion times, by
 * the estimate and at least, in seconds. */
void decide_quality(const struct decide *, int *n_stages, double *estimate,
                    double *bound);

/* The last order as it is kept for people; valid until the next. */
const struct decide_rows *decide_last(const struct decide *);

/* For unixctl; the caller owns the JSON. */
void decide_status(const struct decide *, struct json *);
struct json *decide_order_to_json(const struct decide *);
struct json *decide_explain(const struct decide *, const char *job);
struct json *decide_stages_to_json(const struct decide *);

#endif /* controller/decide/decide.h */
