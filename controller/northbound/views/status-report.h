/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STATUS_REPORT_H
#define STATUS_REPORT_H 1

/* How the cluster is, on one screen.
 *
 * Adds to the answer of "controller/status" what an operator looks for first:
 * whether hosts have what they should have, how much of the traffic the order
 * reaches, whether it helps, what people decided, and "alarms", one line for
 * each thing that somebody should look at.  Main thread only. */

struct controller;
struct json;

void status_report_put(struct json *, const struct controller *);

#endif /* controller/northbound/views/status-report.h */
