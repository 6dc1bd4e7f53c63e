/* SPDX-License-Identifier: Apache-2.0 */

#ifndef COJOBS_REPORT_H
#define COJOBS_REPORT_H 1

/* Cojobs, jobs and hosts as JSON, for views and REST.
 *
 * docs/interfaces.md, "Controller's unixctl", describes the members.  The
 * functions return NULL if the cojob or job is unknown; the caller owns the
 * JSON.  Main thread only. */

struct cluster;
struct json;

struct json *cojobs_report(const struct cluster *);
struct json *cojobs_report_cojob(const struct cluster *, const char *cojob);
struct json *cojobs_report_jobs(const struct cluster *);
struct json *cojobs_report_hosts(const struct cluster *);

/* 'job' is "COJOB/JOB". */
struct json *cojobs_report_job(const struct cluster *, const char *job);

/* Use of the ports of the order by jobs, as measured.
 *
 * ports_report() returns {"ports": [{"port", "busy_s"}]}: how long the traffic
 * of jobs has used the port, all together.  The difference of two calls by the
 * time between them is the port's load.
 *
 * A host counts what its jobs send and receive.  What crosses a port between
 * switches is computed from what hosts have sent to each other for live jobs
 * (demand.h), so it decreases when a job ends.  Main thread only. */

struct json *ports_report(const struct cluster *);

#endif /* controller/northbound/views/cojobs-report.h */
