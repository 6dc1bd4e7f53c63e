/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TELEMETRY_H
#define TELEMETRY_H 1

/* The stream of agents' telemetry, and of leases to them.
 *
 *
 * Motivation
 * ==========
 *
 * Counters and iteration marks change too often for a database, so agents
 * stream them as JSON-RPC notifications.  On the same connection goes what
 * keeps an order alive: as long as the controller sends leases, agents keep
 * the last order, and when it is gone they become fair by themselves.
 *
 * A peer that sends something else than docs/interfaces.md says loses its
 * connection; it may come back, the next message may be better.
 *
 *
 * Usage
 * =====
 *
 *    error = telemetry_create("punix:/run/...", cluster, &t);
 *    telemetry_run(t);                         // Changes the cluster.
 *    telemetry_send_leases(t, generation, version, lease_ms);
 *    telemetry_wait(t);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct telemetry;

char *telemetry_create(const char *remote, struct cluster *,
                       struct telemetry **);
void telemetry_destroy(struct telemetry *);

void telemetry_run(struct telemetry *);
void telemetry_wait(const struct telemetry *);
void telemetry_send_leases(struct telemetry *, int64_t generation,
                           int64_t version, int64_t lease_ms);

/* Agents belong to the controller that leads: one that stands by sends them
 * away, so that they look for another. */
void telemetry_set_open(struct telemetry *, bool open);

size_t telemetry_n_agents(const struct telemetry *);

#endif /* controller/hosts/telemetry.h */
