/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLUSTER_H
#define CLUSTER_H 1

/* What the controller knows: hosts, cojobs, jobs, stages, in memory.
 *
 *
 * Motivation
 * ==========
 *
 * The intent database says what shall run, telemetry says what does, the hosts
 * database says what hosts have applied.  An order needs all three at once
 * and must survive that any of them is away, so they meet here.  Nothing in
 * this file decides anything.
 *
 *
 * Usage
 * =====
 *
 * The intent is given as a whole each time that it changes; what is not
 * given again is gone:
 *
 *    cluster_intent_begin(c);
 *    cojob = cluster_put_cojob(c, "asha", 1.0, true);
 *    job = cojob_put_job(c, cojob, "t0", true, began, model_bytes);
 *    job_put_worker(c, job, "h0", ROLE_WORKER);
 *    stage = cojob_put_stage(cojob, 0, began, ended, iterations);
 *    stage_put_job(stage, job);
 *    cluster_intent_end(c);
 *
 * Telemetry arrives through demand.h.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The cluster owns everything; pointers to cojobs, jobs and stages live until
 * cluster_intent_end(), pointers to hosts until the cluster ends.  Main
 * thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "controller/model/job-progress.h"
#include "controller/model/overrides.h"
#include "controller/model/shim-counters.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "openvswitch/shash.h"
#include "simap.h"

/* A host's directions: ports "HOST:tx" and "HOST:rx". */
enum direction { DIR_TX, DIR_RX, N_DIRS };

enum role { ROLE_WORKER, ROLE_SERVER, ROLE_PEER, N_ROLES };

/* Assumed of a host that has not told its capacity yet, bits per second. */
#define CLUSTER_UNKNOWN_BPS 1e9

/* An agent puts an order in force at once, and tells it 200 ms later.  Who has
 * not moved on for so long, with another order to go to, is late. */
#define CLUSTER_LATE_MS 3000

/* Ended stages that are remembered. */
#define CLUSTER_MAX_ENDED 10000

struct host {
    char *name;
    int index;                  /* Dense, for ports of an order problem. */

    /* From the hosts database. */
    bool reports;               /* Has a Host_Reported row. */
    int64_t applied;            /* Version that the host has put in force; the
                                 * telemetry's is newer. */
    int64_t wanted;             /* Version of its Host_Wanted row. */
    long long in_step;          /* time_msec() when 'applied' last was what is
                                 * wanted, or changed. */

    /* From the intent. */
    bool named;                 /* A worker of a live job is on it. */

    /* From telemetry, or from Host_Reported as long as there is none. */
    bool connected;             /* Its agent is connected now. */
    char *state;                /* "ordered", "fair" or "". */
    bool bypass;                /* The kernel forwards, without order. */
    struct simap ports;         /* Port name -> kbit/s. */
    double capacity_bps;        /* Of all ports, 0 if not known. */
    uint64_t ip_bytes;          /* Sent since the agent began, that could be
                                 * tagged ... */
    uint64_t default_bytes;     /* ... and that belonged to no job. */
    int64_t queued_bytes;       /* That wait in its shim, -1: not told. */
    struct shim_counters shim;  /* Of its shim, for metrics. */
    uint64_t moved[N_DIRS];     /* By jobs, as far as it was counted ... */
    uint64_t stored[N_DIRS];    /* ... and is in the history. */
};

/* Last progress report from one source: the agent of a host, or clients of
 * the REST API. */
struct progress_source {
    int64_t iteration;          /* Last iteration reported, -1 if none. */
    int64_t sampled;            /* Iteration of the last metric, -1 if none. */
};

#define PROGRESS_SOURCE_NONE ((struct progress_source) { -1, -1 })

/* What one job moves through one host's link. */
struct job_traffic {
    struct host *host;
    bool known;                 /* 'bytes' are a base to count from. */
    int64_t at;                 /* Epoch ms of the last telemetry ... */
    uint64_t bytes[N_DIRS];     /* ... and its counters. */
    struct progress_source progress;    /* As the host's agent reported. */
    int64_t counted;            /* As its agent counted last, -1 if it could
                                 * not; ... */
    int64_t counted_before;     /* ... and by that agent's predecessors. */

    /* Measurement of bytes per iteration. */
    int64_t mark_iteration;     /* Where the running measurement began, -1 if
                                 * none runs. */
    uint64_t mark_bytes[N_DIRS];
    double per_iteration[N_DIRS];       /* Bytes, moving average. */
    double measured;            /* Iterations behind the average, 0: none. */

    /* Its bursts as the host sees them: seconds from one to the next, 0 if
     * nothing is known, bytes, and the share of the period that one lasts. */
    double burst_period;
    uint64_t burst_bytes;
    double burst_duty;

    int workers[N_ROLES];       /* From the intent. */
};

