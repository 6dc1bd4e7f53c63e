/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLUSTER_H
#define CLUSTER_H 1

/* The controller's model in memory: hosts, cojobs, jobs, stages.
 *
 * The intent database has the stages that searches have announced, telemetry
 * has the progress and traffic of jobs, and the hosts database has what each
 * host has applied.  Computing an order needs all three at once and must work
 * while any of them is disconnected, so this module keeps a copy of them.  It
 * makes no decision.
 *
 * The intent is copied as a whole each time that it changes; what is not added
 * again is removed:
 *
 *    cluster_intent_begin(c);
 *    cojob = cluster_put_cojob(c, "asha", 1.0, true);
 *    cojob_set_owner(c, cojob, "ann", 1000);
 *    job = cojob_put_job(c, cojob, "t0", true, began, model_bytes);
 *    job_put_worker(c, job, "h0", ROLE_WORKER);
 *    stage = cojob_put_stage(c, cojob, 0, began, ended, iterations);
 *    stage_put_job(stage, job);
 *    cluster_intent_end(c);
 *
 * demand.h adds telemetry.
 *
 * The cluster owns everything; pointers to cojobs, jobs and stages live until
 * cluster_intent_end(), pointers to hosts as long as the cluster.  Main thread
 * only. */

#include <stdbool.h>
#include <stdint.h>

#include "controller/model/instant.h"
#include "controller/model/job-progress.h"
#include "controller/model/overrides.h"
#include "controller/model/progress-bound.h"
#include "controller/model/shim-counters.h"
#include "controller/model/stage-start.h"
#include "controller/model/stage-trials.h"
#include "controller/model/telemetry-report.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "openvswitch/shash.h"
#include "order/problem/announcement.h"
#include "order/problem/lateness.h"
#include "simap.h"
#include "wire/membership.h"

struct fabric;
struct hostsrec_host_reported;
struct hostsrec_host_wanted;
struct owner;
struct unannounced;

/* Directions of a host's uplink: ports "HOST:tx" and "HOST:rx". */
enum direction { DIR_TX, DIR_RX, N_DIRS };

enum role { ROLE_WORKER, ROLE_SERVER, ROLE_PEER, N_ROLES };

/* Capacity in bit/s of a host that has not reported its ports yet. */
#define CLUSTER_UNKNOWN_BPS 1e9

/* A connected host is lagging if it has not applied the wanted version within
 * this time.  An agent applies an order at once and reports it within 200 ms,
 * so that a host that lags has a problem. */
#define CLUSTER_LAG_MS 3000

/* Time for which a host has no rows after one of them was too large. */
#define CLUSTER_OVERSIZED_MS 60000

/* Number of ended stages that are kept. */
#define CLUSTER_MAX_ENDED 10000

struct host {
    char *name;
    struct shash_node *label;   /* Its first label in the cluster's 'labels';
                                 * NULL if the name has no dot. */
    struct host *alike;         /* Next one with the same label. */
    int index;                  /* Number of the host, for demand_port(). */
    int leaf;                   /* In the cluster's fabric, -1 if unknown. */

    /* From the hosts database. */
    const struct hostsrec_host_reported *reported; /* Row, NULL without. */
    const struct hostsrec_host_wanted *desired;    /* Row, NULL without. */
    bool reports;               /* Has a row that is not to be deleted. */
    int64_t applied;            /* Version of the order that the host has
                                 * applied, by telemetry if connected. */
    int64_t wanted;             /* Version of 'order', or of its Host_Wanted
                                 * row. */
    int64_t applied_generation; /* Generation of 'applied', -1 if unknown. */
    int64_t wanted_generation;  /* Generation of 'wanted'. */
    char *order;                /* Its row without the version, see
                                 * host-wanted.h; NULL before this leader has
                                 * one.  Written by hosts-db.h. */
    long long synced_at;        /* time_msec() when 'applied' last reached
                                 * 'wanted' or last changed.
                                 * host_lag_ms() measures from here. */

    /* From the intent. */
    bool named;                 /* A live job has a process on it. */
    bool removing;              /* Its rows are to be deleted, unless its
                                 * agent connects.  Written by hosts-db.h. */
    long long oversized_at;     /* time_msec() when its row of Host_Reported
                                 * was last too large and dropped, 0 if it
                                 * never was. */
    bool revoked;               /* By an operator: its connections, rows and
                                 * keys end, and it gets no others.  Written
                                 * by overrides_apply(). */

