/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ROLLOUT_H
#define ROLLOUT_H 1

/* Progress of applying the order on hosts and in switches.
 *
 *
 * Motivation
 * ==========
 *
 * A command takes effect on a host after two database transactions, the
 * computation of an order, and the agent's work.  A client that needs the
 * effect, such as a script that measures or drains a host, polls the rollout
 * instead of sleeping.
 *
 *
 * Usage
 * =====
 *
 * "controller/rollout [COJOB RUNG begun|ended]" of the control socket replies
 * at once.  Its "done" is true when the last order includes all events, each
 * connected host has applied it and each connected switch has its flows.  If a
 * stage is given, it must also have begun or ended, so that a client that has
 * written to the intent database can wait until the controller has read it.
 * The command line repeats the request until it is done.
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct controller;
struct json;

struct json *rollout_report(const struct controller *);

/* Returns {"done", "version", "hosts" (connected), "hosts_applied", "behind"
 * (names), "applied" (share of these hosts, 0 to 1), "switches_applied" (share
 * of desired entries)}.  'settled' is true if no event is pending and the
 * databases have the order 'version'; 'switches' is switches_applied(). */
struct json *rollout_to_json(const struct cluster *, bool settled,
                             int64_t version, double switches);

/* Returns true if stage 'rung' of 'cojob' is running. */
bool rollout_stage_runs(const struct cluster *, const char *cojob, int rung);

#endif /* controller/northbound/views/rollout.h */
