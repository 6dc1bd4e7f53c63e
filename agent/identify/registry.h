/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REGISTRY_H
#define REGISTRY_H 1

/* Jobs with a process on this host.
 *
 * The agent learns about a job from three sources: its cgroups from the cgroup
 * tree, its progress from its datagrams or log, and its traffic from the shim.
 * The registry joins them.
 *
 * The tracker adds what it finds in each scan of the cgroup tree, so that the
 * registry has exactly the jobs of the last scan, each with a claim of
 * CLAIM_CGROUP:
 *
 *    registry_begin(r);
 *    ...registry_see(r, "asha/t0", inode, uid, now) for each...
 *    registry_end(r);
 *
 * Several sources know the job of a process: its launcher, its cgroup, its
 * environment.  Some are more reliable than others.  A claim is the statement
 * of one source about one thing; the registry keeps all claims, and if they
 * differ, the source of highest precedence decides.  Claims of other sources
 * than the tree stay until they are removed, and a job exists as long as it
 * has one:
 *
 *    struct claim_what what = { CLAIMS_PROCESS, pid };
 *
 *    registry_claim(r, CLAIM_LAUNCHER, "asha/t0", &what, NULL, now);
 *    claim = registry_best_claim(r, &what, NULL);
 *
 * A claim of a cgroup includes the cgroups below it, a claim of a process its
 * descendants: a lookup tries those above too.
 *
 * A job has one user on a host, so that no user joins the job of another by
 * its name, see registry_may_join().  The user of a registered job
 * (membership.h) is the one that its launcher has named, else the one of the
 * processes in its cgroup; the user of a job without registration is the user
 * of its first process, or the owner that the controller has sent.  If the
 * user of a job changes, claims by environment or port of other users end:
 * they were squatting.
 *
 * A user can name any number of jobs.  So each user but root has at most
 * REGISTRY_MAX_UID_JOBS of them, root the same number without registration.
 * When the registry or the user's quota is full, a registered job, or one of a
 * user with fewer, takes the place of one without registration: of the user
 * with the most of them.  Claims of processes are shared among users by
 * base/shares.h, which has the rule by which no user fills a table for
 * others.  A user is a uid there; processes of a pod (agent/launch/pod-path.h)
 * take any uid, so there it is the pod.  What is refused is counted.
 *
 * The registry owns its jobs; a "struct job *" is valid until
 * registry_remove() or until registry_end() removes it.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/name.h"
#include "base/shares.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "wire/progress-datagram.h"
#include "wire/shim-protocol.h"

struct iterations;
struct json;
struct log_reader;
struct pairs_remote;
struct process;
struct waiting;

/* Number of job slots: the slots of a shim without 0, no job, and without the
 * last one, because its tag may be reserved (wire/slot-tag.h). */
#define REGISTRY_MAX_JOBS 1022

/* Number of jobs that one user may have. */
#define REGISTRY_MAX_UID_JOBS 128

#define USERS_POD_SIZE 37

/* A user of this host, and what it has of the agent's tables: valid while it
 * has an entry, and until the next users_run(). */
struct user {
    struct hmap_node node;        /* In struct users's 'all'. */
    uint64_t uid;                 /* 0 for a pod. */
    char pod[USERS_POD_SIZE];     /* Its id, or "". */
    struct shares_user questions; /* Processes, in questions.c. */
    struct shares_user claims;    /* Of processes, in registry.c. */
    uint64_t n_other;     /* Refused to its jobs, or to connections of no job,
                           * by a shim or tracker.c. */
    size_t n_connections; /* Of no job, as of the last count. */
    uint64_t n_refused;   /* All that was, at the last run. */
    long long refused_at; /* Time of the last increase of 'n_refused', 0 if not
                           * lately. */
    struct ovs_list waiting, idle; /* Of questions.c. */
};

struct users {
    struct hmap all;
    struct shares questions, claims;
    const char *cgroup_mount; /* Of version 2, or NULL. */
};

/* Returns the user of process 'pid', which runs as 'uid'; of the uid if 'pid'
 * is 0. */
