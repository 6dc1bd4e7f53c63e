/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACTUATOR_H
#define ACTUATOR_H 1

/* Applies the controller's order to the packets of this host.
 *
 * There are two actuators.  The agent sets the desired rows; the actuator
 * compares them with the installed ones, and changes those that differ when it
 * runs.
 *
 * A shim in the path of all packets orders by rank.  The actuator keeps a
 * connection to the shim's control socket, and requests the shim's slots after
 * each connect.  Jobs have no slots before the first one, as the tags of the
 * kernel (wire/slot-tag.h) must have the numbers that the shim has.  While
 * there is no connection, bypass.h decides whether the kernel forwards in
 * place of the shim.
 *
 * Without a shim, the program of the kernel at the uplink knows the slot of
 * each packet (identity.h).  The actuator writes the rows that it reads, with
 * the DSCP by which switches order, and for each uplink the priority that puts
 * a packet into the queue of its level, where there are such queues.  It
 * creates no queues: tc.h does, if the operator wants them.  The kernel has
 * no ranks within a level, no grants, and no share for control packets.  The
 * end of the lease is written too, so that a dead agent's order ends; slots
 * and counters go on, and the next agent finds the names of the jobs in the
 * rows.
 *
 *    a = shim_actuator_create(path, NULL, &events, aux);     // Or
 *    a = kernel_actuator_create(identity, &config, &events, aux);
 *    actuator_set_job(a, "asha/t0", &row, true);
 *    actuator_set(a, &wanted);
 *    actuator_run(a);                // Calls events.
 *    actuator_wait(a);
 *    actuator_destroy(a);
 *
 * Arguments are copied; events must outlive the actuator.  Main thread
 * only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/actuate/shim-tables.h"
#include "wire/shim-protocol.h"

struct bypass_ports;
struct identity;
struct route_socket;
struct traffic_totals;

struct actuator_events {
    /* Bytes that 'job' has sent and received since the last call. */
    void (*traffic)(const char *job, uint64_t tx_bytes, uint64_t rx_bytes,
                    void *aux);

    /* Current burst statistics of 'job'; all 0 if unknown. */
    void (*bursts)(const char *job, const struct shim_burst_stats *tx,
                   const struct shim_burst_stats *rx, void *aux);

    /* Entries of its tables that a shim has refused to 'job', or to
     * connections of no job if that is NULL. */
    void (*refused)(const char *job, uint64_t n, void *aux);

    /* Traffic of 'job' in 'n' consecutive bins that were not reported before;
     * 'first' is the number of the first one. */
    void (*bins)(const char *job, uint64_t first, const struct shim_bin *,
                 size_t n, void *aux);

    /* The shim's remote hosts. */
    void (*peers)(const struct shim_peer *, size_t n, void *aux);
};

/* Settings of all jobs. */
struct actuator_wanted {
    long long until;      /* End of the lease, time_msec(): after it, all
                           * jobs are equal. */
    uint8_t default_dscp; /* Of traffic of no job, or without lease. */
    uint32_t min_share;   /* As in struct shim_min_share. */
    struct shim_congestion congestion;
    struct shim_control control;
    uint8_t levels; /* Bit N: the policy uses level N. */
};

struct actuator_status {
    bool connected;        /* It can apply changes. */
    bool in_sync;          /* It has applied all changes. */
    bool bypass;           /* The kernel forwards in place of the shim,
                            * without priorities. */
    uint64_t rate_bps;     /* Rate of the uplink, bit/s; 0 if unknown. */
    uint64_t queued_bytes; /* Now in the shim's queues; not a counter. */
    const struct shim_stats *stats; /* Last reply of the shim, or NULL. */
    const char *about; /* Its lines "NAME VALUE", see SHIM_ABOUT; ""
                        * while unknown. */
    const struct traffic_totals *totals; /* Counted by this agent. */
};

/* First member of each implementation, which zeroes its memory and calls
 * actuator_init(). */
struct actuator {
    const struct actuator_class *class;
    const struct actuator_events *events;
    void *aux;               /* Argument of the events. */
    struct slot_table slots; /* Desired and installed rows. */
    bool changed;            /* The desired rows may differ from the installed
                              * ones. */
    bool has_numbers;        /* The numbers of slots are those of packets. */
    const struct shim_key *keys; /* Keys for the shim, NULL before the first
                                  * ones. */
    size_t n_keys;
    bool has_keys; /* The shim has 'keys'. */
};

