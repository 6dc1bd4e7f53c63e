/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REGISTRY_H
#define REGISTRY_H 1

/* The jobs that have a process on this host.
 *
 *
 * Motivation
 * ==========
 *
 * What the agent knows of a job comes from three sides: its cgroups from the
 * tree, how far it is from its datagrams, and its traffic from the data plane.
 * The registry is where these meet.
 *
 *
 * Usage
 * =====
 *
 * The tracker repeats what it sees in the cgroup tree, so that the registry
 * always holds exactly the jobs and cgroups of the last look:
 *
 *    registry_begin(r);
 *    ...registry_see(r, "asha/t0", inode, below, now) for each...
 *    registry_end(r, gone, aux);
 *
 *    job = registry_job_of_cgroup(r, cgroup_id);
 *
 * What other sources say comes as claims (claim.h), which stay until they are
 * taken back; a job lives as long as it is in the tree or has a claim:
 *
 *    registry_claim(r, CLAIM_LAUNCHER, "asha/t0", &what, now);
 *    job = registry_owner(r, whats, n, NULL);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The registry owns its jobs; a "struct job *" is valid until
 * registry_remove() or a registry_end() that found it gone.  Main thread
 * only. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/identify/claim.h"
#include "wire/progress-datagram.h"
#include "openvswitch/hmap.h"
#include "wire/shim-protocol.h"

struct iterations;

/* As many as the data plane has slots for. */
#define REGISTRY_MAX_JOBS 1023

struct job {
    struct hmap_node node;      /* In struct registry's 'jobs', by name. */
    char *name;                 /* "COJOB/JOB". */
    uint64_t cgroup;            /* Inode of its directory in the tree, 0 if it
                                 * is known by claims alone. */
    bool seen;                  /* In the look at the tree that is going on. */
    size_t n_claims;            /* That name it. */
    bool has_owner;             /* 'owner' is known. */
    uid_t owner;                /* Whose the first of its processes was that
                                 * was known by its environment. */
    int64_t rung;               /* As its launcher said, -1 if none did. */
    long long since;            /* time_msec() of the first look. */
    long long empty_since;      /* time_msec() since when it has no process, 0
                                 * while it has one. */

    /* Its traffic since 'since', bytes of frames.  Written by whoever hears
     * from the data plane; never falls. */
    uint64_t tx_bytes, rx_bytes;

    /* Bits a second that it sends, and 'tx_bytes' when that was found out.
     * Written by links.h. */
    double tx_bps;
    uint64_t sampled_tx_bytes;

    /* Its bursts, of the direction with more bytes.  Written by the same;
     * zeros while nothing is known. */
    struct shim_burst_stats bursts;

    /* Iterations counted from the job's traffic; NULL before the first traffic
     * and if the job reports its progress.  Written and freed by agent.c. */
    struct iterations *counted;

    bool has_progress;          /* False until the first was told. */
    bool tells;                 /* It does so itself, by datagrams. */
    struct progress progress;   /* The latest. */
};

/* A cgroup and whose it is: the job's own and those below it. */
struct registry_cgroup {
    struct hmap_node node;      /* In struct registry's 'cgroups', by 'id'. */
    uint64_t id;
    struct job *job;
    enum claim_source source;   /* That says so. */
    bool seen;                  /* In the look that is going on. */
};

typedef void registry_job_func(struct job *, void *aux);

struct registry {
    registry_job_func *begin;   /* Called with 'aux' for each new job; may be
                                 * null. */
    void *aux;
    size_t n_told_processes;    /* Claims of processes by registration or
                                 * launcher. */
    struct hmap jobs;           /* Contains struct job. */
    struct hmap cgroups;        /* Contains struct registry_cgroup. */
    struct hmap claims;         /* Contains struct claim. */
    unsigned int n_changes;     /* Of the claims, so far. */
    uint64_t n_refused;         /* Jobs beyond REGISTRY_MAX_JOBS, each look. */
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

struct job *registry_owner(const struct registry *, const struct claim_what *,
                           size_t n, enum claim_source *sourcep);
struct job *registry_find(const struct registry *, const char *name);
struct job *registry_job_of_cgroup(const struct registry *, uint64_t cgroup);

#endif /* agent/identify/registry.h */
