/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_BURSTS_H
#define SHIM_BURSTS_H 1

/* Detects the bursts of each job: their period, size and duration.
 *
 * A training job computes without sending and then moves about the same bytes
 * in each iteration.  Its iterations can be counted from its packets alone,
 * given the shortest gap that separates two bursts.  That gap differs by
 * orders of magnitude between jobs and, when a job has to wait for others,
 * between minutes of one job.
 *
 * So BURST_N_GAPS trials cut the same packets into bursts, each with twice the
 * gap threshold of the one before.  The trial with the most regular bursts, in
 * bytes and in period, is published: a threshold that is too small cuts bursts
 * into pieces of all sizes, and one that is too large joins some of them, or
 * never sees an end.  Averages cover about 16 bursts, and restart after three
 * bursts in a row that are far from them.  A trial without a recent burst is
 * ignored, and so is a burst of less than 1/16 of the usual size: jobs send
 * heartbeats.
 *
 * A packet that follows within BURST_MIN_GAP costs two comparisons and two
 * stores; another one costs about ten nanoseconds for each trial.
 *
 * A link that is full of other traffic leaves no gaps.  So a train also keeps
 * the bytes of the last BURST_N_BINS intervals of 10 ms, from which the agent
 * counts iterations (agent/progress/iterations.h).
 *
 *    bursts_count(b, slot, BURSTS_TX, length, now);      (loop)
 *
 *    bursts_reset(b, slot);                              (control thread)
 *    bursts_get(b, slot, BURSTS_TX, now, &stats);
 *
 * For packets of another origin, one train:
 *
 *    static struct burst_train train;        // All zeros.
 *
 *    burst_train_count(&train, length, now); // Each packet.
 *    if (burst_train_get(&train, now, &stats)) {
 *        ...stats.period_ns...
 *    }
 *
 * One thread counts.  Any thread may read, and sees a recent value of each
 * number.  The control thread requests a reset when a slot gets another job;
 * the counting thread does it at the next packet of the slot, and until then
 * there is nothing to read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/clock/counter.h"
#include "wire/shim-protocol.h"

#define BURST_MIN_GAP 250000u   /* Smallest gap threshold, nanoseconds. */
#define BURST_N_GAPS 18         /* Trials; the last threshold is 33 s. */
#define BURST_BIN 10000000u     /* Nanoseconds. */
#define BURST_N_BINS 128        /* A power of 2. */

/* The bursts for one gap threshold. */
struct burst_trial {
    uint64_t begin;             /* Time of the current burst's first packet. */
    uint64_t base;              /* Bytes of the train before this burst. */
    uint64_t reference;         /* 'begin' of the burst before, 0 if none. */
    uint32_t n;                 /* Bursts in the averages. */
    uint32_t n_odd;             /* Latest bursts far from the averages. */
    float regularity;           /* 0 to 1. */
    float period, period_var;   /* Mean, nanoseconds, and variance. */
    float bytes, bytes_var;     /* Mean and variance. */
    float busy;                 /* Mean duration of a burst, nanoseconds. */
};

struct burst_train {
    uint64_t last;              /* Time of the last packet, 0: none yet. */
    uint64_t bytes;             /* Bytes of all packets. */
    uint64_t bin_end;           /* End of the current bin: a multiple of
                                 * BURST_BIN, 0 before the first packet. */
    uint64_t bin_base;          /* Bytes before the current bin. */

    /* The published trial, written by the counting thread. */
    uint64_t period_ns;         /* 0: no trial is regular. */
    uint64_t burst_bytes;
    uint64_t shares;            /* Duty in the high half, regularity in the low
                                 * half; millionths. */

    struct burst_trial trials[BURST_N_GAPS];
    uint32_t bins[BURST_N_BINS];        /* Bytes; bin i is at i %
                                         * BURST_N_BINS. */
};

enum bursts_direction {
    BURSTS_TX,                  /* Host to uplink. */
    BURSTS_RX,
};

struct bursts {
    uint8_t reset[SHIM_MAX_SLOTS];      /* Reset requested; the loop clears
                                         * it. */
    struct burst_train trains[SHIM_MAX_SLOTS][2];
};

void burst_train_bin(struct burst_train *, uint64_t now);
void burst_train_gap(struct burst_train *, uint64_t now);
bool burst_train_get(const struct burst_train *, uint64_t now,
                     struct shim_burst_stats *);

static inline void
burst_train_count(struct burst_train *t, uint32_t bytes, uint64_t now)
{
    if (now - t->last >= BURST_MIN_GAP) {
        burst_train_gap(t, now);
    }
    if (now >= t->bin_end) {
        burst_train_bin(t, now);
    }
    counter_add(&t->last, now - t->last);
    counter_add(&t->bytes, bytes);
}

struct bursts *bursts_create(void);
void bursts_destroy(struct bursts *);

/* The counting thread. */
void bursts_begin_again(struct bursts *, uint16_t slot);

/* Slot 0 is not counted: it is no job. */
static inline void
bursts_count(struct bursts *b, uint16_t slot, enum bursts_direction direction,
             uint32_t bytes, uint64_t now)
{
    if (!slot) {
        return;
    }
    if (__builtin_expect(__atomic_load_n(&b->reset[slot], __ATOMIC_ACQUIRE),
                         0)) {
        bursts_begin_again(b, slot);
    }
    burst_train_count(&b->trains[slot][direction], bytes, now);
}

/* The control thread. */
void bursts_reset(struct bursts *, uint16_t slot);
void bursts_get(const struct bursts *, uint16_t slot, enum bursts_direction,
                uint64_t now, struct shim_burst_stats *);
size_t bursts_bins(const struct bursts *, uint16_t slot, uint64_t now,
                   uint64_t since, uint64_t *firstp,
                   struct shim_bin bins[SHIM_MAX_BINS]);

#endif /* shim/classify/bursts.h */
