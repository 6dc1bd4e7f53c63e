/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_LINKS_H
#define AGENT_LINKS_H 1

/* The host agent's estimates of the bandwidth to other hosts.
 *
 * From the connections of all jobs and the controller's order, an agent knows
 * about a link before the first transfer, and about a change before the next
 * one (agent/links.h).  Without an agent, or without the permission to use its
 * socket, there are no estimates, and netmax uses its own measurements.
 *
 *    al = agent_links_create();          // NULL outside of a job.
 *    bps = agent_links_bps(al, "10.0.0.2");      // NAN: unknown.
 *    agent_links_destroy(al);
 *
 * An own thread requests the estimates each half second, so that no call waits
 * for an agent.  The functions are for one thread. */

struct agent_links;
struct cJSON;

/* Uses $STAGECOACH_COJOB, $STAGECOACH_JOB and $STAGECOACH_RUNDIR. */
struct agent_links *agent_links_create(void);
void agent_links_destroy(struct agent_links *);

/* Returns the bits per second to the host at 'address', as of the last
 * reply. */
double agent_links_bps(struct agent_links *, const char *address);

/* For tests: the result in a reply of JSON-RPC, which may be NULL, and the
 * bits per second in such a result. */
struct cJSON *agent_links_parse(const char *reply);
double agent_links_find(const struct cJSON *result, const char *address);

#endif /* trainer/gossip/agent-links.h */
