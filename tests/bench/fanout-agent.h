/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FANOUT_AGENT_H
#define FANOUT_AGENT_H 1

/* What databases and controllers see of an agent, without a host.
 *
 *
 * Motivation
 * ==========
 *
 * A bench of the control plane needs a thousand agents on one machine.  These
 * read their wanted row, tell by telemetry and write their reported row with
 * the code of the real one; what they lack is a shim, jobs and a process of
 * their own.  What they want done is applied at once.
 *
 *
 * Usage
 * =====
 *
 *    fanout_agent_init(&a, i, hosts, telemetry, period_ms);
 *    for (;;) {
 *        fanout_agent_run(&a);
 *        ...fanout_agent_has(&a, "cojob/job")...
 *        fanout_agent_wait(&a);
 *        poll_block();
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "agent/lease.h"
#include "agent/report.h"
#include "agent/wanted.h"
#include "ovsdb-idl.h"

struct telemetry;

struct fanout_agent {
    char host[16];              /* "h" and its number. */
    struct ovsdb_idl_loop loop;
    struct wanted wanted;
    struct report report;
    struct lease lease;
    struct telemetry *telemetry;
    int period_ms;              /* Of telemetry. */
    long long next_telemetry;   /* time_msec(). */
};

void fanout_agent_init(struct fanout_agent *, int number, const char *hosts,
                       const char *telemetry, int period_ms);
void fanout_agent_run(struct fanout_agent *);
void fanout_agent_wait(struct fanout_agent *);

/* True once the database has been read and a controller listens. */
bool fanout_agent_is_connected(const struct fanout_agent *);

/* True if the row of its host has 'job', and before all others. */
bool fanout_agent_has_first(const struct fanout_agent *, const char *job);

#endif /* tests/bench/fanout-agent.h */