    bool later;          /* Its agent is of a later version. */
    long long later_at;  /* time_msec() of a message of a later
                          * protocol, 0 without. */
    long long silent_at; /* time_msec() at which its connection lived
                          * and was silent, 0 if it reports. */
    char *twins;         /* Addresses that last reported as this host
                          * in turns, or NULL. */
    long long twins_at;  /* time_msec() of the last turn. */
    int n_turns;         /* Turns in a row, TWIN_MS apart at most. */

    /* From telemetry; 'state' and 'ports' from Host_Reported until the agent
     * connects. */
    bool connected;             /* Its agent is connected. */
    bool certified;             /* With a certificate of its own. */
    uint32_t ip;                /* IPv4 address of its agent, host byte order;
                                 * 0 if unknown. */
    long long reported_at;      /* time_msec() of the last telemetry, 0 before
                                 * the first. */
    int64_t clock_ms;           /* Its clock minus the controller's at that
                                 * time, less the delay of the message; 0 if
                                 * unknown. */
    int64_t generation;         /* Newest that its agent has seen, -1 if it
                                 * has seen none. */
    char *state;                /* "ordered", "fair" or "". */
    bool bypass;                /* The kernel forwards instead of the shim. */
    struct simap ports;         /* Port name -> kbit/s. */
    double capacity_bps;        /* Sum of the ports, 0 if unknown. */
    uint64_t ip_bytes;          /* IP bytes sent since the agent started. */
    uint64_t default_bytes;     /* Part of 'ip_bytes' of no job. */
    uint64_t jobs_refused;      /* Jobs that its agent has refused, because a
                                 * user or the host has too many or a process
                                 * named the job of another user, since the
                                 * agent started. */
    long long refused_at;       /* time_msec() when 'jobs_refused' last grew, 0
                                 * if it never did. */
    struct telemetry_user users[TELEMETRY_MAX_USERS]; /* With more than their
                                                       * shares. */
    size_t n_users;
    int64_t queued_bytes;       /* Bytes queued in its shim, -1 if unknown. */
    struct shim_counters shim;  /* Counters of its shim, for metrics. */
    uint64_t moved[N_DIRS];     /* Bytes of jobs since the controller
                                 * started. */
    uint64_t carried[N_DIRS];   /* Those of all, by the cards' counters. */
    uint64_t counted[N_DIRS];   /* The cards' counters, 0 if unknown. */
    uint64_t stored[N_DIRS];    /* Part of 'moved' that the history has. */
    uint64_t stored_carried[N_DIRS]; /* The same of 'carried'. */
};

/* Last progress report from one source: the agent of a host, or clients of
 * the REST API. */
struct progress_source {
    int64_t iteration;          /* Last iteration that counts, -1 if none. */
    int64_t skipped;            /* Iterations by which its reports are ahead:
                                 * jumps, which do not count. */
    int64_t sampled;            /* Iteration of the last metric, -1 if none. */
    double others;              /* Bytes that other hosts had moved at its last
                                 * report. */
    double base;                /* The same when the job had done... */
    int64_t base_iteration;     /* ...this iteration. */
};

#define PROGRESS_SOURCE_NONE ((struct progress_source){ -1, 0, -1, 0, 0, -1 })

/* Why what a host reports of a job counts, see host-word.h. */
enum host_standing {
    HOST_UNKNOWN, /* It does not, or its intent has it so. */
    HOST_FIRST,   /* The first one of a job without places. */
    HOST_NAMED,   /* The others send to it. */
};

/* Traffic of one job on one host. */
struct job_traffic {
    struct host *host;
    enum host_standing standing;
    double moved;               /* Bytes sent and received since the job
                                 * began. */
    bool known;                 /* 'bytes' is a base for differences. */
    long long at;               /* time_msec() of the last telemetry, 0 before
                                 * the first. */
    bool paused;                /* The last telemetry had no new bytes. */
    uint64_t bytes[N_DIRS];     /* Counters of the last telemetry. */
    double busy, waited;        /* Counters of the last telemetry, seconds. */
    int gpus;                   /* By its launcher, the most; 0 if unknown. */
    uint64_t reports_refused;   /* Refused progress reports of the last
                                 * telemetry. */
    struct progress_source progress;    /* As the host's agent reported. */
    int64_t estimated;          /* Iterations that the agent has counted in the
                                 * traffic, -1 if it cannot. */
    int64_t estimated_before;   /* Iterations counted by earlier agents of the
                                 * host, at most TELEMETRY_MAX_ITERATION. */

    /* Measurement of bytes per iteration. */
    int64_t mark_iteration;     /* Iteration at its start, -1 if none runs. */
    uint64_t mark_bytes[N_DIRS];        /* 'bytes' at its start. */
    double per_iteration[N_DIRS];       /* Bytes, moving average. */
    double measured;            /* Iterations behind the average, 0: none. */

