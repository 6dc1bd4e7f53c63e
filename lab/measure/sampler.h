/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SAMPLER_H
#define LAB_SAMPLER_H 1

/* Samples the use of links twice a second and the queues of the fabric twenty
 * times, and reads CPU times and the counters of agents and TCP.
 *
 * Coverage is the share of the hosts' IP bytes that were sent in the class of
 * a job, as their agents report it.
 *
 * A retransmission timeout is the most expensive event for training: the
 * connection is idle for at least 200 ms, and all workers wait for it.  Each
 * host is a namespace in which the kernel counts the timeouts, and segments
 * that were sent again.
 *
 *    sampler = sampler_create(plan, policy, begin_ms);
 *    ...in the loop...
 *    if (sampler_run(sampler)) {
 *        ...sampler_moved() has the bytes since the sample before...
 *    }
 *    sampler_wait(sampler);
 *    sampler_finish(sampler);            // Into the policy's report.
 *    sampler_destroy(sampler);
 *
 * Main thread only.  The plan and the policy must outlive the sampler. */

#include <stdbool.h>
#include <stdint.h>

struct plan;
struct report_policy;
struct sampler;

struct sampler *sampler_create(const struct plan *, struct report_policy *,
                               long long begin_ms);
void sampler_destroy(struct sampler *);

/* Takes a sample if it is due.  Returns true if it was. */
bool sampler_run(struct sampler *);
void sampler_wait(struct sampler *);
void sampler_finish(struct sampler *);

/* Returns the bytes that 'host' sent and received between the last two
 * samples. */
uint64_t sampler_moved(const struct sampler *, int host);

/* Looks up 'name' of 'group' in 'text', which has the format of
 * /proc/net/netstat: a line of names, then a line of values, both beginning
 * with "GROUP:". */
bool sampler_find_counter(const char *text, const char *group,
                          const char *name, uint64_t *value);

#endif /* lab/measure/sampler.h */
