/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_JOB_SLOT_H
#define SHIM_JOB_SLOT_H 1

/* What the packets of each job get, and what was counted of them.
 *
 *
 * Motivation
 * ==========
 *
 * A flow points to a slot and never changes; the controller's order changes
 * only the slot's level and DSCP.  Both are in one word, so that the loop
 * never sees the level of one order with the DSCP of another.
 *
 * The order itself is exact: each slot has a place among all others, by its
 * rank and then by its level, which the egress reads when it has changed.
 * Slots of the same rank and level have the same place.
 *
 * The agent's lease bounds how long the word holds.  Without a lease every
 * slot is treated like slot 0, which is "no job": default level and DSCP.
 *
 *
 * Usage
 * =====
 *
 *    job_slots_set(js, &slot);               (control thread)
 *    job_slots_lease(js, now, 3000, 0);
 *
 *    leased = job_slots_leased(js, now);     (loop, once a burst)
 *    t = job_slots_treatment(js, slot, leased);
 *    changed = job_slots_classes(js, &seen, places);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The control thread changes slots, the loop adds to the counters, both read
 * all.  Each further thread that counts has counters of its own, which are
 * summed up when they are read; job_slots_add_lanes() makes them, before the
 * threads start.  Times are nanoseconds of CLOCK_MONOTONIC. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/shim-protocol.h"

struct treatment {
    uint8_t level;              /* Queue, 0 .. SHIM_N_LEVELS - 1. */
    uint8_t dscp;               /* 0 .. 63. */
    bool is_default;            /* Slot 0, an unused slot, or no lease. */
    bool in_use;                /* The slot is, and there is a lease. */
};

/* What all slots' packets get, to look many of them up. */
struct job_treatments {
    const uint32_t *words;      /* By slot, a struct treatment or 0. */
    uint32_t held;              /* Of a word, 0 without lease. */
    uint32_t by_default;        /* Instead of 0. */
};

/* 'slot' is below SHIM_MAX_SLOTS. */
static inline struct treatment
job_treatment(const struct job_treatments *jt, uint16_t slot)
{
    uint32_t word = __atomic_load_n(&jt->words[slot], __ATOMIC_RELAXED)
                    & jt->held;
    struct treatment t;

    word = word ? word : jt->by_default;
    memcpy(&t, &word, sizeof t);
    return t;
}

/* Each is written by one thread only. */
struct job_counters {
    uint64_t tx_packets, tx_bytes;
    uint64_t rx_packets, rx_bytes;
    uint64_t tx_dropped;        /* Packets: the level's queue was full. */
} __attribute__((aligned(64)));

/* Where a slot is in the order: JOB_CLASS() of 0 for the first place and a
 * level from 1 on.  What is not ordered has JOB_CLASS_LAST. */
typedef uint16_t job_class;
#define JOB_CLASS(PLACE, LEVEL) ((PLACE) | (LEVEL) << 10)
#define JOB_CLASS_NUMBER(P) ((P) & 0x3ff)
#define JOB_CLASS_LEVEL(P) ((P) >> 10)
#define JOB_CLASS_LAST JOB_CLASS(SHIM_MAX_SLOTS - 1, SHIM_LEVEL_DEFAULT)

struct job_slots;

#define JOB_SLOTS_MAX_LANES 16

struct job_slots *job_slots_create(void);
void job_slots_destroy(struct job_slots *);
bool job_slots_add_lanes(struct job_slots *, unsigned int n);

/* The control thread. */
int job_slots_set(struct job_slots *, const struct shim_slot *);
int job_slots_clear(struct job_slots *, uint16_t slot);
void job_slots_lease(struct job_slots *, uint64_t now, uint32_t ms,
                     uint8_t default_dscp);
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

/* The loop. */
bool job_slots_classes(const struct job_slots *, uint32_t *seen,
                      job_class places[SHIM_MAX_SLOTS]);
struct job_counters *job_slots_counters(struct job_slots *, uint16_t slot);
void job_slots_count_tx(struct job_slots *, const uint16_t *slots,
                        const uint32_t *lengths, uint32_t n);
void job_slots_count_rx(struct job_slots *, const uint16_t *slots,
                        const uint32_t *lengths, uint32_t n);

/* The same for the thread with the number 'lane', 0 being the loop. */
void job_slots_count_rx_of(struct job_slots *, unsigned int lane,
                           const uint16_t *slots, const uint32_t *lengths,
                           uint32_t n);

#endif /* shim/classify/job-slot.h */
