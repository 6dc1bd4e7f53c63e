/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_LINKS_H
#define AGENT_LINKS_H 1

/* What the host's agent knows of the ways to other hosts.
 *
 *
 * Motivation
 * ==========
 *
 * Under an agent, connections of other jobs and the controller's order tell
 * something of a link before there was a transfer, and of one that has changed
 * before the next (agent/links.h).  Without one, or when it does not let us
 * ask, nothing is known, and everything goes on by what is measured.
 *
 *
 * Usage
 * =====
 *
 *    al = agent_links_create();          // NULL outside of a job.
 *    bps = agent_links_bps(al, "10.0.0.2");      // NAN: not known.
 *    agent_links_destroy(al);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A thread of its own asks each half second, so that nobody waits for an
 * agent.  The functions are for one thread. */

#include <stdbool.h>

#define AGENT_LINKS_MAX 64      /* Ways; of more the rest is not known. */

struct agent_links;

/* An answer of the agent. */
struct agent_links_view {
    double left_bps;            /* Of the uplink, NAN: not told. */
    int n;
    struct {
        char remote[48];
        double bps;
    } ways[AGENT_LINKS_MAX];
};

/* $STAGECOACH_COJOB, _JOB and _RUNDIR say whom to ask for what. */
struct agent_links *agent_links_create(void);
void agent_links_destroy(struct agent_links *);

/* Bits per second to the host at 'address', by the last answer. */
double agent_links_bps(struct agent_links *, const char *address);

/* For tests.  'reply' is one of JSON-RPC; false, and an empty '*view', if it
 * has no result that is of any use. */
bool agent_links_parse(const char *reply, struct agent_links_view *view);
double agent_links_find(const struct agent_links_view *, const char *address);

#endif /* trainer/gossip/agent-links.h */
