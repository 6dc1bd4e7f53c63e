/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRACKER_H
#define TRACKER_H 1

/* Follows the jobs of this host and their flows.
 *
 *
 * Motivation
 * ==========
 *
 * Which flow is whose has two halves that change at different times: what on
 * this host is a job's (cgroups, namespaces, processes), and which sockets
 * belong to that.  The tracker looks at a single socket when the data plane
 * does not know its flow, and at the cgroups when it is told of something new.
 * Besides it looks at both without being told, so that nothing depends on
 * anybody telling: at the cgroups each second, at the sockets as often as a
 * hundredth of a core allows, twice a second at most.
 *
 *
 * Usage
 * =====
 *
 *    tracker = tracker_create(&config, &class, aux);
 *    for (;;) {
 *        tracker_run(tracker);
 *        tracker_wait(tracker);
 *        poll_block();
 *    }
 *
 * The functions of the class are called from tracker_create() and
 * tracker_run(), only with differences.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The tracker owns the registry and the flow table; others read them, and
 * write the members of a job that they measure.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identify/claim.h"
#include "wire/shim-protocol.h"

struct flow_table;
struct job;
struct port_rule;
struct registry;
struct tracker;

/* A job without a process for so long goes. */
#define TRACKER_EMPTY_MS 5000

struct tracker_class {
    void (*job_begin)(struct job *, void *aux);

    /* 'job' is about to go; its flows went before. */
    void (*job_end)(struct job *, void *aux);

    /* Also when a flow changes hands. */
    void (*flow_begin)(const struct shim_flow_key *, const struct job *,
                       void *aux);
    void (*flow_end)(const struct shim_flow_key *, void *aux);
};

struct tracker_config {
    const char *cgroup_mount;   /* Of cgroup v2, NULL if there is none. */
    const char *cgroup_root;    /* Absolute, NULL if there is no cgroup v2. */
    char **netns;               /* Of /run/netns, looked at besides our own. */
    size_t n_netns;
    const struct port_rule *ports;      /* Must outlive the tracker. */
    size_t n_ports;
};

struct tracker_stats {
    uint64_t n_dumps;           /* Of sockets, all namespaces count as one. */
    uint64_t n_looks;           /* At single sockets. */
    uint64_t n_failed_dumps;
    uint64_t n_scans;           /* Of the cgroup tree. */
    uint64_t n_misses;          /* Told by tracker_miss(). */
};

struct tracker *tracker_create(const struct tracker_config *,
                               const struct tracker_class *, void *aux);
void tracker_destroy(struct tracker *);

void tracker_run(struct tracker *);
void tracker_wait(struct tracker *);

/* The data plane does not know this flow. */
void tracker_miss(struct tracker *, const struct shim_flow_key *);

/* Looks at the cgroups soon; bounded, however often it is
 * called. */
void tracker_hurry(struct tracker *);

/* Returns the job called 'name', a valid name, NULL if it has no cgroup; looks
 * for that now if it was not known, and at the others soon. */
struct job *tracker_register(struct tracker *, const char *name);

/* Notes what 'source' claims for the job called 'name', until it is taken back
 * or what is claimed is gone.  'rung' is -1 if that is not known. */
char *tracker_claim(struct tracker *, enum claim_source, const char *name,
                    const char *kind, const char *text, int64_t rung);
char *tracker_unclaim(struct tracker *, enum claim_source, const char *name,
                      const char *kind, const char *text);

/* What the kernel's struct tcp_info says of a flow, as
 * sock_diag_tcp_info(). */
int tracker_tcp_info(struct tracker *, const struct shim_flow_key *,
                     void *tcp_info, size_t *sizep);

const struct registry *tracker_registry(const struct tracker *);
const struct flow_table *tracker_flows(const struct tracker *);
const struct tracker_stats *tracker_stats(const struct tracker *);

#endif /* agent/identify/tracker.h */
