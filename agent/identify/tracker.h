/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRACKER_H
#define TRACKER_H 1

/* Tracks the jobs of this host.
 *
 * A job's cgroups, namespaces and processes come and go.  The tracker scans
 * the cgroups once a second, so that nothing depends on an event; it replies
 * to the questions of the kernel about processes (questions.h), and keeps the
 * kernel's claims as its registry is.  A socket or a packet costs it nothing.
 *
 * The registry (registry.h) has all claims; the kernel gets, for each process,
 * cgroup and namespace, the one that decides, as the number of its job's slot.
 * Only differences are written.  A change makes each socket repeat the lookup
 * of its slot with its next packet, so changes are collected for
 * KERNEL_CLAIMS_GAP_MS, and longer if there are thousands of claims.
 *
 * A process that has ended keeps its claim as long as its job is there: other
 * processes may have inherited its sockets.  Its id, used again, means nothing
 * to sockets that are younger than its end.  Jobs share the space for such
 * claims (base/shares.h).
 *
 *    tracker = tracker_create(&config, &class, aux);
 *    tracker_run(tracker);
 *    tracker_wait(tracker);
 *
 * The functions of the registry's class are called from tracker_create() and
 * tracker_run(), for differences only.
 *
 * The tracker owns the registry.  Other modules read it, set owners, and write
 * the members of a job that they measure.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identify/registry.h"
#include "base/name.h"

struct identity;
struct json;
struct kernel_claims;
struct tracker;

/* A job is removed after this time without a process, in ms. */
#define TRACKER_EMPTY_MS 5000

/* What it refers to must outlive the tracker. */
struct tracker_config {
    const char *cgroup_mount; /* Mount of cgroup v2, or NULL. */
    const char *cgroup_root;  /* Absolute path of the tree of jobs, NULL
                               * without cgroup v2. */
    struct identity *identity;
};

struct tracker *tracker_create(const struct tracker_config *,
                               const struct registry_class *, void *aux);
void tracker_destroy(struct tracker *);

void tracker_run(struct tracker *);
void tracker_wait(struct tracker *);

/* The slot of a job has changed. */
void tracker_touch(struct tracker *);

/* Returns the job called 'name', a valid name, or NULL if it has no cgroup.
 * Searches the cgroup of an unknown job at once. */
struct job *tracker_register(struct tracker *, const char *name);

/* Request of a launcher or an operator to claim something for a job, or to end
 * the claim. */
struct claim_request {
    enum claim_source source;
    char job[NAME_PAIR_SIZE]; /* "COJOB/JOB". */
    struct claim_what what;
    char *path;   /* As in struct claim, which takes it over. */
    int64_t rung; /* -1 if unknown. */
    bool has_uid; /* 'uid' is valid. */
    uint64_t uid;
    unsigned int gpus; /* 0 if unknown. */
};

/* Adds a claim, which ends by tracker_unclaim() or when the claimed thing no
 * longer exists.  Returns false if there are too many jobs. */
bool tracker_claim(struct tracker *, struct claim_request *);

/* Returns false if there is no such claim. */
bool tracker_unclaim(struct tracker *, const struct claim_request *);

/* A shim has refused 'n' entries to connections of no job: of the user with
 * most of these (connections.h). */
void tracker_refused(struct tracker *, uint64_t n);

struct registry *tracker_registry(struct tracker *);

/* Returns the numbers of scans and questions. */
struct json *tracker_to_json(const struct tracker *);

/* What keeps the kernel's maps of claims as the registry is, for a bench.
 * Claims stay in the kernel when it is destroyed; after
 * kernel_claims_touch(), the registry or a slot has changed. */
#define KERNEL_CLAIMS_GAP_MS 10

struct kernel_claims *kernel_claims_create(struct identity *,
                                           struct registry *);
void kernel_claims_destroy(struct kernel_claims *);
void kernel_claims_touch(struct kernel_claims *);
void kernel_claims_run(struct kernel_claims *, long long now);

#endif /* agent/identify/tracker.h */
