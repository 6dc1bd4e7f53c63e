/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TELEMETRY_REPORT_H
#define TELEMETRY_REPORT_H 1

/* One telemetry message of an agent, parsed and checked.
 *
 * A message comes from another machine, where a tenant may have become root.
 * All of it is checked here, once, and the rest of the controller works with
 * plain numbers.  docs/interfaces.md describes the format.  A report owns its
 * strings. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "controller/model/shim-counters.h"
#include "simap.h"
#include "wire/membership.h"

struct json;

#define TELEMETRY_MAX_JOBS 1024
#define TELEMETRY_MAX_PORTS 16
#define TELEMETRY_MAX_REMOTES 128
#define TELEMETRY_MAX_USERS 16
#define TELEMETRY_MAX_PEERS 512
#define TELEMETRY_MAX_ITERATION INT64_C(1000000000000000)

/* Bytes that a host has sent for a job to an address. */
struct telemetry_remote {
    uint32_t ip;                /* IPv4, host byte order; 0 for an address of
                                 * IPv6, which no fabric has yet. */
    uint64_t bytes;             /* Since the agent measures them. */
};

struct telemetry_job {
    char *name;                 /* "COJOB/JOB". */
    struct membership_claim claim;      /* Of its processes; registered, of an
                                         * unknown user, if the agent is too
                                         * old to report it. */
    uint64_t tx_bytes, rx_bytes;        /* Since the agent started. */
    double period;              /* Seconds between two bursts, 0 if unknown. */
    uint64_t burst_bytes;       /* Of one burst, 0 if unknown. */
    double duty;                /* Duration of a burst by the period. */
    double busy, waited;        /* Seconds of bursts, and the part of them that
                                 * the job waited, since the agent started; 0
                                 * if unknown. */
    int gpus;                   /* Of the job on the host, by its launcher; 0
                                 * if unknown. */
    uint64_t reports_refused;   /* Progress reports of other processes, which
                                 * the agent has refused. */
    int64_t iteration;          /* Reported by the job, at most
                                 * TELEMETRY_MAX_ITERATION, -1 if none. */
    int64_t estimated;          /* Counted in the traffic, with the same
                                 * limit, -1 if unknown. */
    char *metric;               /* Name, NULL if there is no 'value'. */
    double value;               /* Finite. */
    struct telemetry_remote *remotes;
    size_t n_remotes;           /* 0 if the message does not report them. */
};

/* A user that has lately requested more than its share of a host's tables. */
struct telemetry_user {
    char pod[65]; /* Id of the pod, or "" for a uid. */
    uint64_t uid;
    uint64_t entries, refused;
};

/* An address that the host has TCP connections with. */
struct telemetry_peer {
    struct in6_addr ip; /* IPv4 mapped. */
    uint64_t refused;   /* Messages of its shim with a wrong hash. */
    uint64_t disobeyed; /* How often it sent more than was granted. */
};

struct telemetry_report {
    char *host;
    char *state;                /* "ordered" or "fair". */
    bool bypass;                /* The kernel forwards instead of the shim. */
    int64_t time;               /* Epoch ms of the host's clock, -1 if
                                 * unknown. */
    int64_t applied;            /* Version of the order that is applied. */
    int64_t applied_generation; /* Generation of that order, -1 if unknown. */
    int64_t generation;         /* Newest that the agent has seen, -1 if it
                                 * has seen none. */
    uint64_t jobs_refused;      /* By the agent since it started. */
    bool has_counters;          /* These are reported, to 'shim': */
    struct simap ports;         /* Port name -> kbit/s. */
    uint64_t port_bytes[2];     /* Sent and received by all ports since the
                                 * agent started; 0 if unknown. */
    uint64_t ip_bytes;          /* IP bytes sent since the agent started. */
    uint64_t default_bytes;     /* Part of 'ip_bytes' of no job. */
    int64_t queued_bytes;       /* Queued in the shim, -1 if unknown. */
    struct shim_counters shim;

    struct telemetry_user users[TELEMETRY_MAX_USERS];
    size_t n_users;
    bool knows_peers;     /* These are reported: */
    struct in6_addr *own; /* Addresses of the host with connections. */
    size_t n_own;
    struct telemetry_peer *peers;
    size_t n_peers;
    struct telemetry_job *jobs; /* Those with a change. */
    size_t n_jobs;
};

char *telemetry_report_from_json(const struct json *params,
                                 struct telemetry_report **);

/* Returns the host that sent a message of a later version, or NULL. */
const char *telemetry_report_later(const struct json *params);

void telemetry_report_destroy(struct telemetry_report *);

#endif /* controller/model/telemetry-report.h */