    /* Bursts, as the host's shim sees them. */
    double burst_period;        /* Seconds from burst to burst, 0: unknown. */
    uint64_t burst_bytes;       /* Bytes of one burst, 0 if unknown. */
    double burst_duty;          /* Duration of a burst by the period. */

    struct shash sent_to;       /* Name of another host -> uint64_t: bytes that
                                 * connections have sent to it, as the host's
                                 * agent measured; empty if it does not. */
    double sent;                /* Those to all addresses. */

    int workers[N_ROLES];       /* Processes on the host, by the intent. */
};

/* Processes of one host that claim a job and are not admitted to it. */
struct job_refusal {
    enum membership reason;     /* Not MEMBERSHIP_ADMITTED. */
    bool has_uid;               /* 'uid' is valid. */
    uint64_t uid;               /* User of the processes. */
    long long at;               /* time_msec() of the last telemetry. */
    long long since;            /* And of the first one for this reason. */
};

/* Time for which a refused claim counts unless the host repeats it. */
#define CLUSTER_REFUSAL_MS 3000

struct job {
    struct cojob *cojob;
    char *name;
    char *full_name;            /* "COJOB/JOB". */
    bool seen;                  /* Added since cluster_intent_begin(). */
    bool live;                  /* Neither it nor its cojob has ended. */
    long long stopped_at;       /* time_msec() when it ceased to be live. */
    int64_t began;              /* Epoch ms.  If it changes, the job has begun
                                 * again and all measurements are reset. */
    int64_t model_bytes;        /* By the intent, 0 if unknown. */
    int64_t iteration;          /* Largest iteration reported; without a
                                 * report, the smallest that hosts estimate;
                                 * -1 if unknown. */
    bool estimated;             /* 'iteration' is an estimate, which may be
                                 * wrong by a few. */
    struct progress_source rest;        /* As REST clients reported. */
    struct job_progress progress;       /* Its pace and its metric. */
    struct progress_bound bound;        /* What it can have done. */
    double moved;               /* Bytes that its hosts have sent and received
                                 * since it began. */
    uint64_t reports_refused;   /* Progress reports of other processes that
                                 * hosts have refused, since it began. */
    int64_t reports_refused_at; /* time_msec() of the last one, 0 without. */
    const struct host *refused_host; /* Host of the last report that the bound
                                      * refused, NULL for a REST client. */
    double sent;                /* Bytes sent by all hosts in 'stage'. */
    double gpu_held, gpu_waited; /* GPU seconds since it was first reported,
                                  * and those of them in which it waited for
                                  * other traffic, at the host that moved
                                  * most. */
    struct shash traffic;       /* Host name -> struct job_traffic. */
    struct shash refused;       /* Host name -> struct job_refusal. */
    int workers[N_ROLES];       /* Processes on all hosts, 0 if not live. */
    struct host **ring;         /* Host of each peer, in the order in which
                                 * they were added. */
    size_t n_ring, allocated_ring;
    bool placed;                /* Its hosts are known. */
    struct stage *stage;        /* Its running or last stage, or NULL. */
    struct stage *previous;     /* The stage before 'stage', or NULL. */
    int64_t judged;             /* Last rung of an asynchronous 'stage' at
                                 * which its metric counts, 0 without. */

    /* Written by decide.h. */
    int level;                  /* -1 if it never had one. */
    int rank;                   /* In the last order, among jobs. */
    uint32_t key;               /* What hosts have for the rank, 0 before the
                                 * first order; see rank-keys.h. */
    double factor;              /* Of its key, by the last plan; 1 without
                                 * one.  Written by decide-ahead.h. */
    long long level_since;      /* time_msec() of the last change. */

    /* Written by overrides_apply(). */
    enum override_kind override;
    int64_t override_id; /* 0 without an override. */
};

/* What a running stage lacks, see inactive.h. */
enum stage_idle {
    STAGE_BUSY,       /* Nothing. */
    STAGE_NO_PROCESS, /* No process of its jobs has joined it. */
    STAGE_NO_TRAFFIC, /* Its jobs have neither sent bytes nor made
                       * progress in it. */
    N_STAGE_IDLES,
};
extern const char *const stage_idle_names[N_STAGE_IDLES];

/* What its search announced of an iteration of a stage, 0 if unknown, and what
 * was counted relative to that, 0 unless it is wrong.  See
 * decide-problem.c. */
