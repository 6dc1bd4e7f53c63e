/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_CALL_H
#define AGENT_CALL_H 1

/* One request to this host's agent, with a time limit.
 *
 * Launchers of jobs (the command line tool, plug-ins of cluster managers and
 * container runtimes) register them with the agent.  They run inside other
 * programs, as root and before the job, so they must not wait for an agent
 * that hangs, and must not need libraries.  The agent replies after it has
 * acted: a job that starts afterwards is known.
 *
 *    const char *words[] = { "agent/register", "asha", "t0" };
 *
 *    error = agent_call("/run/stagecoach", agent_call_until(100), words, 3,
 *                       NULL);
 *
 * The first word is the command, the others are its arguments, as of
 * "ovs-appctl -t RUNDIR/agent.ctl".
 *
 * Plain C without any library.  Blocks, with a limit.  Thread-safe. */

#include <stddef.h>

/* Time limit of launchers for all calls of one job together. */
#define AGENT_CALL_MS 100

/* Default directory of the sockets of the agent. */
#define AGENT_RUNDIR "/run/stagecoach"

/* Returns the time 'ms' milliseconds from now, for any number of calls. */
long long agent_call_until(int ms);

int agent_call(const char *rundir, long long until, const char *const words[],
               size_t n, char **replyp);

/* For tests and the fuzzer: the request for 'words', and the length of the
 * first complete JSON object in 'text', 0 if it is incomplete. */
char *agent_call_request(const char *const words[], size_t n);
size_t agent_call_object_length(const char *text, size_t size);

#endif /* wire/agent-call.h */
