/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SAMPLER_H
#define LAB_SAMPLER_H 1

/* Samples link use and CPU load twice a second.
 *
 *
 * Usage
 * =====
 *
 *    sampler = sampler_create(plan, policy, epoch_ms);
 *    ...in the loop...
 *    if (sampler_run(sampler)) {
 *        ...sampler_moved() has the bytes since the sample before...
 *    }
 *    sampler_wait(sampler);
 *    sampler_finish(sampler);            // Into the policy's report.
 *    sampler_destroy(sampler);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  The plan and the policy must outlive the sampler. */

#include <stdbool.h>
#include <stdint.h>

struct plan;
struct report_policy;
struct sampler;

struct sampler *sampler_create(const struct plan *, struct report_policy *,
                               long long epoch_ms);
void sampler_destroy(struct sampler *);

/* Takes a sample if it is due.  Returns true if it was. */
bool sampler_run(struct sampler *);
void sampler_wait(struct sampler *);
void sampler_finish(struct sampler *);

/* Returns the bytes that 'host' sent and received between the last two
 * samples. */
uint64_t sampler_moved(const struct sampler *, int host);

/* Returns the mean CPU load since the first sample, 0 to 1, NAN before it. */
double sampler_cpu(const struct sampler *);

#endif /* lab/measure/sampler.h */
