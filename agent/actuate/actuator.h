/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACTUATOR_H
#define ACTUATOR_H 1

/* Interface to what enforces the controller's order on a host.
 *
 *
 * Motivation
 * ==========
 *
 * The agent knows the jobs of its host, their flows and the order.  A host can
 * have two things that act on it: a shim (actuate/shim.h) and the kernel's
 * queues of some interfaces (actuate/tc.h).  The agent calls each of its
 * actuators with everything; a member that an actuator's class leaves NULL
 * does not concern it.
 *
 *
 * Usage
 * =====
 *
 *    struct actuator *a = shim_actuator_create(path, NULL, &events, aux);
 *
 *    actuator_set_job(a, &row, true);
 *    actuator_set_flow(a, &key, "asha/t0");
 *    actuator_set_lease(a, time_msec() + 10000, 0);
 *    for (;;) {
 *        actuator_run(a);
 *        actuator_wait(a);
 *        poll_block();
 *    }
 *    actuator_destroy(a);
 *
 * The functions store the desired state and return at once.  run() applies it
 * as soon as that is possible.  Events are called from run() only.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Arguments are copied.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct actuator_class;
struct json;
struct shim_stats;
struct traffic_totals;

struct actuator {
    const struct actuator_class *class;
};

struct actuator_events {
    /* The shim has received a packet of a flow that it does not know. */
    void (*miss)(const struct shim_flow_key *, void *aux);

    /* Bytes that 'job' has sent and received since the last call. */
    void (*traffic)(const char *job, uint64_t tx_bytes, uint64_t rx_bytes,
                    void *aux);

    /* Current burst statistics of 'job'; all 0 if unknown. */
    void (*bursts)(const char *job, const struct shim_burst_stats *tx,
                   const struct shim_burst_stats *rx, void *aux);

    /* Traffic of the watched 'job' in 'n' consecutive bins; 'first' is the
     * number of the first one. */
    void (*bins)(const char *job, uint64_t first, const struct shim_bin *,
                 size_t n, void *aux);
};

/* State of a shim.  Counters are in bytes since the agent started, and never
 * decrease. */
struct actuator_status {
    bool connected;             /* The shim can apply changes. */
    bool in_sync;               /* The shim has applied all changes. */
    bool bypass;                /* The kernel forwards in place of the shim,
                                 * without priorities. */
    uint64_t rate_bps;          /* Rate of the uplink, bit/s; 0 if unknown. */
    uint64_t tx_bytes, rx_bytes;
    uint64_t ip_bytes;          /* Sent IP traffic, which can carry a DSCP. */
    uint64_t default_bytes;     /* Part of 'ip_bytes' in the default class. */
    uint64_t queued_bytes;      /* Now in the shim's queues; not a counter. */
    const struct shim_stats *stats;     /* Last reply of the shim, or NULL. */
    const struct traffic_totals *totals;        /* Counted by this agent. */
};

/* All members but 'name', 'destroy', 'run' and 'wait' may be NULL. */
struct actuator_class {
    const char *name;           /* Key in JSON and health reports. */

    void (*destroy)(struct actuator *);
    void (*run)(struct actuator *);
    void (*wait)(const struct actuator *);

    void (*set_job)(struct actuator *, const struct shim_slot *row,
                    bool decided);
    void (*remove_job)(struct actuator *, const char *name);
    void (*watch_job)(struct actuator *, const char *name, bool watch);
    void (*set_flow)(struct actuator *, const struct shim_flow_key *,
                     const char *job);
    void (*remove_flow)(struct actuator *, const struct shim_flow_key *);
    void (*set_lease)(struct actuator *, long long until,
                      uint8_t default_dscp);
    void (*set_min_share)(struct actuator *, uint32_t share);
    void (*set_congestion)(struct actuator *, const struct shim_congestion *);

    void (*get_status)(const struct actuator *, struct actuator_status *);

    /* Value of the member 'name' of the agent's status. */
    struct json *(*to_json)(const struct actuator *);
};

static inline void
actuator_destroy(struct actuator *a)
{
    a->class->destroy(a);
}

static inline void
actuator_run(struct actuator *a)
{
    a->class->run(a);
}

static inline void
actuator_wait(const struct actuator *a)
{
    a->class->wait(a);
}

/* Sets the row of the job that 'row' names; its member 'slot' is ignored.  If
 * 'decided' is false, a row that the shim has from before the agent's restart
 * may stay. */
static inline void
actuator_set_job(struct actuator *a, const struct shim_slot *row, bool decided)
{
    if (a->class->set_job) {
        a->class->set_job(a, row, decided);
    }
}

static inline void
actuator_remove_job(struct actuator *a, const char *name)
{
    if (a->class->remove_job) {
        a->class->remove_job(a, name);
    }
}

/* Requests the event 'bins' for the job.  The default is off. */
static inline void
actuator_watch_job(struct actuator *a, const char *name, bool watch)
{
    if (a->class->watch_job) {
        a->class->watch_job(a, name, watch);
    }
}

static inline void
actuator_set_flow(struct actuator *a, const struct shim_flow_key *key,
                  const char *job)
{
    if (a->class->set_flow) {
        a->class->set_flow(a, key, job);
    }
}

static inline void
actuator_remove_flow(struct actuator *a, const struct shim_flow_key *key)
{
    if (a->class->remove_flow) {
        a->class->remove_flow(a, key);
    }
}

/* The order is valid until 'until' (time_msec()) unless renewed; after that,
 * all jobs are equal.  Traffic of no job, or without a lease, gets
 * 'default_dscp'. */
static inline void
actuator_set_lease(struct actuator *a, long long until, uint8_t default_dscp)
{
    if (a->class->set_lease) {
        a->class->set_lease(a, until, default_dscp);
    }
}

/* Sets the minimum share of the uplink of each level with queued traffic, as
 * in struct shim_min_share. */
static inline void
actuator_set_min_share(struct actuator *a, uint32_t share)
{
    if (a->class->set_min_share) {
        a->class->set_min_share(a, share);
    }
}

/* Sets the parameters of congestion control. */
static inline void
actuator_set_congestion(struct actuator *a, const struct shim_congestion *c)
{
    if (a->class->set_congestion) {
        a->class->set_congestion(a, c);
    }
}

#endif /* agent/actuate/actuator.h */
