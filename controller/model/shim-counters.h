/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_COUNTERS_H
#define SHIM_COUNTERS_H 1

/* What a shim counts, as its agent tells it.
 *
 *
 * Motivation
 * ==========
 *
 * Nothing here has a part in an order, and all of it says why a host is slow.
 * It is for who looks at metrics, and so a fixed list: no agent can make the
 * controller keep, or Prometheus, a name of its own.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data; the caller frees messages. */

#include <stdbool.h>
#include <stdint.h>

struct json;

#define SHIM_COUNTERS_N 17
#define SHIM_COUNTERS_LEVELS 8  /* The shim's queues. */

struct shim_counters {
    bool known;                 /* The agent has told of a shim. */
    uint64_t values[SHIM_COUNTERS_N];   /* As in 'shim_counters_list'. */
    uint64_t level_bytes[SHIM_COUNTERS_LEVELS]; /* Sent by jobs, */
    uint64_t level_dropped[SHIM_COUNTERS_LEVELS];       /* and packets. */
};

struct shim_counter {
    const char *member;         /* Of telemetry's "shim". */
    const char *metric, *type, *help;
};

extern const struct shim_counter shim_counters_list[SHIM_COUNTERS_N];

/* Reads telemetry's "shim", or nothing from NULL. */
char *shim_counters_from_json(const struct json *, struct shim_counters *);

#endif /* controller/model/shim-counters.h */
