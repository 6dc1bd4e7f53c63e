/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_LINKS_H
#define AGENT_LINKS_H 1

/* The host agent's estimates of the bandwidth to other hosts.
 *
 *
 * Motivation
 * ==========
 *
 * From the connections of all jobs and the controller's order, an agent knows
 * about a link before the first transfer, and about a change before the next
 * one (agent/links.h).  Without an agent, or without the permission to use its
 * socket, there are no estimates, and netmax uses its own measurements.
 *
 *
 * Usage
 * =====
 *
 *    al = agent_links_create();          // NULL outside of a job.
 *    bps = agent_links_bps(al, "10.0.0.2");      // NAN: unknown.
 *    agent_links_destroy(al);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * An own thread requests the estimates each half second, so that no call waits
 * for an agent.  The functions are for one thread. */

#include <stdbool.h>

#define AGENT_LINKS_MAX 64      /* Paths; the rest of a reply is ignored. */

struct agent_links;

/* A reply of the agent. */
struct agent_links_view {
    double available_bps;       /* At the uplink; NAN: unknown. */
    int n;
    struct {
        char remote[48];        /* Address. */
        double bps;
    } paths[AGENT_LINKS_MAX];
};

/* Uses $STAGECOACH_COJOB, $STAGECOACH_JOB and $STAGECOACH_RUNDIR. */
struct agent_links *agent_links_create(void);
void agent_links_destroy(struct agent_links *);

/* Returns the bits per second to the host at 'address', as of the last
 * reply. */
double agent_links_bps(struct agent_links *, const char *address);

/* For tests.  Parses a reply of JSON-RPC.  Returns false, and an empty
 * '*view', if it has no estimates. */
bool agent_links_parse(const char *reply, struct agent_links_view *view);
double agent_links_find(const struct agent_links_view *, const char *address);

#endif /* trainer/gossip/agent-links.h */
