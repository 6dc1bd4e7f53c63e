/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TELEMETRY_REPORT_H
#define TELEMETRY_REPORT_H 1

/* One telemetry message of an agent, checked.
 *
 *
 * Motivation
 * ==========
 *
 * A message comes from another machine, where a tenant may have become root.
 * All that it says is checked here, once, and the rest of the controller
 * works with plain numbers.  docs/interfaces.md has the format.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A report owns its strings. */

#include <stdbool.h>
#include <stdint.h>

#include "controller/model/shim-counters.h"
#include "simap.h"

struct json;

#define TELEMETRY_MAX_JOBS 1024
#define TELEMETRY_MAX_PORTS 16

struct telemetry_job {
    char *name;                 /* "COJOB/JOB". */
    uint64_t tx_bytes, rx_bytes;        /* Since the agent began. */
    double period;              /* Seconds from burst to burst, 0: unknown, */
    uint64_t burst_bytes;
    double duty;                /* and the share of that that one lasts. */
    int64_t iteration;          /* -1 if the job never told. */
    int64_t counted;            /* Iterations that the host counted in its
                                 * traffic, -1 if it could not. */
    char *metric;               /* A name, NULL if there is no 'value'. */
    double value;               /* Finite. */
};

struct telemetry_report {
    char *host;
    char *state;                /* "ordered" or "fair". */
    bool bypass;                /* The kernel forwards, without order. */
    int64_t applied;            /* Version of the order in force. */
    struct simap ports;         /* Port name -> kbit/s. */
    uint64_t ip_bytes, default_bytes;
    int64_t queued_bytes;       /* That wait in its shim, -1: not told. */
    struct shim_counters shim;
    struct telemetry_job *jobs;
    size_t n_jobs;
};

char *telemetry_report_from_json(const struct json *params,
                                 struct telemetry_report **);
void telemetry_report_destroy(struct telemetry_report *);

#endif /* controller/model/telemetry-report.h */