struct user *users_find(struct users *, uint64_t uid, pid_t pid);

/* Forgets those that have no entries and were refused none lately. */
void users_run(struct users *, long long now);

/* Returns [{"uid" or "pod", "entries", "refused"}...] of users that were
 * refused one lately, at most USERS_MAX_REPORTED. */
#define USERS_MAX_REPORTED 16
struct json *users_to_json(const struct users *);

/* Sources of a claim, in order of decreasing precedence. */
enum claim_source {
    CLAIM_REGISTRATION, /* The job itself, or the program that runs
                         * the search. */
    CLAIM_LAUNCHER,     /* A hook of Slurm or Kubernetes. */
    CLAIM_CGROUP,       /* Its cgroup in the tree of jobs. */
    CLAIM_ENVIRONMENT   /* Environment of the process. */
};

enum claim_kind { CLAIMS_CGROUP, CLAIMS_NETNS, CLAIMS_PROCESS };

struct claim_what {
    enum claim_kind kind;
    uint64_t id; /* Inode of the directory of the cgroup or
                  * of the namespace, or process id; never 0. */
};

static inline uint32_t
claim_what_hash(const struct claim_what *what)
{
    return hash_add64(what->kind, what->id);
}

static inline bool
claim_what_equals(const struct claim_what *a, const struct claim_what *b)
{
    return a->kind == b->kind && a->id == b->id;
}

struct claim {
    struct hmap_node node; /* In struct registry's 'claims', by 'what'. */
    struct claim_what what;
    enum claim_source source;
    struct job *job;
    char *path;        /* Path of the cgroup or namespace, by which
                        * its end is detected; NULL if unknown, and
                        * for processes. */
    uint64_t born;     /* Start time of the process, clock ticks
                        * since boot; 0 if unknown. */
    uid_t real;        /* Real user of the process. */
    unsigned int gpus; /* That its launcher has given it, 0 if
                        * unknown.  See registry_set_gpus(). */
    bool has_uid;      /* 'uid' is valid. */
    uint64_t uid;      /* User of the process, or the one that the
                        * launcher has named. */
    struct user *user; /* Of the process; NULL for other things. */
};

/* Returns true if claims of this source register processes, see
 * wire/membership.h. */
static inline bool
claim_source_is_registered(enum claim_source source)
{
    return source <= CLAIM_CGROUP;
}

extern const char *const claim_source_names[];
extern const char *const claim_kind_names[];

char *claim_what_parse(const char *kind, const char *text,
                       const char *cgroup_mount, struct claim_what *,
                       char **pathp);

/* A job as last reported to the controller. */
struct job_reported {
    size_t hash;    /* Of all but counters. */
    uint64_t bytes; /* Sent and received. */
    bool moved;     /* These were more than in the report before. */
    long long at;   /* time_msec() of the report, 0 before the first. */
};

struct job {
    struct hmap_node node;      /* In struct registry's 'jobs', by name. */
    char *name;                 /* "COJOB/JOB". */
    uint64_t cgroup;            /* Inode of its directory in the tree, 0 if
                                 * the job is known by claims only. */
    bool seen;                  /* Found in the current scan of the tree. */
    size_t n_claims;            /* Number of its claims. */
    size_t n_registered;        /* Claims of 'n_claims' from a source that
                                 * claim_source_is_registered(). */
    bool has_uid;               /* 'uid' is valid. */
    uint64_t uid;               /* User of its processes. */
    enum claim_source uid_source;       /* Source of 'uid', if that is valid;
                                         * CLAIM_CGROUP also if the controller
                                         * has sent it. */
    int64_t rung;               /* From its launcher, -1 if unknown. */
    unsigned int gpus;          /* On this host, the sum of its claims. */
    long long since;            /* time_msec() when the job was found. */
    long long empty_since;      /* time_msec() since when it has no process,
                                 * 0 while it has one. */

    /* Traffic since 'since', bytes of frames.  Written by agent.c from the
     * shim's counters; never decreases. */
    uint64_t tx_bytes, rx_bytes;

