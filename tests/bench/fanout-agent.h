/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FANOUT_AGENT_H
#define FANOUT_AGENT_H 1

/* An agent without a host: emulates an agent towards databases and
 * controllers.
 *
 * A bench of the control plane needs a thousand agents on one machine.  These
 * agents read their wanted row, send telemetry and write their reported row
 * with the code of the real agent, but have no shim, no jobs and no process of
 * their own.  They report each order as applied at once.
 *
 *    fanout_agent_init(&a, i, hosts, telemetry, period_ms);
 *    for (;;) {
 *        fanout_agent_run(&a);
 *        ...fanout_agent_has_first(&a, "cojob/job")...
 *        fanout_agent_wait(&a);
 *        poll_block();
 *    }
 *
 * Main thread only. */

#include <stdbool.h>

#include "agent/host-rows.h"
#include "ovsdb-idl.h"

struct telemetry;

struct fanout_agent {
    char host[16];              /* "h" and its number. */
    struct ovsdb_idl_loop loop;
    struct wanted wanted;
    struct report report;
    struct lease lease;
    struct telemetry *telemetry;
    int period_ms;              /* Telemetry period, until the controller takes
                                 * changes only. */
    int64_t told;               /* Version in the last telemetry. */
    long long next_telemetry;   /* Time of the next telemetry, as
                                 * time_msec(). */
};

void fanout_agent_init(struct fanout_agent *, int number, const char *hosts,
                       const char *telemetry, int period_ms);
void fanout_agent_run(struct fanout_agent *);
void fanout_agent_wait(struct fanout_agent *);

/* Returns true once the database has been read and a controller is
 * connected. */
bool fanout_agent_is_connected(const struct fanout_agent *);

/* Returns true if 'job' is the first job in the row of the agent's host. */
bool fanout_agent_has_first(const struct fanout_agent *, const char *job);

#endif /* tests/bench/fanout-agent.h */
