/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REGISTRY_H
#define REGISTRY_H 1

/* Jobs with a process on this host.
 *
 *
 * Motivation
 * ==========
 *
 * The agent learns about a job from three sources: its cgroups from the cgroup
 * tree, its progress from its datagrams or log, and its traffic from the shim.
 * The registry joins them.
 *
 *
 * Usage
 * =====
 *
 * The tracker adds what it finds in each scan of the cgroup tree, so that the
 * registry has exactly the jobs and cgroups of the last scan:
 *
 *    registry_begin(r);
 *    ...registry_see(r, "asha/t0", inode, below, now) for each...
 *    registry_end(r, gone, aux);
 *
 * Other sources add claims (claim.h), which stay until they are removed.  A
 * job exists as long as it is in the tree or has a claim:
 *
 *    registry_claim(r, CLAIM_LAUNCHER, "asha/t0", &what, now);
 *    job = registry_owner(r, whats, n, NULL);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The registry owns its jobs; a "struct job *" is valid until
 * registry_remove() or until registry_end() removes it.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/identify/claim.h"
#include "wire/progress-datagram.h"
#include "openvswitch/hmap.h"
#include "wire/shim-protocol.h"

struct iterations;

/* Number of job slots of the shim. */
#define REGISTRY_MAX_JOBS 1023

struct job {
    struct hmap_node node;      /* In struct registry's 'jobs', by name. */
    char *name;                 /* "COJOB/JOB". */
    uint64_t cgroup;            /* Inode of its directory in the tree, 0 if
                                 * the job is known by claims only. */
    bool seen;                  /* Found in the current scan of the tree. */
    size_t n_claims;            /* Number of its claims. */
    bool has_owner;             /* 'owner' is valid. */
    uid_t owner;                /* User of its first process that was
                                 * attributed by its environment. */
    int64_t rung;               /* From its launcher, -1 if unknown. */
    long long since;            /* time_msec() when the job was found. */
    long long empty_since;      /* time_msec() since when it has no process,
                                 * 0 while it has one. */

    /* Traffic since 'since', bytes of frames.  Written by agent.c from the
     * shim's counters; never decreases. */
    uint64_t tx_bytes, rx_bytes;

    /* Rate in bit/s, and the value of 'tx_bytes' at its last measurement.
     * Written by links.c. */
    double tx_bps;
    uint64_t sampled_tx_bytes;

    /* Burst statistics of the direction with more bytes.  Written by agent.c;
     * zeros if unknown. */
    struct shim_burst_stats bursts;

    /* Iterations counted from the job's traffic; NULL before the first traffic
     * and if the job reports its progress.  Written and freed by agent.c. */
    struct iterations *counted;

    bool has_progress;          /* True after the first progress. */
    bool reports_progress;      /* By datagrams; then its log is ignored. */
    struct progress progress;   /* Last progress. */
};

/* A cgroup of a job: its own or one below it. */
struct registry_cgroup {
    struct hmap_node node;      /* In struct registry's 'cgroups', by 'id'. */
    uint64_t id;
    struct job *job;
    enum claim_source source;   /* Source of this assignment. */
    bool seen;                  /* Found in the current scan. */
};

typedef void registry_job_func(struct job *, void *aux);

struct registry {
    registry_job_func *begin;   /* Called with 'aux' for each new job; may
                                 * be NULL. */
    void *aux;
    size_t n_process_claims;    /* Claims of processes by registration or
                                 * launcher. */
    struct hmap jobs;           /* Contains struct job. */
    struct hmap cgroups;        /* Contains struct registry_cgroup. */
    struct hmap claims;         /* Contains struct claim. */
    uint64_t n_refused;         /* Jobs beyond REGISTRY_MAX_JOBS, counted in
                                 * each scan. */
};

void registry_init(struct registry *);
void registry_uninit(struct registry *);

void registry_begin(struct registry *);
struct job *registry_see(struct registry *, const char *name, uint64_t cgroup,
                         bool below, long long now);
void registry_end(struct registry *, registry_job_func *gone, void *aux);
void registry_remove(struct registry *, struct job *);

struct job *registry_claim(struct registry *, enum claim_source,
                           const char *name, const struct claim_what *,
                           long long now);
bool registry_unclaim(struct registry *, enum claim_source, const char *name,
                      const struct claim_what *);
void registry_drop_claim(struct registry *, struct claim *);
void registry_see_claimed(struct registry *, const struct claim *,
                          uint64_t cgroup);
struct claim *registry_find_claim(const struct registry *, enum claim_source,
                                  const struct claim_what *);
const struct claim *registry_best_claim(const struct registry *,
                                        const struct claim_what *);

struct job *registry_owner(const struct registry *, const struct claim_what *,
                           size_t n, enum claim_source *sourcep);
struct job *registry_find(const struct registry *, const char *name);

#endif /* agent/identify/registry.h */
