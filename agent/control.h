/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_CONTROL_H
#define AGENT_CONTROL_H 1

/* Commands of the agent, by unixctl on RUNDIR/agent.ctl.
 *
 *    agent/status                state and counters
 *    agent/jobs                  jobs of this host
 *    agent/links COJOB JOB       measured paths to other hosts
 *    agent/register COJOB JOB    registers a new job at once
 *    agent/readers               logs that are read
 *    agent/reload-readers        rereads the rules for logs
 *
 * Replies are JSON. */

struct agent;

void agent_control_register(struct agent *);

#endif /* agent/control.h */
