/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_CONTROL_H
#define AGENT_CONTROL_H 1

/* What one can ask an agent, through unixctl on RUNDIR/agent.ctl.
 *
 *    agent/status                what it does, and how often it did it
 *    agent/jobs                  the jobs of this host
 *    agent/flows                 their flows
 *    agent/links COJOB JOB       what is known of the ways to others
 *    agent/register COJOB JOB    there is a new job: look at once
 *    agent/readers               the logs that are read
 *    agent/reload-readers        reads their rules again
 *
 * Replies are JSON. */

struct agent;

void agent_control_register(struct agent *);

#endif /* agent/control.h */
