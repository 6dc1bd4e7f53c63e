/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KERNEL_CLAIMS_H
#define KERNEL_CLAIMS_H 1

/* Keeps the kernel's maps of claims as the registry is.
 *
 * The registry (registry.h) has all claims; the kernel gets, for each process,
 * cgroup and namespace, the one that decides, as the number of its job's slot.
 * Only differences are written.  A change makes each socket look its slot up
 * again with its next packet, so changes are collected for
 * KERNEL_CLAIMS_GAP_MS, and longer if there are thousands of claims.
 *
 * A process that has ended keeps its claim as long as its job is there: other
 * processes may have inherited its sockets.  Its id, used again, means nothing
 * to sockets that are younger than its end.  Jobs share the space for such
 * claims (base/shares.h).
 *
 *    kc = kernel_claims_create(identity, registry);
 *    kernel_claims_touch(kc);        // The registry or a slot has changed.
 *    kernel_claims_run(kc, now);
 *
 * Refers to its arguments, which must outlive it.  Main thread only. */

struct identity;
struct registry;
struct kernel_claims;

#define KERNEL_CLAIMS_GAP_MS 10

struct kernel_claims *kernel_claims_create(struct identity *,
                                           struct registry *);

/* The claims stay in the kernel. */
void kernel_claims_destroy(struct kernel_claims *);

void kernel_claims_touch(struct kernel_claims *);
void kernel_claims_run(struct kernel_claims *, long long now);
void kernel_claims_wait(const struct kernel_claims *);

#endif /* agent/identify/kernel-claims.h */
