/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_CALL_H
#define AGENT_CALL_H 1

/* One question to this host's agent, and no more than so many milliseconds.
 *
 *
 * Motivation
 * ==========
 *
 * What starts jobs (the command line tool, a cluster manager's plug-in, a
 * container runtime's) tells the agent whose they are.  It runs inside other
 * people's programs, as root and before the job, so it must not wait for an
 * agent that hangs, and must not bring libraries with it.  The agent has
 * answered once it has acted: a job that starts afterwards is known.
 *
 *
 * Usage
 * =====
 *
 *    const char *words[] = { "agent/register", "asha", "t0" };
 *
 *    error = agent_call("/run/stagecoach", agent_call_until(100), words, 3,
 *                       NULL);
 *
 * The first word is the command, the others are its arguments, as of
 * "ovs-appctl -t RUNDIR/agent.ctl".
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain C without any library.  Blocking, with an end.  Thread-safe. */

#include <stddef.h>

/* What launchers grant the agent, in all calls of one job together. */
#define AGENT_CALL_MS 100

/* Where agent and jobs meet unless somebody says otherwise. */
#define AGENT_RUNDIR "/run/stagecoach"

/* The moment 'ms' milliseconds from now, for any number of calls. */
long long agent_call_until(int ms);

int agent_call(const char *rundir, long long until, const char *const words[],
               size_t n, char **replyp);

/* The request for 'words', and the length of the first whole JSON object at
 * the beginning of 'text', 0 if it goes on: for tests and the fuzzer. */
char *agent_call_request(const char *const words[], size_t n);
size_t agent_call_object_length(const char *text, size_t size);

#endif /* wire/agent-call.h */
