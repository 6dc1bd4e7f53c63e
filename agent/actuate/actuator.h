/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACTUATOR_H
#define ACTUATOR_H 1

/* What makes the wanted state true on a host.
 *
 *
 * Motivation
 * ==========
 *
 * The agent knows which jobs there are, which flows are theirs and what the
 * controller wants for them.  Who carries that out differs between hosts: a
 * shim, the kernel's own queues, a NIC.  So the agent is written against this
 * interface.
 *
 *
 * Usage
 * =====
 *
 *    struct actuator *a;
 *
 *    error = actuator_shim.open(target, NULL, &events, aux, &a);
 *    a->class->set_job(a, &row, true);
 *    a->class->set_flow(a, &key, "asha/t0");
 *    a->class->set_lease(a, time_msec() + 10000, 0);
 *    for (;;) {
 *        a->class->run(a);
 *        a->class->wait(a);
 *        poll_block();
 *    }
 *
 * All functions say what is wanted and return at once; an actuator that
 * cannot do it now does it when it can, from its own memory.  Events are
 * called from run() only.
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

struct bypass_place;
struct shim_stats;
struct traffic_totals;

struct actuator {
    const struct actuator_class *class;
};

struct actuator_events {
    /* A packet of an unknown flow came by. */
    void (*miss)(const struct shim_flow_key *, void *aux);

    /* 'job' has sent and received so many bytes more. */
    void (*traffic)(const char *job, uint64_t tx_bytes, uint64_t rx_bytes,
                    void *aux);

    /* Those are the bursts of 'job' now; zeros if nothing is known. */
    void (*bursts)(const char *job, const struct shim_burst_stats *tx,
                   const struct shim_burst_stats *rx, void *aux);

    /* 'job', which is watched, moved so much in bin 'first' and those that
     * follow. */
    void (*bins)(const char *job, uint64_t first, const struct shim_bin *,
                 size_t n, void *aux);
};

/* All counters are bytes since the agent started, and never fall. */
struct actuator_status {
    bool connected;             /* It can carry out what is wanted. */
    bool in_sync;               /* It has carried out all of it. */
    bool bypass;                /* The kernel forwards in its place, without
                                 * order. */
    uint64_t rate_bps;          /* Of the uplink, bits per second, 0 if it
                                 * does not know. */
    uint64_t tx_bytes, rx_bytes;
    uint64_t ip_bytes;          /* Sent, that can carry a tag. */
    uint64_t default_bytes;     /* Of these, sent without one. */
    uint64_t queued_bytes;      /* That wait in it now: no counter. */
    const struct shim_stats *stats;     /* As it told last, or NULL. */
    const struct traffic_totals *totals;        /* By this agent's count. */
};

struct actuator_class {
    const char *name;           /* For health and logs. */

    /* 'bypass' may be null, see bypass.h. */
    int (*open)(const char *target, const struct bypass_place *bypass,
                const struct actuator_events *, void *aux,
                struct actuator **);
    void (*close)(struct actuator *);

    void (*run)(struct actuator *);
    void (*wait)(struct actuator *);

    /* 'row' is for the job that it names; its 'slot' does not matter.  Unless
     * 'decided', a row from before the agent's restart may stay. */
    void (*set_job)(struct actuator *, const struct shim_slot *row,
                    bool decided);
    void (*remove_job)(struct actuator *, const char *name);

    /* Is it of interest when the job moves its bytes?  Not at first. */
    void (*watch_job)(struct actuator *, const char *name, bool watch);

    void (*set_flow)(struct actuator *, const struct shim_flow_key *,
                     const char *job);
    void (*remove_flow)(struct actuator *, const struct shim_flow_key *);

    /* The order holds until 'until' by time_msec(), also if it is not heard of
     * again; from then on everything is fair.  What belongs to no job, or has
     * no lease, is marked with 'default_dscp'. */
    void (*set_lease)(struct actuator *, long long until,
                      uint8_t default_dscp);

    /* What each level that waits gets of the uplink at least, as in struct
     * shim_guard. */
    void (*set_guard)(struct actuator *, uint32_t share);

    /* By which law the downlink is divided. */
    void (*set_congestion)(struct actuator *, const struct shim_congestion *);

    void (*get_status)(const struct actuator *, struct actuator_status *);
};

extern const struct actuator_class actuator_shim;

#endif /* agent/actuate/actuator.h */