    /* What was counted, and what its processes have reported of RDMA, of which
     * the larger one is the traffic: reports may include packets. */
    uint64_t counted_tx_bytes, counted_rx_bytes;
    uint64_t reported_tx_bytes, reported_rx_bytes;

    /* Rate in bit/s, and the value of 'tx_bytes' at its last measurement.
     * Written by links.c. */
    double tx_bps;
    uint64_t sampled_tx_bytes;

    struct job_reported reported; /* Written by telemetry.c. */

    /* Bytes sent to each remote address.  Written by links.c. */
    struct pairs_remote *remotes;
    size_t n_remotes;

    /* Burst statistics of the direction with more bytes.  Written by agent.c;
     * zeros if unknown. */
    struct shim_burst_stats bursts;

    /* Iterations counted from the job's traffic; NULL before the first traffic
     * and if the job reports its progress.  Written and freed by agent.c. */
    struct iterations *counted;

    /* How long it waits for the network; NULL before the first traffic, and
     * behind a shim.  Written and freed by agent.c. */
    struct waiting *waiting;

    struct log_reader *log;     /* Written and freed by log-readers.c. */
    uint64_t reports_refused;   /* Progress reports of processes that may not
                                 * report for it.  Written by agent.c. */
    bool has_progress;          /* True after the first progress. */
    bool counts_calls;          /* 'progress' is counted by its calls of
                                 * collectives. */
    bool reports_progress;      /* By datagrams; then its log is ignored. */
    struct progress progress;   /* Last progress. */
};

/* What the registry calls, with its 'aux'; each function may be NULL. */
struct registry_class {
    void (*begin)(struct job *, void *aux); /* For each new job. */
    void (*end)(struct job *, void *aux);   /* Before it is removed. */

    /* The user or the registration of the job has changed. */
    void (*changed)(struct job *, void *aux);

    /* Stores the user that owns the job, by the controller.  Returns false if
     * that is unknown. */
    bool (*owner)(const char *name, uint64_t *, void *aux);

    /* Returns the slot of the job called 'name', or 0.  Called by tracker.c,
     * and not NULL there. */
    uint16_t (*slot)(const char *name, void *aux);
};

struct registry {
    struct registry_class class;
    void *aux;
    size_t n_process_claims; /* Registered ones of processes. */
    struct users users;
    struct hmap jobs;           /* Contains struct job. */
    struct hmap claims;         /* Contains struct claim. */
    bool has_lost;              /* A job has lost claims of other users.
                                 * Cleared by tracker.c. */
    uint64_t n_refused;         /* Jobs that were refused or displaced,
                                 * processes that named a job of another
                                 * user, and copies of another's connection,
                                 * counted at each attempt. */
};

void registry_init(struct registry *);
void registry_uninit(struct registry *);

void registry_begin(struct registry *);
struct job *registry_see(struct registry *, const char *name, uint64_t cgroup,
                         uint64_t, long long now);
void registry_leave(struct registry *, struct job *);
void registry_end(struct registry *);
void registry_remove(struct registry *, struct job *);

/* Users. */
bool registry_is_registered(const struct job *);
bool registry_may_join(const struct registry *, const char *name, uint64_t,
                       bool host_root);
void registry_set_uid(struct registry *, struct job *, enum claim_source,
                      uint64_t);
void registry_set_owner(struct registry *, struct job *, uint64_t);

struct job *registry_claim(struct registry *, enum claim_source,
                           const char *name, const struct claim_what *,
                           const uint64_t *uid, long long now);
bool registry_unclaim(struct registry *, enum claim_source, const char *name,
                      const struct claim_what *);
void registry_set_gpus(struct registry *, struct claim *, unsigned int gpus);
void registry_drop_claim(struct registry *, struct claim *);
struct claim *registry_find_claim(const struct registry *, enum claim_source,
                                  const struct claim_what *);
const struct claim *registry_best_claim(const struct registry *,
                                        const struct claim_what *,
                                        const struct claim *best);
const struct claim *registry_best_of_process(const struct registry *,
                                             const struct process *,
                                             const struct claim *best);

struct job *registry_find(const struct registry *, const char *name);

#endif /* agent/identify/registry.h */