struct job {
    struct cojob *cojob;
    char *name;
    char *full_name;            /* "COJOB/JOB". */
    bool seen;                  /* By cluster_intent_end(). */
    bool live;                  /* Neither it nor its cojob has ended. */
    int64_t began;              /* Epoch ms; another time, another job. */
    int64_t model_bytes;        /* 0 if not known. */
    int64_t iteration;          /* The furthest that any host told, or if
                                 * none did, the least that one counted; or
                                 * -1. */
    bool counted;               /* It is counted, and may be off by a few. */
    struct progress_source rest;        /* As REST clients reported. */
    struct job_progress progress;       /* Its pace and its metric. */
    double sent;                /* Bytes, all hosts, in 'stage'. */
    struct shash traffic;       /* Host name -> struct job_traffic. */
    int workers[N_ROLES];       /* Of all hosts together; 0 once it has ended,
                                 * as on each of them. */
    bool placed;                /* Its hosts were given once. */
    struct stage *stage;        /* The running stage that it is in, or the
                                 * last one, or NULL. */
    struct stage *previous;     /* The one before, or NULL. */

    /* What decide.h says of it. */
    int level;                  /* -1 if it never had one. */
    int rank;                   /* In the last order, among jobs. */
    long long level_since;      /* time_msec() of the last change. */

    /* What overrides.h says of it. */
    enum override_kind override;
    int64_t override_id;        /* 0 if there is none. */
    bool forced;                /* Its rank is by an override that has ended:
                                 * no reason to keep it. */
};

struct stage {
    struct ovs_list node;       /* In cojob's 'stages' or cluster's 'ended'. */
    struct cojob *cojob;        /* NULL once in cluster's 'ended'. */
    char *cojob_name;
    int rung;
    int64_t began, ended;       /* Epoch ms; 'ended' is 0 while it runs. */
    int64_t iterations;         /* That its jobs must reach. */
    int rank;                   /* In the last order, -1 before the first. */
    enum override_kind override;
    bool seen;                  /* By cluster_intent_end(). */
    bool told_begin, told_end;  /* There is an event for it. */
    bool stored;                /* In the history. */
    int64_t worked_on;          /* Epoch ms when somebody may have worked on
                                 * it, 0 before the first look: silence.h. */
    bool silent;                /* And that is long ago. */
    struct job **jobs;          /* Empty once in cluster's 'ended'. */
    size_t n_jobs, allocated_jobs;
    struct shash moved;         /* Host name -> struct stage_bytes. */
};

struct stage_bytes {
    struct host *host;
    uint64_t bytes[N_DIRS];     /* Moved by the stage's jobs. */
};

struct cojob {
    char *name;
    bool seen;                  /* By cluster_intent_end(). */
    bool running;
    double weight;
    struct shash jobs;          /* Name -> struct job. */
    struct ovs_list stages;     /* Running ones. */
    int64_t worked_on;          /* As of a stage, */
    bool silent;                /* and this too. */
};

struct cluster {
    struct shash hosts;         /* Name -> struct host. */
    struct shash cojobs;        /* Name -> struct cojob. */
    struct shash jobs;          /* "COJOB/JOB" -> struct job. */
    struct ovs_list ended;      /* Of struct stage, the last to end first. */
    size_t n_ended;
    int n_hosts;                /* Next 'index' of a host. */
    unsigned int changes;       /* Grows when an order may have to change. */
    unsigned int minor;         /* The same, but it can wait for a moment: no
                                 * stage that runs is concerned. */
    uint32_t digest;            /* Of the intent: stages-digest.h. */
    unsigned int samples;       /* Incremented for each new metric sample of
                                 * a job. */
};

struct cluster *cluster_create(void);
void cluster_destroy(struct cluster *);

/* The intent. */
void cluster_intent_begin(struct cluster *);
struct cojob *cluster_put_cojob(struct cluster *, const char *name,
                                double weight, bool running);
struct job *cojob_put_job(struct cluster *, struct cojob *, const char *name,
                          bool running, int64_t began, int64_t model_bytes);
void job_put_worker(struct cluster *, struct job *, const char *host,
                    enum role);
struct stage *cojob_put_stage(struct cojob *, int rung, int64_t began,
                              int64_t ended, int64_t iterations);
void stage_put_job(struct stage *, struct job *);
void cluster_intent_end(struct cluster *);

/* Hosts and traffic. */
struct host *cluster_get_host(struct cluster *, const char *name);
void host_set_ports(struct cluster *, struct host *, const struct simap *);
double host_capacity(const struct host *);
void host_set_wanted(struct host *, int64_t version);
void host_set_applied(struct host *, int64_t version);
bool host_is_late(const struct host *);
struct job_traffic *job_get_traffic(struct job *, struct host *);

/* Stages. */
bool stage_is_running(const struct stage *);
struct stage **cluster_running_stages(const struct cluster *, size_t *np);
char *stage_to_string(const struct stage *);
struct stage_bytes *stage_get_bytes(struct stage *, struct host *);

#endif /* controller/model/cluster.h */
