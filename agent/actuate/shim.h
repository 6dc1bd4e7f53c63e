/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACTUATE_SHIM_H
#define ACTUATE_SHIM_H 1

/* Applies the controller's order to the shim of this host.
 *
 * Keeps a connection to the shim's control socket.  After each connect it
 * requests the shim's slots and flows and from then on sends only differences
 * to the desired state.  While there is no connection, bypass.h decides
 * whether the kernel forwards in place of the shim.
 *
 *    struct shim_actuator *s;
 *
 *    s = shim_actuator_create(path, NULL, &events, aux);
 *    shim_actuator_set_job(s, &row, true);
 *    shim_actuator_set_flow(s, &key, "asha/t0", false);
 *    shim_actuator_set_lease(s, time_msec() + 10000, 0);
 *    for (;;) {
 *        shim_actuator_run(s);
 *        shim_actuator_wait(s);
 *        poll_block();
 *    }
 *    shim_actuator_destroy(s);
 *
 * The functions store the desired state and return at once.  Only
 * shim_actuator_run() sends it, as soon as that is possible, and calls events.
 *
 * Arguments are copied; 'events' must outlive the object.  Main thread
 * only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct bypass_ports;
struct shim_actuator;
struct traffic_totals;

struct shim_actuator_events {
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

struct shim_actuator_status {
    bool connected;             /* The shim can apply changes. */
    bool in_sync;               /* The shim has applied all changes. */
    bool bypass;                /* The kernel forwards in place of the shim,
                                 * without priorities. */
    uint64_t rate_bps;          /* Rate of the uplink, bit/s; 0 if unknown. */
    uint64_t queued_bytes;      /* Now in the shim's queues; not a counter. */
    const struct shim_stats *stats;     /* Last reply of the shim, or NULL. */
    const char *about;          /* Its lines "NAME VALUE", see shim/about.h; ""
                                 * while unknown. */
    const struct traffic_totals *totals;        /* Counted by this agent. */
};

/* 'path' is the shim's control socket.  'bypass' may be NULL, see bypass.h. */
struct shim_actuator *shim_actuator_create(
    const char *path, const struct bypass_ports *bypass,
    const struct shim_actuator_events *, void *aux);
void shim_actuator_destroy(struct shim_actuator *);

void shim_actuator_run(struct shim_actuator *);
void shim_actuator_wait(const struct shim_actuator *);

/* Sets the row of the job that 'row' names; its member 'slot' is ignored.  If
 * 'decided' is false, a row that the shim has from before the agent's restart
 * may stay. */
void shim_actuator_set_job(struct shim_actuator *, const struct shim_slot *row,
                           bool decided);
void shim_actuator_remove_job(struct shim_actuator *, const char *name);

/* Requests the event 'bins' for the job.  The default is off. */
void shim_actuator_watch_job(struct shim_actuator *, const char *name,
                             bool watch);

/* 'control': the flow is in the control class of its job, if the shim has
 * control classes. */
void shim_actuator_set_flow(struct shim_actuator *,
                            const struct shim_flow_key *, const char *job,
                            bool control);
void shim_actuator_remove_flow(struct shim_actuator *,
                               const struct shim_flow_key *);

/* The order is valid until 'until' (time_msec()) unless renewed; after that,
 * all jobs are equal.  Traffic of no job, or without a lease, gets
 * 'default_dscp'. */
void shim_actuator_set_lease(struct shim_actuator *, long long until,
                             uint8_t default_dscp);

/* Sets the minimum share of the uplink of each level with queued traffic, as
 * in struct shim_min_share. */
void shim_actuator_set_min_share(struct shim_actuator *, uint32_t share);
void shim_actuator_set_congestion(struct shim_actuator *,
                                  const struct shim_congestion *);
void shim_actuator_set_control(struct shim_actuator *,
                               const struct shim_control *);

void shim_actuator_get_status(const struct shim_actuator *,
                              struct shim_actuator_status *);

#endif /* agent/actuate/shim.h */