struct stage_claim {
    double bytes;   /* That a job sends, the mean of its jobs. */
    double compute; /* Seconds in which the slowest job does not
                     * transfer. */
    double bytes_ratio, compute_ratio; /* Written by decide.h. */
};

struct stage {
    struct ovs_list node;       /* In cojob's 'stages' or cluster's 'ended'. */
    struct cojob *cojob;        /* NULL once in cluster's 'ended'. */
    char *cojob_name;
    int rung;
    int64_t began, ended;       /* Epoch ms, of the intent; 'ended' is 0 while
                                 * it runs. */
    long long begin_ms;         /* time_msec() when it began.  Ages are
                                 * measured from here, see instant.h. */
    long long end_ms;           /* time_msec() when its end was seen, 0 while
                                 * it runs. */
    long long known_at;         /* time_msec() when this controller received
                                 * it. */
    struct stage_start start;
    enum stage_idle idle;       /* Written by decide.h. */
    int64_t iterations;         /* That each of its jobs must reach; of an
                                 * asynchronous stage, the last rung. */
    int64_t first_iteration;    /* Most that one of its jobs had done when the
                                 * stage began; of an asynchronous one, 0. */
    struct stage_trials trials; /* If it is asynchronous. */
    int64_t done;               /* Iterations of its jobs in it, once it has
                                 * ended; 0 if unknown. */
    double compute;             /* Predicted seconds of an iteration without
                                 * transfers, of its slowest job.  Written by
                                 * decide.h. */
    struct announcement announcement;   /* What its search announced of its
                                         * later stages, and hid before. */
    struct announced_rung *later;       /* These, as announced. */
    size_t n_later;
    struct stage_claim claim;
    struct plain_times plain;   /* Written by decide-ahead.h. */
    int rank;                   /* In the last order, -1 before the first. */
    enum override_kind override;        /* Written by overrides_apply(). */
    bool seen;                  /* Added since cluster_intent_begin(). */
    bool begin_logged;          /* There is an event of its start. */
    bool end_logged;            /* There is an event of its end. */
    bool stored;                /* The history has it. */
    long long last_active;      /* time_msec() of the last check at which one
                                 * of its processes may have been running; 0
                                 * before the first check.  See inactive.h. */
    bool inactive;              /* 'last_active' is at least INACTIVE_MS ago:
                                 * intent_gc() then ends the stage. */
    struct job **jobs;          /* Empty once in cluster's 'ended'. */
    size_t n_jobs, allocated_jobs;
    double work;                /* Seconds of all ports in an iteration of its
                                 * average job, 0 if unknown.  Written by
                                 * decide.h. */
    double debt;                /* Written by decide.h: seconds that count for
                                 * what its owner was served, see account.h. */
    struct shash moved;         /* Host name -> struct stage_bytes. */
    struct shash parts;         /* Name of a job -> struct stage_part. */
};

/* What was measured of jobs on a host. */
struct stage_bytes {
    struct host *host;
    uint64_t bytes[N_DIRS];
    double busy, waited; /* Seconds, of agent/progress/iterations.h; 0 if
                          * not measured. */
    int gpus;    /* GPUs of a job on the host, the maximum that its launcher
                  * has reported; 0 if unknown. */
    bool serves; /* The job has only servers there, by the intent. */
};

/* What one job did in a stage. */
struct stage_part {
    int devices;        /* Processes that compute, by the intent; 0 if
                         * unknown. */
    struct shash moved; /* Host name -> struct stage_bytes. */
};

struct cojob {
    char *name;
    char *owner;                /* User or REST client that began it, by the
                                 * intent; NULL if unknown. */
    uint64_t uid;               /* User of the processes of its jobs, by the
                                 * intent; 0: of any user. */
    struct owner *account;      /* Of that user, NULL if unknown. */
    double served;              /* Work of its ended stages, seconds of all
                                 * ports. */
    bool seen;                  /* Added since cluster_intent_begin(). */
    bool running;
    double weight;
    double bytes_ratio;         /* Of its last stage with a claim that was
                                 * counted; 0 if that was right. */
    bool compute_refuted;       /* It has announced a wrong computing time. */
    struct shash jobs;          /* Name -> struct job. */
    struct ovs_list stages;     /* Running stages. */
    struct plain_times plain;   /* Of a stage that follows the last one. */
    long long last_active;      /* time_msec() of the last check at which it
                                 * had a stage or a process; 0 before the
                                 * first. */
    long long done_at;          /* time_msec() when it was first seen as done,
                                 * 0 while it runs. */
    bool inactive;              /* 'last_active' is at least INACTIVE_COJOB_MS
                                 * ago: intent_gc() then ends the cojob. */
};

