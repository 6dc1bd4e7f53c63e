/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/bursts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MIN_BURSTS 3            /* Before a trial can be published. */
#define MEMORY 16               /* Bursts in the averages. */
#define STALE 4                 /* Burstless periods until a trial expires. */
#define NOISE 16                /* Bursts below mean / NOISE are ignored. */
#define ODD 2                   /* A burst is odd beyond ODD times the mean, or
                                 * below 1/ODD of it. */
#define MAX_ODD 3               /* Odd bursts in a row restart the averages. */
#define MIN_REGULARITY 0.5f     /* Random bursts have 1/3: see add_burst(). */
#define UNIT 1000000.0f

_Static_assert(SHIM_MAX_BINS == BURST_N_BINS - 1, "see burst_train_bins()");
_Static_assert(SHIM_BIN_MS * 1000000 == BURST_BIN, "bins have one size");

/* Adds the n-th value 'x' to a mean and variance. */
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

/* Restarts the averages with a burst of 'size' bytes that lasted 'busy'. */
static void
restart_averages(struct burst_trial *trial, float size, float busy)
{
    trial->n = 1;
    trial->n_odd = 0;
    trial->bytes = size;
    trial->busy = busy;
    trial->bytes_var = trial->period_var = 0;
}

/* Adds a burst that began 'period' after the one before.  The regularity is 1
 * for many equal bursts.  It falls with the squared coefficients of variation
 * of period and bytes, each about 1 for random bursts, and with fewer
 * bursts. */
static void
add_burst(struct burst_trial *trial, float size, float busy, float period)
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

/* Ends the burst of 'trial' with its last packet at 'end' and after 'bytes' of
 * the train. */
static void
end_burst(struct burst_trial *trial, uint64_t end, uint64_t bytes)
{
    float size = bytes - trial->base;

    if (trial->n && size * NOISE < trial->bytes) {
        return;
    }
    if (!trial->n || trial->n_odd >= MAX_ODD) {
        restart_averages(trial, size, end - trial->begin);
    } else {
        add_burst(trial, size, end - trial->begin,
                  trial->begin - trial->reference);
    }
    trial->reference = trial->begin;
}

static bool
is_regular(const struct burst_trial *trial, uint64_t now)
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

/* Ends the current burst of every trial with a gap threshold of at most the
 * gap before the packet that came at 'now', which is at least
 * BURST_MIN_GAP. */
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
        if (is_regular(trial, now)
            && (!best || trial->regularity > best->regularity)) {
            best = trial;
        }
    }
    publish(t, best);
}

/* Closes the current bin for a packet that came at 'now', after its end.  The
 * bins in between were empty. */
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
            __atomic_store_n(&t->bins[i % BURST_N_BINS], 0, __ATOMIC_RELAXED);
        }
    }
    __atomic_store_n(&t->bin_base, t->bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&t->bin_end, (bin + 1) * BURST_BIN, __ATOMIC_RELEASE);
}

/* Stores in 'bins' the bytes of the bins from number 'since' on that ended
 * before 'now', at most the last BURST_N_BINS - 1, oldest first.  Returns
 * their number.  For a bin that the counting thread is closing, the value may
 * belong to the next bin. */
static uint64_t
burst_train_bins(const struct burst_train *t, uint64_t now, uint64_t since,
                 uint32_t bins[BURST_N_BINS])
{
    uint64_t end = __atomic_load_n(&t->bin_end, __ATOMIC_ACQUIRE);
    uint64_t to = now / BURST_BIN, open = end / BURST_BIN - 1;
    uint64_t n = to > since ? to - since : 0;

    /* The oldest bin may be overwritten meanwhile. */
    n = n < BURST_N_BINS - 1 ? n : BURST_N_BINS - 1;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bin = to - n + i;
        uint32_t bytes = 0;

        if (!end) {
            /* No packet so far. */
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

/* Stores the published trial in '*stats'.  Returns false, with zeros in
 * '*stats', if there were too few bursts, irregular bursts, or none for STALE
 * periods. */
bool
burst_train_get(const struct burst_train *t, uint64_t now,
                struct shim_burst_stats *stats)
{
    uint64_t last = counter_get(&t->last), shares = counter_get(&t->shares);
    uint64_t period_ns = counter_get(&t->period_ns);

    *stats = (struct shim_burst_stats) { .period_ns = 0 };
    if (!period_ns || (now > last && now - last > STALE * period_ns)) {
        return false;
    }
    stats->period_ns = period_ns;
    stats->bytes = counter_get(&t->burst_bytes);
    stats->duty = shares >> 32;
    stats->regularity = shares;
    return true;
}

struct bursts *
bursts_create(void)
{
    return allocate(1, sizeof(struct bursts));
}

void
bursts_destroy(struct bursts *b)
{
    free(b);
}

/* Executes a reset of 'slot'. */
void
bursts_begin_again(struct bursts *b, uint16_t slot)
{
    memset(b->trains[slot], 0, sizeof b->trains[slot]);
    __atomic_store_n(&b->reset[slot], 0, __ATOMIC_RELEASE);
}

/* Requests a reset: the next packet of 'slot' is the first of another job. */
void
bursts_reset(struct bursts *b, uint16_t slot)
{
    __atomic_store_n(&b->reset[slot], 1, __ATOMIC_RELEASE);
}

/* Stores the bursts of 'slot' in '*stats', zeros if they are not regular. */
void
bursts_get(const struct bursts *b, uint16_t slot,
           enum bursts_direction direction, uint64_t now,
           struct shim_burst_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    if (!__atomic_load_n(&b->reset[slot], __ATOMIC_ACQUIRE)) {
        burst_train_get(&b->trains[slot][direction], now, stats);
    }
}

/* Stores in 'bins' the bytes of 'slot' in each bin from number 'since' on that
 * ended before 'now', and the number of the first bin in '*firstp'.  Returns
 * the number of bins. */
size_t
bursts_bins(const struct bursts *b, uint16_t slot, uint64_t now,
            uint64_t since, uint64_t *firstp,
            struct shim_bin bins[SHIM_MAX_BINS])
{
    uint32_t bytes[2][BURST_N_BINS];
    size_t n = 0;

    *firstp = now / BURST_BIN;
    if (!__atomic_load_n(&b->reset[slot], __ATOMIC_ACQUIRE)) {
        for (int i = BURSTS_TX; i <= BURSTS_RX; i++) {
            n = burst_train_bins(&b->trains[slot][i], now, since, bytes[i]);
        }
    }
    *firstp -= n;
    for (size_t i = 0; i < n; i++) {
        bins[i].tx = bytes[BURSTS_TX][i];
        bins[i].rx = bytes[BURSTS_RX][i];
    }
    return n;
}
