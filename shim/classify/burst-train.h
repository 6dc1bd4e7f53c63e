/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_BURST_TRAIN_H
#define SHIM_BURST_TRAIN_H 1

/* Packets -> bursts: how often they come, of how many bytes, for how long.
 *
 *
 * Motivation
 * ==========
 *
 * A training job computes in silence and then moves about the same bytes in
 * each iteration.  Whoever sees its packets can count its iterations, without
 * a word of the job's, if he knows how long a silence must be to lie between
 * two bursts and not inside of one.  That differs by orders of magnitude
 * between jobs and, when a job has to wait for others, between minutes of one
 * job.
 *
 * So all of them are tried at once: BURST_N_GAPS trials, each twice as patient
 * as the one before, cut the same packets into bursts, and the trial whose
 * bursts are the most alike, in bytes and in the time between their
 * beginnings, is believed.  One that is too impatient cuts bursts into pieces
 * of all sizes; one that is too patient joins some and not others, or never
 * sees an end.  Averages forget after some 16 bursts, or at once when three
 * in a row are another job's for all one can tell; a trial that has heard of
 * no burst for long is not asked.
 *
 * A burst of less than 1/16 of what is usual is taken for a part of the
 * silence: jobs send heartbeats.
 *
 * A packet that follows within BURST_MIN_GAP costs two comparisons and two
 * stores; the others, which cannot be many, some ten nanoseconds a trial.
 *
 * A link that others fill leaves no silence to cut at.  So a train also keeps
 * the bytes of its last BURST_N_BINS hundredths of a second, for somebody with
 * more time and memory to look at (agent/iterations.h).
 *
 *
 * Usage
 * =====
 *
 *    static struct burst_train train;        // All zeros.
 *
 *    burst_train_count(&train, length, now); // Each packet.
 *    if (burst_train_get(&train, now, &p)) {
 *        ...p.period_ns...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread counts; any may get, and sees some recent state of each
 * number. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/clock/counter.h"

#define BURST_MIN_GAP 250000u   /* Nanoseconds: less is no silence. */
#define BURST_N_GAPS 18         /* Trials: up to 33 s of silence. */
#define BURST_BIN 10000000u     /* Nanoseconds. */
#define BURST_N_BINS 128        /* A power of 2. */

struct burst_profile {
    uint64_t period_ns;         /* From one beginning to the next. */
    uint64_t burst_bytes;
    uint32_t duty;              /* Share of the period that a burst lasts,
                                 * and how alike bursts are, from 1/2 on: both
                                 * in millionths. */
    uint32_t regularity;
};

/* How one trial sees the packets. */
struct burst_trial {
    uint64_t begin;             /* Of the burst that goes on. */
    uint64_t base;              /* Bytes before it. */
    uint64_t reference;         /* Begin of the burst before, 0 if none. */
    uint32_t n;                 /* Bursts behind the averages. */
    uint32_t n_odd;             /* The last ones that were far from them. */
    float regularity;           /* 0 to 1. */
    float period, period_var;   /* Nanoseconds... */
    float bytes, bytes_var;
    float busy;                 /* ...of the burst itself. */
};

struct burst_train {
    uint64_t last;              /* Time of the last packet, 0: none yet. */
    uint64_t bytes;             /* Of all packets. */
    uint64_t bin_end;           /* Of the bin that fills: a multiple of
                                 * BURST_BIN, 0 before the first packet. */
    uint64_t bin_base;          /* Bytes before it. */

    /* What is believed, written by the counting thread. */
    uint64_t period_ns;         /* 0: nothing yet. */
    uint64_t burst_bytes;
    uint64_t shares;            /* Duty, regularity in the low half. */

    struct burst_trial trials[BURST_N_GAPS];
    uint32_t bins[BURST_N_BINS];        /* Bin i is at i % BURST_N_BINS. */
};

void burst_train_bin(struct burst_train *, uint64_t now);
uint64_t burst_train_bins(const struct burst_train *, uint64_t now,
                          uint64_t since, uint32_t bins[BURST_N_BINS]);
void burst_train_gap(struct burst_train *, uint64_t now);
bool burst_train_get(const struct burst_train *, uint64_t now,
                     struct burst_profile *);

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

#endif /* shim/classify/burst-train.h */
