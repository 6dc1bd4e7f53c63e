/* SPDX-License-Identifier: Apache-2.0 */

#ifndef METRICS_H
#define METRICS_H 1

/* Metrics in Prometheus's text format.
 *
 * Agents report the counters of their shims to the controller once a second.
 * The controller exports all of them, so hosts need no HTTP port of their own.
 *
 * Prometheus needs memory for each value of a label.  Hosts, with about fifty
 * series each, are limited to METRICS_MAX_HOSTS, and jobs and users likewise;
 * the number of those left out is a metric.  Values that change by themselves,
 * such as a rung, a rank or a message, are not labels.
 *
 * Prometheus and its operator set the labels job, instance, namespace, pod,
 * container, service, endpoint and node of each scrape, and rename a metric's
 * own, so no label here has one of these names; "honorLabels", with which a
 * target could replace them, stays off.
 *
 * The caller frees the string.  Main thread only. */

#include <stdint.h>

struct cluster;
struct controller;
struct ds;
struct stage_starts;

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_MAX_HOSTS 2000
#define METRICS_MAX_JOBS 2000
#define METRICS_MAX_USERS 1000

/* Counters of the HTTP server. */
struct rest_counts {
    uint64_t replies[6];        /* By the first digit of the status. */
    uint64_t refused;           /* Requests that were not authorized. */
    uint64_t incomplete;        /* Reports of progress without a member that
                                 * was none. */
    uint64_t hung_up;           /* Connections closed by a timeout or to make
                                 * room for another. */
    uint64_t connections;       /* Open connections. */
};

char *metrics_to_string(const struct controller *, const struct rest_counts *);

/* Append the metrics of hosts, jobs and users, and of new stages, to 'out'. */
void metrics_put_cluster(struct ds *out, const struct cluster *);
void metrics_put_starts(struct ds *out, const struct stage_starts *);

#endif /* controller/northbound/views/metrics.h */
