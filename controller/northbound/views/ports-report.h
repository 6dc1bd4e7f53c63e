/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PORTS_REPORT_H
#define PORTS_REPORT_H 1

/* Use of the ports of the order by jobs, as measured.
 *
 * ports_report() returns {"ports": [{"port", "busy_s"}]}: how long the traffic
 * of jobs has used the port, all together.  The difference of two calls by the
 * time between them is the port's load.
 *
 * A host counts what its jobs send and receive.  What crosses a port between
 * switches is computed from what hosts have sent to each other for live jobs
 * (demand.h), so it decreases when a job ends.  Main thread only. */

struct cluster;
struct json;

struct json *ports_report(const struct cluster *);

#endif /* controller/northbound/views/ports-report.h */
