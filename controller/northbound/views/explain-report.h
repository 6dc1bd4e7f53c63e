/* SPDX-License-Identifier: Apache-2.0 */

#ifndef EXPLAIN_REPORT_H
#define EXPLAIN_REPORT_H 1

/* Sentences that explain the rank of a job.
 *
 * explain_report_put() adds three members to the reply of
 * "controller/explain": "why", an array of sentences about overrides, the
 * job's stage and its level; "waits_for", what limits the job's speed now; and
 * "ends", the completion time of its stage, in seconds: as estimated for the
 * last order, without any competing stage, and if all stages that share a port
 * with it went first.  The reply's other members are the data that the
 * sentences come from (decide_rows_explain()).  Main thread only. */

struct decide_rows;
struct job;
struct json;
struct overrides;
struct policy;

/* Adds nothing if 'job' is not in 'rows'. */
void explain_report_put(struct json *, const struct decide_rows *rows,
                        const struct policy *, const struct overrides *,
                        const struct job *job);

#endif /* controller/northbound/views/explain-report.h */
