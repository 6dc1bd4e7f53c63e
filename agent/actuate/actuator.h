/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACTUATOR_H
#define ACTUATOR_H 1

/* Applies the controller's order to the packets of this host.
 *
 * There are two ways: a shim in the path of all packets (shim.h), and the
 * kernel's own queues with a program that marks packets (bpf/kernel.h).  The
 * agent sets what it wants; an actuator compares that with what it has, and
 * changes what differs when it runs.
 *
 *    actuator_set_job(a, "asha/t0", &row, true);
 *    actuator_set(a, &wanted);
 *    for (;;) {
 *        actuator_run(a);                // Calls events.
 *        actuator_wait(a);
 *        poll_block();
 *    }
 *    actuator_destroy(a);
 *
 * Arguments are copied; events must outlive the actuator.  Main thread
 * only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/actuate/shim-tables.h"
#include "wire/shim-protocol.h"

struct traffic_totals;

struct actuator_events {
    /* Bytes that 'job' has sent and received since the last call. */
    void (*traffic)(const char *job, uint64_t tx_bytes, uint64_t rx_bytes,
                    void *aux);

    /* Current burst statistics of 'job'; all 0 if unknown. */
    void (*bursts)(const char *job, const struct shim_burst_stats *tx,
                   const struct shim_burst_stats *rx, void *aux);

    /* Entries of its tables that a shim has refused to 'job'. */
    void (*refused)(const char *job, uint64_t n, void *aux);

    /* Traffic of 'job' in 'n' consecutive bins, none of which was reported
     * before; 'first' is the number of the first one. */
    void (*bins)(const char *job, uint64_t first, const struct shim_bin *,
                 size_t n, void *aux);

    /* The shim's remote hosts. */
    void (*peers)(const struct shim_peer *, size_t n, void *aux);
};

/* What holds for all jobs. */
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
    const char *about; /* Its lines "NAME VALUE", see shim/about.h; ""
                        * while unknown. */
    const struct traffic_totals *totals; /* Counted by this agent. */
};

/* An implementation begins with it, in zeroed memory, and initializes it with
 * actuator_init(). */
struct actuator {
    const struct actuator_class *class;
    const struct actuator_events *events;
    void *aux;               /* Argument of the events. */
    struct slot_table slots; /* Desired and installed rows. */
    bool changed;            /* They may differ. */
    bool has_numbers;        /* The numbers of slots are those of packets. */
    const struct shim_key *keys; /* For the shim, NULL before the first. */
    size_t n_keys;
    bool has_keys; /* The shim has them. */
};

struct actuator_class {
    void (*destroy)(struct actuator *);
    void (*run)(struct actuator *);
    void (*wait)(const struct actuator *);
    void (*set)(struct actuator *, const struct actuator_wanted *);
    void (*get_status)(const struct actuator *, struct actuator_status *);
};

static inline void
actuator_init(struct actuator *a, const struct actuator_class *class,
              const struct actuator_events *events, void *aux)
{
    a->class = class;
    a->events = events;
    a->aux = aux;
    slot_table_init(&a->slots);
}

/* Reports the traffic of a slot of actuator 'a_'; see traffic.h. */
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

/* Returns the slot of the job, 0 if it has none. */
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

#endif /* agent/actuate/actuator.h */