struct actuator_class {
    void (*destroy)(struct actuator *);
    void (*run)(struct actuator *);
    void (*wait)(const struct actuator *);
    void (*set)(struct actuator *, const struct actuator_wanted *);
    void (*get_status)(const struct actuator *, struct actuator_status *);
};

/* 'path' is the shim's control socket.  'bypass' may be NULL, see bypass.h. */
struct actuator *shim_actuator_create(const char *path,
                                      const struct bypass_ports *bypass,
                                      const struct actuator_events *,
                                      void *aux);

struct kernel_config {
    char *const *uplinks;
    size_t n_uplinks;
    uint64_t rate_bps; /* Of all uplinks, 0 if unknown. */
};

/* 'identity' and what the configuration points to must outlive it. */
struct actuator *kernel_actuator_create(struct identity *,
                                        const struct kernel_config *,
                                        const struct actuator_events *,
                                        void *aux);

static inline void
actuator_init(struct actuator *a, const struct actuator_class *class,
              const struct actuator_events *events, void *aux)
{
    a->class = class;
    a->events = events;
    a->aux = aux;
    slot_table_init(&a->slots);
}

/* Reports the traffic of a slot of actuator 'a_'; see shim-tables.h. */
static inline void
actuator_report_traffic(uint16_t slot, uint64_t tx_bytes, uint64_t rx_bytes,
                        void *a_)
{
    const struct actuator *a = a_;
    const char *job = slot_table_name(&a->slots, slot);

    if (job) {
        a->events->traffic(job, tx_bytes, rx_bytes, a->aux);
    }
}

static inline void
actuator_destroy(struct actuator *a)
{
    if (a) {
        a->class->destroy(a);
    }
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

static inline void
actuator_set(struct actuator *a, const struct actuator_wanted *wanted)
{
    a->class->set(a, wanted);
}

/* Sets the row of 'job'; its members 'slot' and 'name' are ignored.  If
 * 'decided' is false, a row from before the agent's restart may stay. */
static inline void
actuator_set_job(struct actuator *a, const char *job,
                 const struct shim_slot *row, bool decided)
{
    slot_table_want(&a->slots, job, row, decided);
    a->changed = true;
}

static inline void
actuator_remove_job(struct actuator *a, const char *job)
{
    slot_table_unwant(&a->slots, job);
    a->changed = true;
}

/* Gives the shim these keys, which stay the caller's until the next call. */
static inline void
actuator_set_keys(struct actuator *a, const struct shim_key *keys, size_t n)
{
    a->keys = keys;
    a->n_keys = n;
    a->has_keys = false;
}

/* Returns the slot of the job, or 0. */
static inline uint16_t
actuator_slot(const struct actuator *a, const char *job)
{
    return a->has_numbers ? slot_table_number(&a->slots, job) : 0;
}

static inline void
actuator_get_status(const struct actuator *a, struct actuator_status *status)
{
    a->class->get_status(a, status);
}

/* Priorities that select the queues of an uplink, for a test.
 *
 * The kernel orders with the queues that the uplink has already: the traffic
 * classes of its card (mqprio, ets), the bands of fq (since 6.7), prio and
 * pfifo_fast, or of such queues below mq, and the classes of tc.h.  All select
 * a queue by the priority of the packet, each by a map of its own, so a
 * priority is chosen for each level such that the map gives a higher level an
 * earlier queue.  If there are fewer queues than levels, neighbouring levels
 * share one; the default level has the last one.  With mqprio, the highest
 * class counts as the first, as in IEEE 802.1Q.
 *
 * An interface without queues, such as a VLAN or a bond, has the queues of the
 * interface below it; one port of a bond counts. */
struct uplink_queues {
    int n;         /* Queues that are used, 0 if priorities mean nothing. */
    char kind[16]; /* Of the qdisc, "" if 'n' is 0. */
    uint32_t priority[SHIM_N_LEVELS];
};

/* 'levels' has a bit for each level that the policy uses.  Returns 0 or a
 * positive errno. */
int uplink_queues_find(struct route_socket *, int ifindex, uint8_t levels,
                       struct uplink_queues *);

#endif /* agent/actuate/actuator.h */
