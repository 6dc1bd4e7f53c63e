/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_JOB_SLOT_H
#define SHIM_JOB_SLOT_H 1

/* Job slots: level, DSCP and counters of each job.
 *
 * A packet's tag has its slot; the controller's order changes the slot's level
 * and DSCP.  Both are in one word, so that the loop
 * never combines the level of one order with the DSCP of another.
 *
 * The order itself is exact: the slots of one rank and level are a class, and
 * the classes are numbered by rank, then by level.  The egress reads them when
 * they have changed.
 *
 * A job with a level other than control and default has a second treatment,
 * for its packets in the control class, at SLOT | SLOT_TAG_CONTROL: the
 * control level and the DSCP of job_slots_set_control(), which also has the
 * DSCPs of all levels: packets of no job must not have them, see tag.h.
 *
 * The agent's lease limits how long the slots are valid.  Without a lease
 * every slot is treated like slot 0, which is no job: default level and DSCP.
 *
 *    job_slots_set(js, &row);                (control thread)
 *    job_slots_lease(js, now, 3000, 0);
 *
 *    leased = job_slots_leased(js, now);     (loop, once a burst)
 *    t = job_slots_treatment(js, slot, leased);
 *    changed = job_slots_classes(js, &seen, classes);
 *
 * The control thread changes slots, the loop adds to the counters, both may
 * read.  Times are nanoseconds of CLOCK_MONOTONIC. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/shim-protocol.h"
#include "wire/slot-tag.h"

struct treatment {
    uint8_t level;              /* Queue, 0 .. SHIM_N_LEVELS - 1. */
    uint8_t dscp;               /* 0 .. 63. */
    bool is_default;            /* Slot 0, an unused slot, or no lease. */
    bool in_use;                /* The slot is in use, and leased. */
};

/* The treatments of all slots, for the lookup of several. */
struct job_treatments {
    const uint32_t *words;      /* By slot and SLOT_TAG_CONTROL: a
                                 * struct treatment, or 0. */
    uint32_t mask;              /* For 'words': 0 without a lease. */
    uint32_t by_default;        /* Replaces 0. */
};

/* 'slot' is below SHIM_MAX_SLOTS, with or without SLOT_TAG_CONTROL. */
static inline struct treatment
job_treatment(const struct job_treatments *jt, uint16_t slot)
{
    uint32_t word = __atomic_load_n(&jt->words[slot], __ATOMIC_RELAXED)
                    & jt->mask;
    struct treatment t;

    word = word ? word : jt->by_default;
    memcpy(&t, &word, sizeof t);
    return t;
}

/* Written by one thread only. */
struct job_counters {
    uint64_t tx_packets, tx_bytes;
    uint64_t rx_packets, rx_bytes;
    uint64_t tx_dropped;        /* Packets: the queue was full. */
} __attribute__((aligned(64)));

/* The class of a slot: its number in the order, from 0 on, and its level, from
 * 1 on.  Slots that are not ordered have JOB_CLASS_LAST. */
typedef uint16_t job_class;
#define JOB_CLASS(NUMBER, LEVEL) ((NUMBER) | (LEVEL) << 10)
#define JOB_CLASS_NUMBER(CLASS) ((CLASS) & 0x3ff)
#define JOB_CLASS_LEVEL(CLASS) ((CLASS) >> 10)
#define JOB_CLASS_LAST JOB_CLASS(SHIM_MAX_SLOTS - 1, SHIM_LEVEL_DEFAULT)

struct job_slots;

struct job_slots *job_slots_create(void);
void job_slots_destroy(struct job_slots *);

/* The control thread. */
int job_slots_set(struct job_slots *, const struct shim_slot *);
int job_slots_clear(struct job_slots *, uint16_t slot);
void job_slots_lease(struct job_slots *, uint64_t now, uint32_t ms,
                     uint8_t default_dscp);
void job_slots_set_control(struct job_slots *, uint8_t dscp, uint64_t levels);
uint32_t job_slots_count(const struct job_slots *);
bool job_slots_get(const struct job_slots *, uint16_t slot,
                   struct shim_slot *);
bool job_slots_stats(const struct job_slots *, uint16_t slot, uint64_t now,
                     struct shim_slot_stats *);

/* Any thread. */
uint32_t job_slots_lease_left_ms(const struct job_slots *, uint64_t now);
bool job_slots_had_lease(const struct job_slots *);
bool job_slots_leased(const struct job_slots *, uint64_t now);
struct treatment job_slots_treatment(const struct job_slots *, uint16_t slot,
                                     bool leased);
struct job_treatments job_slots_treatments(const struct job_slots *,
                                           bool leased);
uint32_t job_slots_rank(const struct job_slots *, uint16_t slot, bool leased);
uint8_t job_slots_control_dscp(const struct job_slots *);
uint64_t job_slots_level_dscps(const struct job_slots *);
uint32_t job_slots_count_control(const struct job_slots *);

/* The loop. */
bool job_slots_classes(const struct job_slots *, uint32_t *seen,
                       job_class classes[SHIM_MAX_SLOTS]);
struct job_counters *job_slots_counters(struct job_slots *, uint16_t slot);
void job_slots_count_tx(struct job_slots *, const uint16_t *slots,
                        const uint32_t *lengths, uint32_t n);
void job_slots_count_rx(struct job_slots *, const uint16_t *slots,
                        const uint32_t *lengths, uint32_t n);

#endif /* shim/classify/job-slot.h */
