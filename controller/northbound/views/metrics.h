/* SPDX-License-Identifier: Apache-2.0 */

#ifndef METRICS_H
#define METRICS_H 1

/* Counters and gauges in Prometheus's text format.
 *
 *
 * Motivation
 * ==========
 *
 * Who runs a cluster has Prometheus already.  What agents and shims count
 * reaches the controller five times a second anyway, so one place to scrape
 * tells of all hosts, and hosts need no port of their own for it.
 *
 * A label costs memory in Prometheus for each value that it ever had.  Hosts
 * and jobs are labels up to METRICS_MAX_HOSTS and METRICS_MAX_JOBS; how many
 * have been left out is a metric itself.  A host has some fifty series.  No label is made of anything that
 * changes by itself, such as a rung, a rank or a message.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller frees the string.  Main thread only. */

#include <stdint.h>

struct controller;

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_MAX_HOSTS 2000
#define METRICS_MAX_JOBS 2000

/* What the HTTP server counts of itself. */
struct rest_counts {
    uint64_t answers[6];        /* By the first digit of the status. */
    uint64_t refused;           /* Connections of nobody who is allowed. */
    uint64_t hung_up;           /* Connections that were too slow. */
    uint64_t connections;       /* Now. */
    uint64_t streams;           /* Now. */
};

char *metrics_to_string(const struct controller *,
                        const struct rest_counts *);

#endif /* controller/northbound/views/metrics.h */
