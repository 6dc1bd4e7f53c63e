/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/burst-train.h"

#include <string.h>

#define MIN_BURSTS 3            /* Before a trial is believed. */
#define MEMORY 16               /* Bursts in its averages. */
#define STALE 4                 /* Periods without a burst: it is over. */
#define NOISE 16                /* A burst of 1/NOISE of the usual is none. */
#define ODD 2                   /* Twice or half of the usual is odd... */
#define MAX_ODD 3               /* ...and so many in a row the usual. */
#define MIN_REGULARITY 0.5f     /* Chance has 1/3: see below. */
#define UNIT 1000000.0f

/* Moves mean and variance by 'x', the n-th of them. */
static void
average(float *mean, float *variance, float x, uint32_t n)
{
    float gain = 1.0f / (n < MEMORY ? n : MEMORY);
    float d = x - *mean;

    *mean += gain * d;
    *variance = (1 - gain) * (*variance + gain * d * d);
}

static bool
is_odd(float x, float mean)
{
    return x > mean * ODD || x * ODD < mean;
}

/* Begins the averages anew with a burst of 'size' bytes that lasted 'busy'. */
static void
start(struct burst_trial *trial, float size, float busy)
{
    trial->n = 1;
    trial->n_odd = 0;
    trial->bytes = size;
    trial->busy = busy;
    trial->bytes_var = trial->period_var = 0;
}

/* Takes one more burst, which began 'period' after the one before.  Bursts are
 * regular (1) if all are the same, less so by their squared coefficients of
 * variation, each of which is about 1 where chance rules, and by how few they
 * are. */
static void
learn(struct burst_trial *trial, float size, float busy, float period)
{
    float unused = 0, score;
    uint32_t n = ++trial->n;

    if (n == 2) {
        trial->period = period;
    }
    trial->n_odd = (is_odd(size, trial->bytes)
                    || is_odd(period, trial->period)) ? trial->n_odd + 1 : 0;
    average(&trial->bytes, &trial->bytes_var, size, n);
    average(&trial->busy, &unused, busy, n);
    average(&trial->period, &trial->period_var, period, n - 1);
    score = trial->period_var / trial->period / trial->period
            + trial->bytes_var / trial->bytes / trial->bytes;
    trial->regularity = (1 - 1.0f / n) / (1 + score);
}

/* Ends the burst of 'trial' whose last packet came at 'end', when the train
 * had 'bytes'. */
static void
end_burst(struct burst_trial *trial, uint64_t end, uint64_t bytes)
{
    float size = bytes - trial->base;

    if (trial->n && size * NOISE < trial->bytes) {
        return;
    }
    if (!trial->n || trial->n_odd >= MAX_ODD) {
        start(trial, size, end - trial->begin);
    } else {
        learn(trial, size, end - trial->begin,
              trial->begin - trial->reference);
    }
    trial->reference = trial->begin;
}

static bool
is_believable(const struct burst_trial *trial, uint64_t now)
{
    return (trial->n >= MIN_BURSTS && trial->regularity > MIN_REGULARITY
            && now - trial->reference < trial->period * STALE);
}

static void
publish(struct burst_train *t, const struct burst_trial *best)
{
    uint64_t duty = 0, regularity = 0, period = 0, bytes = 0;

    if (best) {
        float share = best->busy / best->period;

        period = best->period;
        bytes = best->bytes;
        duty = (share < 1 ? share : 1) * UNIT;
        regularity = best->regularity * UNIT;
    }
    __atomic_store_n(&t->burst_bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&t->shares, duty << 32 | regularity, __ATOMIC_RELAXED);
    __atomic_store_n(&t->period_ns, period, __ATOMIC_RELAXED);
}

/* A packet comes at 'now', BURST_MIN_GAP or more after the last one: bursts
 * end for all trials that have no more patience than that. */
void
burst_train_gap(struct burst_train *t, uint64_t now)
{
    uint64_t gap = now - t->last, limit = BURST_MIN_GAP;
    const struct burst_trial *best = NULL;
    bool first = !t->last;

    for (int i = 0; i < BURST_N_GAPS; i++, limit *= 2) {
        struct burst_trial *trial = &t->trials[i];

        if (gap >= limit) {
            if (!first) {
                end_burst(trial, t->last, t->bytes);
            }
            trial->begin = now;
            trial->base = t->bytes;
        }
        if (is_believable(trial, now)
            && (!best || trial->regularity > best->regularity)) {
            best = trial;
        }
    }
    publish(t, best);
}

/* A packet comes at 'now', when the bin that filled has ended: it is closed,
 * and those since then were empty. */
void
burst_train_bin(struct burst_train *t, uint64_t now)
{
    uint64_t bin = now / BURST_BIN, old = t->bin_end / BURST_BIN - 1;
    uint64_t bytes = t->bytes - t->bin_base;

    if (t->bin_end) {
        __atomic_store_n(&t->bins[old % BURST_N_BINS],
                         bytes < UINT32_MAX ? bytes : UINT32_MAX,
                         __ATOMIC_RELAXED);
        for (uint64_t i = old + 1; i < bin && i <= old + BURST_N_BINS; i++) {
            __atomic_store_n(&t->bins[i % BURST_N_BINS], 0,
                             __ATOMIC_RELAXED);
        }
    }
    __atomic_store_n(&t->bin_base, t->bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&t->bin_end, (bin + 1) * BURST_BIN, __ATOMIC_RELEASE);
}

/* Returns the number of bins from bin number 'since' on that have ended before
 * 'now', at most the last BURST_N_BINS, and stores their bytes in 'bins', the
 * latest last.  A bin that the counting thread closes at this moment may come
 * out as its successor's. */
uint64_t
burst_train_bins(const struct burst_train *t, uint64_t now, uint64_t since,
                 uint32_t bins[BURST_N_BINS])
{
    uint64_t end = __atomic_load_n(&t->bin_end, __ATOMIC_ACQUIRE);
    uint64_t to = now / BURST_BIN, open = end / BURST_BIN - 1;
    uint64_t n = to > since ? to - since : 0;

    /* One less, since the oldest may be overwritten meanwhile. */
    n = n < BURST_N_BINS - 1 ? n : BURST_N_BINS - 1;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bin = to - n + i;
        uint32_t bytes = 0;

        if (!end) {
            /* Nothing ever. */
        } else if (bin < open && bin + BURST_N_BINS > open) {
            bytes = __atomic_load_n(&t->bins[bin % BURST_N_BINS],
                                    __ATOMIC_RELAXED);
        } else if (bin == open) {
            bytes = counter_get(&t->bytes) - counter_get(&t->bin_base);
        }
        bins[i] = bytes;
    }
    return n;
}

/* Stores in '*p' what is known at 'now'.  Returns false if that is nothing:
 * too few bursts yet, bursts that are not alike, or none for long. */
bool
burst_train_get(const struct burst_train *t, uint64_t now,
                struct burst_profile *p)
{
    uint64_t last = counter_get(&t->last), shares = counter_get(&t->shares);

    memset(p, 0, sizeof *p);
    p->period_ns = counter_get(&t->period_ns);
    p->burst_bytes = counter_get(&t->burst_bytes);
    p->duty = shares >> 32;
    p->regularity = shares;
    if (!p->period_ns || (now > last && now - last > STALE * p->period_ns)) {
        memset(p, 0, sizeof *p);
    }
    return p->period_ns != 0;
}
