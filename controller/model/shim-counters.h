/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_COUNTERS_H
#define SHIM_COUNTERS_H 1

/* Counters of a shim, as its agent reports them in telemetry.
 *
 * They do not influence an order; they show in the metrics why a host is slow.
 * The list is fixed, so that no agent can add names to the controller's memory
 * or to Prometheus.  Plain data; the caller frees messages. */

#include <stdbool.h>
#include <stdint.h>

struct json;

#define SHIM_COUNTERS_N 18
#define SHIM_COUNTERS_LEVELS 8  /* The shim's queues. */

struct shim_counters {
    bool known;                 /* The agent has reported them. */
    uint64_t values[SHIM_COUNTERS_N];   /* As in 'shim_counters_list'. */
    uint64_t level_bytes[SHIM_COUNTERS_LEVELS]; /* Bytes sent by jobs. */
    uint64_t level_dropped[SHIM_COUNTERS_LEVELS];       /* Packets. */
};

struct shim_counter {
    const char *member;         /* Of "shim" in telemetry. */
    const char *metric, *type, *help;
};

extern const struct shim_counter shim_counters_list[SHIM_COUNTERS_N];

/* Reads "shim" of telemetry, which may be NULL.  Returns NULL or a
 * message. */
char *shim_counters_from_json(const struct json *, struct shim_counters *);

/* Returns the counter of a member, 0 if it is not known. */
uint64_t shim_counters_get(const struct shim_counters *, const char *member);

#endif /* controller/model/shim-counters.h */
