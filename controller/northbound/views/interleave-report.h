/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTERLEAVE_REPORT_H
#define INTERLEAVE_REPORT_H 1

/* Reports which jobs could use their ports at different times.
 *
 * Jobs with a measured period that communicate in only a part of each
 * iteration are compared with the other jobs on their ports (see
 * order/baselines/interleave.h).  The report is advice for placing and
 * starting jobs; no job is delayed.  No state; the caller owns the JSON. */

struct controller;
struct json;

struct json *interleave_report(const struct controller *);

#endif /* controller/northbound/views/interleave-report.h */
