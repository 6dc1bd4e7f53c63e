/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_WORD_H
#define HOST_WORD_H 1

/* Decides whether what a host reports of a job counts.
 *
 * A host speaks for itself by its certificate, but a tenant may have become
 * root there.  What it reports of a job that runs elsewhere must change
 * nothing: neither the job's bytes nor its iterations.  So a host is not
 * believed about others:
 *
 *    the job's processes are announced    the hosts where they are
 *    they are not                         the first host with the job
 *    in both cases                        hosts that one of these sends to, by
 *                                         the addresses in its report
 *    a requeue: none of these has had     the next host
 *    it for HOST_WORD_STALE_MS
 *
 * Addresses are known by the topology and by the connections of agents, which
 * report where jobs send to while there is a doubt.  Without certificates, as
 * on one machine, a host counts as long as no address contradicts.
 *
 *    if (host_word_counts(job, host, time_msec())) {
 *        ...the report counts...
 *    }
 *
 * What does not count is a refusal of the job, MEMBERSHIP_ELSEWHERE, and after
 * HOST_WORD_GRACE_MS an alarm with the name of the host.  Processes there keep
 * the priority of the job: root of a host decides about all its packets
 * anyway.
 *
 * Main thread only. */

#include <stdbool.h>

struct host;
struct job;

#define HOST_WORD_STALE_MS 5000
#define HOST_WORD_GRACE_MS 3000

/* Returns true if what 'host' reports of 'job' counts.  Notes why. */
bool host_word_counts(struct job *, struct host *, long long now);

#endif /* controller/model/host-word.h */
