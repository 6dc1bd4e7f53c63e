/* SPDX-License-Identifier: Apache-2.0 */

#ifndef EXPLAIN_REPORT_H
#define EXPLAIN_REPORT_H 1

/* Why a job has its place, in words.
 *
 * Adds to the answer of "controller/explain" what a person would say who knew
 * all of the last order: "why", sentences about its stage's place, its own
 * level and who decided what; "waits_for", what holds the job up now; and
 * "ends", when its stage ends: by the order's estimate, if nothing held it up,
 * and if everything that needs its ports went first.  Main thread only. */

struct decide_rows;
struct job;
struct json;
struct overrides;
struct policy;

/* 'job' is in the cluster, and in 'rows' unless nothing is added. */
void explain_report_put(struct json *, const struct decide_rows *rows,
                        const struct policy *, const struct overrides *,
                        const struct job *job);

#endif /* controller/northbound/views/explain-report.h */