struct cluster {
    double owner_memory_s;      /* The policy's. */
    struct shash owners;        /* Of struct owner, see owners.h. */
    int64_t generation;         /* Of this controller, 0 unless it leads. */
    bool trusts_environment;    /* The policy's trust is "environment". */
    struct shash hosts;         /* Name -> struct host. */
    struct shash labels;        /* First label of a name with a dot -> the
                                 * struct host, others by 'alike'. */
    struct shash cojobs;        /* Name -> struct cojob. */
    struct shash jobs;          /* "COJOB/JOB" -> struct job. */
    struct unannounced *unannounced;
    long long pairs_until;      /* time_msec() until which agents are to tell
                                 * where jobs send to. */
    struct ovs_list starting;   /* Of struct stage, see stage-start.h. */
    struct ovs_list ended;      /* Of struct stage, the last to end first. */
    size_t n_ended;
    int n_hosts;                /* 'index' of the next host. */
    int n_renamed;              /* Hosts that came after a job had named them
                                 * by their first label. */
    int n_revoked;              /* Hosts that an operator has revoked. */
    double gpu_held, gpu_waited; /* Sums over jobs since the controller
                                  * started. */
    struct fabric *fabric;      /* Links between switches; NULL without a
                                 * topology. */
    unsigned int changes;       /* Incremented for changes that may need
                                 * another order. */
    unsigned int minor;         /* Incremented for changes that affect no
                                 * running stage.  Such changes are coalesced
                                 * for longer before a new order is
                                 * computed. */
    uint32_t digest;            /* Hash of the running stages. */
    struct instant copied;      /* Start of the current copy of the intent. */
    bool known;                 /* The intent has been copied before: rows
                                 * that are new in this copy began now. */
    unsigned int samples;       /* Incremented for each new metric sample of
                                 * a job. */
};

struct cluster *cluster_create(void);
void cluster_destroy(struct cluster *);
void cluster_set_fabric(struct cluster *, struct fabric *);

/* The intent. */
void cluster_intent_begin(struct cluster *);
struct cojob *cluster_put_cojob(struct cluster *, const char *name,
                                double weight, bool running);
void cojob_set_owner(struct cluster *, struct cojob *, const char *owner,
                     uint64_t uid);
struct job *cojob_put_job(struct cluster *, struct cojob *, const char *name,
                          bool running, int64_t began, int64_t model_bytes);
void job_put_worker(struct cluster *, struct job *, const char *host,
                    enum role);
struct stage *cojob_put_stage(struct cluster *, struct cojob *, int rung,
                              int64_t began, int64_t ended,
                              int64_t iterations);
void stage_put_job(struct stage *, struct job *);
void cluster_intent_end(struct cluster *);

/* Hosts and traffic. */
struct host *cluster_get_host(struct cluster *, const char *name);
bool cluster_wants_pairs(const struct cluster *);
const struct host **cluster_known_hosts(const struct cluster *, size_t *np);
char *cluster_check_remove(const struct cluster *, const char *name);
void host_set_ports(struct cluster *, struct host *, const struct simap *);
double host_capacity(const struct host *);
void host_set_wanted(struct host *, int64_t version);
void host_set_applied(struct host *, int64_t version);
int64_t host_behind(const struct host *);
long long host_lag_ms(const struct host *);
bool host_is_lagging(const struct host *);
bool host_refuses(const struct cluster *, const struct host *);
void host_take_turn(struct host *, const char *before, const char *now);
bool host_is_barred(const struct host *);
bool cluster_has_revoked(const struct cluster *, const char *name);
struct job_traffic *job_get_traffic(struct job *, struct host *);
void job_refuse(struct job *, const struct host *, enum membership,
                const struct membership_claim *);
void job_admit(struct job *, const struct host *);
const struct job_refusal *job_refusal(const struct job *, const char *host);
char *job_refusal_to_string(const struct job *, const struct job_refusal *);

/* Stages. */
struct stage *cojob_find_stage(const struct cojob *, int rung, int64_t began);
bool stage_is_running(const struct stage *);
struct stage **cluster_running_stages(const struct cluster *, size_t *np);
char *stage_name(const struct stage *);
struct stage *stage_create(const char *cojob, int rung, int64_t began);
void stage_destroy(struct stage *);
struct stage_bytes *stage_get_bytes(struct shash *moved, struct host *);
struct stage_part *stage_get_part(struct stage *, const char *job);
bool stage_has_moved(const struct stage *);

#endif /* controller/model/cluster.h */
