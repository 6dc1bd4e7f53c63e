/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_H
#define AGENT_H 1

/* Agent of one host: connects its modules.
 *
 * The tracker knows the jobs, the kernel which packets are theirs, the
 * database has the desired state, jobs report their progress, and the actuator
 * counts traffic.  These modules do not know each other; the agent passes
 * results from one to another.
 *
 *    error = agent_create(&config, &agent);
 *    agent_run(agent);
 *    agent_wait(agent);
 *
 * One agent per process; main thread only.  agent.c writes the members, and
 * control.c reads them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/actuate/holds.h"
#include "agent/host-rows.h"
#include "agent/links.h"
#include "agent/telemetry.h"

struct actuator;
struct identity;
struct job;
struct ovsdb_idl_loop;
struct pods;
struct tc;
struct tc_iface;

/* What applies the order, see actuate/actuator.h. */
enum agent_actuator {
    AGENT_AUTO, /* The kernel if there is an uplink, else the
                 * shim; never after the options. */
    AGENT_SHIM,
    AGENT_BPF,
    AGENT_OBSERVE, /* The kernel, which counts and changes no
                    * packet. */
};
extern const char *const agent_actuator_names[];

struct agent_config {
    char *host;
    char *db;                   /* OVSDB remotes of the hosts database. */
    char *controller;           /* Remotes of the controllers' telemetry. */
    char *controllers;          /* Addresses of the controllers' machines,
                                 * from which 'db' and 'controller' follow, or
                                 * NULL. */
    char *shim;                 /* Path of the shim's socket. */
    char *rundir;
    char *cgroup;               /* Root of the tree of jobs, below the mount
                                 * of cgroup v2. */
    uint64_t rate_bps;          /* Rate of the uplink in bit/s if the shim
                                 * does not report it; 0 if unknown. */
    char *readers;              /* File of rules for logs, or NULL. */
    struct tc_iface *tc;        /* Interfaces, see actuate/tc.h. */
    size_t n_tc;
    struct bypass_ports *bypass;        /* Or NULL, see actuate/bypass.h. */

    /* See identify/bpf/identity.h. */
    enum agent_actuator actuator;
    char **uplinks; /* Names of interfaces. */
    size_t n_uplinks;
    char *pins;
    char *kernel_cgroup; /* Below the mount, or NULL for all. */
    uint32_t mark_shift;
    bool unload; /* Instead of running an agent. */
};

/* Parses the options of stagecoach-agent(8), which stay for the life of the
 * program.  Ends it after an error, --help or --version. */
void agent_options_parse(int argc, char *argv[], struct agent_config *);

struct agent {
    const struct agent_config *config;

    struct ovsdb_idl_loop *loop;
    struct wanted wanted;
    struct report report;
    struct host_facts facts;
    struct lease lease;
    struct links links;
    struct pairs pairs;
    struct peers peers;
    struct telemetry *telemetry;
    struct progress_socket *progress;
    struct log_readers *logs;
    char *cgroup_mount;         /* NULL if there is no cgroup v2. */
    char *cgroup_root;          /* Absolute path of the tree of jobs, NULL if
                                 * there is no cgroup v2. */
    struct tracker *tracker;
    struct identity *identity;
    struct pods *pods; /* NULL without programs of the kernel. */
    struct actuator *actuator;
    struct tc *tc;
    struct holds holds;

    long long started;
    long long next_telemetry;
    bool decided;               /* The desired state is known, or GRACE_MS
                                 * have passed.  Until then, the state that
                                 * a previous agent has left in the shim
                                 * stays. */
    bool ordered;               /* The lease of the order is valid. */
    bool connected;             /* The actuator can apply changes. */
    uint64_t rdma_tx_bytes, rdma_rx_bytes; /* Of all jobs, beside packets. */
    bool has_rdma;              /* The host has a card for RDMA, as far as it
                                 * mattered. */
    int64_t applied;            /* Version that the shim has applied. */
    int64_t applied_generation; /* Of that. */
};

char *agent_create(const struct agent_config *, struct agent **);
void agent_destroy(struct agent *);

void agent_run(struct agent *);
void agent_wait(struct agent *);

char *agent_load_readers(struct agent *);

/* Registers the commands agent/... of stagecoach-agent(8) with unixctl, on
 * RUNDIR/agent.ctl.  Replies are JSON. */
void agent_control_register(struct agent *);

/* Stores in '*row' the priority that 'job' has on this host.  Returns false if
 * that is the default: the order does not have the job, or its processes are
 * not admitted (wire/membership.h). */
bool agent_wanted(const struct agent *, const struct job *,
                  struct shim_slot *row);

/* Returns "ordered" or "fair". */
const char *agent_state(const struct agent *);

/* Returns the rate of the uplink in bit/s, 0 if unknown. */
uint64_t agent_capacity(const struct agent *);

#endif /* agent/agent.h */
