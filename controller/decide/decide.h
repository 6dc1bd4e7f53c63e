/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_H
#define DECIDE_H 1

/* Computes the order: the rank and level of each job.
 *
 * Changes of the cluster are coalesced for a short time, and then the whole
 * order is computed again.  Without changes it is computed once a second,
 * because progress reduces the remaining demand.  If the policy orders whole
 * stages, they are ordered only when one begins or ends, or the policy
 * changes; at other times they keep their ranks.
 *
 * decide-problem.h collects the input, job-assignment.h assigns ranks and
 * levels, decide-rows.h keeps the result for reports.
 *
 *    decide_set_policy(d, policy);
 *    if (decide_run(d, time_msec())) {
 *        ...write the jobs' 'rank' and 'level'...
 *    }
 *    decide_wait(d);
 *
 * The cluster, the log and the policy belong to the caller and must outlive
 * the next decide_run(); main thread only.
 *
 * Overrides are applied after the order is computed: a pinned stage is moved
 * to the front and a paused one to the end, so that estimates and levels
 * describe what is served.  Excluded jobs, and all jobs in observe mode, are
 * left out of Host_Wanted; their traffic is still counted. */

#include <stdbool.h>

struct cluster;
struct decision_log;
struct job;
struct json;
struct policy;
struct decide;
struct decide_rows;

/* 'log' gets the changes of the order of stages; it may be NULL. */
struct decide *decide_create(struct cluster *, struct decision_log *log);
void decide_destroy(struct decide *);

/* Sets the policy and makes an order due at once. */
void decide_set_policy(struct decide *, const struct policy *);

/* Makes an order due at once. */
void decide_touch(struct decide *);

bool decide_run(struct decide *, long long now);
bool decide_is_settled(const struct decide *);
void decide_wait(const struct decide *);

/* The last order for reports; valid until the next one. */
const struct decide_rows *decide_last(const struct decide *);

/* For unixctl; the caller owns the JSON. */
void decide_status(const struct decide *, struct json *);
struct json *decide_order_to_json(const struct decide *);
struct json *decide_explain(const struct decide *, const char *job);
struct json *decide_stages_to_json(const struct decide *);

#endif /* controller/decide/decide.h */
