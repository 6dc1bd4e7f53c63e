/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MEMBERSHIP_H
#define MEMBERSHIP_H 1

/* Decides whether the processes that claim a job may have its priority.
 *
 * Names of jobs are public, and any process can write any name into its
 * environment.  A cojob therefore has an owner from its first announcement,
 * and the processes of a host belong to a job only if they pass two checks:
 *
 * Registration.  Under the policy's trust "registered", somebody with a right
 * to the host must have assigned the processes to the job: a launcher's hook
 * (Slurm, Kubernetes), "stagecoach run", or a cgroup in the tree of jobs.
 * Under "environment" the processes' own environment and ports suffice: for
 * clusters with one tenant.
 *
 * User.  If the owner of the cojob is a user, the processes must be those of
 * the same user, or of root, which could change the priority anyway.  Those of
 * an unknown user have no owner.  A pod has no user of the cluster: it belongs
 * to its namespace of Kubernetes, which has a number as users do, and it is
 * above those of all users.  If root or a REST client has announced the cojob
 * without a user, it may have processes of any user.
 *
 * The controller applies the rule to what agents report: processes that it
 * refuses count neither as the job's traffic nor as its progress.  The agent
 * applies the same rule again to the owner that the controller sends in
 * Host_Wanted, so that a process that takes over a free name has no priority
 * until the controller's next order either.
 *
 *    struct membership_owner owner = { .has_uid = true, .uid = 1000 };
 *    struct membership_claim claim = { .registered = true, .has_uid = true,
 *                                      .uid = 1001 };
 *
 *    if (membership_check(&owner, &claim) == MEMBERSHIP_ADMITTED) {
 *        ...the order applies to the processes...
 *    }
 *
 * Pure function.  Thread-safe. */

#include <stdbool.h>
#include <stdint.h>

/* Largest user id; the next one means "no user" to the kernel.  Larger numbers
 * are those of namespaces of pods. */
#define MEMBERSHIP_MAX_UID 4294967294u

/* What the name of the owner begins with that is a namespace: "namespace:". */
#define MEMBERSHIP_NAMESPACE "namespace:"

/* Owner of a cojob, and the policy's trust. */
struct membership_owner {
    bool trusts_environment;    /* The policy's trust is "environment". */
    bool has_uid;               /* The owner is the user 'uid'. */
    uint64_t uid;
};

/* Processes of a host that claim to be a job's. */
struct membership_claim {
    bool registered;            /* A launcher, "stagecoach run" or a cgroup has
                                 * assigned them. */
    bool has_uid;               /* Their user is known: 'uid'. */
    uint64_t uid;
};

enum membership {
    MEMBERSHIP_ADMITTED,
    MEMBERSHIP_UNREGISTERED, /* Known by environment or ports only. */
    MEMBERSHIP_OTHER_USER,   /* Of another user than the owner. */
    MEMBERSHIP_ELSEWHERE,    /* The controller alone decides so: the job is on
                              * other hosts.  See host-word.h. */
};

enum membership membership_check(const struct membership_owner *,
                                 const struct membership_claim *);

/* Returns the number of a namespace of Kubernetes, from 62 bits of its name's
 * SHA-1: users that choose names for namespaces find no other of the same
 * number. */
uint64_t membership_namespace(const char *name);

#endif /* wire/membership.h */
