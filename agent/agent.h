/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_H
#define AGENT_H 1

/* One host's agent: what joins its parts.
 *
 *
 * Motivation
 * ==========
 *
 * The tracker says which flow is whose, the database what is wanted, the jobs
 * how far they are, the actuator how much they move.  None of these knows of
 * another; here is where what one says becomes what another does.
 *
 *
 * Usage
 * =====
 *
 *    error = agent_create(&config, &agent);
 *    for (;;) {
 *        agent_run(agent);
 *        agent_wait(agent);
 *        poll_block();
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One agent a process; main thread only.  The members are for agent.c to
 * change and for control.c to read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/actuate/actuator.h"
#include "agent/lease.h"
#include "agent/links.h"
#include "agent/report.h"
#include "agent/wanted.h"

struct ovsdb_idl_loop;
struct port_rule;
struct tc_iface;

struct agent_config {
    char *host;
    char *db;                   /* OVSDB remote of the hosts database. */
    char *controller;           /* Remote of its telemetry stream. */
    char *shim;                 /* Path of the shim's socket. */
    char *rundir;
    char *cgroup;               /* Root of jobs, below the v2 mount. */
    uint64_t rate_bps;          /* Of the uplink if the shim does not say, 0 if
                                 * nobody knows. */
    char **netns;               /* Of /run/netns, besides our own. */
    size_t n_netns;
    char *readers;              /* File of rules for logs, or NULL. */
    struct port_rule *ports;    /* See identify/port-rule.h. */
    size_t n_ports;
    struct tc_iface *tc;        /* Interfaces, see actuate/tc.h. */
    size_t n_tc;
    struct bypass_ports *bypass;        /* Or NULL, see actuate/bypass.h. */
};

struct agent {
    const struct agent_config *config;

    struct ovsdb_idl_loop *loop;
    struct wanted wanted;
    struct report report;
    struct lease lease;
    struct links links;
    struct telemetry *telemetry;
    struct progress_socket *progress;
    struct log_readers *logs;
    char *cgroup_mount;         /* NULL if there is no cgroup v2. */
    struct tracker *tracker;
    struct actuator *shim;      /* Also in 'actuators'; it has the status. */
    struct actuator *actuators[2];
    size_t n_actuators;

    long long started;
    long long next_telemetry;
    bool decided;               /* The database has said, or has had the time
                                 * to say, what is wanted.  Until then what a
                                 * former agent left in the shim stays. */
    bool ordered;               /* The controller's order holds. */
    int64_t applied;            /* Version that the actuator has. */
};

char *agent_create(const struct agent_config *, struct agent **);
void agent_destroy(struct agent *);

void agent_run(struct agent *);
void agent_wait(struct agent *);

char *agent_load_readers(struct agent *);

/* Bits per second of the uplink, 0 if nobody knows. */
uint64_t agent_capacity(const struct agent *);

#endif /* agent/agent.h */
