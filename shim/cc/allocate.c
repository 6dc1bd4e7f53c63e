/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/allocate.h"

#define LEAST_PART 0.05         /* Part of the link that is always granted. */
#define MOST_CUT 0.25           /* Largest reduction by the phantom queue. */
#define MAX_PHANTOM_S 0.02      /* Limit of the phantom queue beyond its slack,
                                 * seconds. */
#define USED_S 5e-3             /* Time constant of the arrivals, seconds. */
#define NS_PER_S 1e9

static double
clamp(double x, double min, double max)
{
    return x < min ? min : x > max ? max : x;
}

/* Returns the bit/s that may be granted to a rank and all earlier ones, if
 * later ranks have 'behind' bytes of the phantom queue. */
static uint64_t
budget_before(const struct cc_budget *b, double behind)
{
    double excess = b->excess > behind ? b->excess - behind : 0;
    double cut = clamp(excess * b->drain, 0, MOST_CUT * b->most);

    return clamp(b->most - cut, b->least, b->most) * 8;
}

/* Measures how much of the budget arrives, and grants the rest again. */
static void
grant_again(struct cc_budget *b, const struct cc_load *seen)
{
    double part = seen->ns / NS_PER_S / USED_S;
    double now = seen->ns ? seen->bytes * NS_PER_S / seen->ns : b->used;

    if (seen->busy) {
        b->used += (part < 1 ? part : 1) * (now - b->used);
    } else {
        b->used = b->most;
    }
    b->again = !seen->rtt_ns || b->excess ? 0
               : seen->sorted ? CC_UNLIMITED
               : seen->elsewhere ? clamp(b->most - b->used, 0, b->most) : 0;
}

uint64_t
cc_budget(struct cc_budget *b, const struct cc_law *law,
          const struct cc_load *seen)
{
    double slack_ns = seen->slack * 8 * NS_PER_S / seen->capacity;
    double d = seen->rtt_ns > slack_ns ? seen->rtt_ns : slack_ns;
    double c = seen->capacity / 8.0, most = law->gamma * c;

    b->phantom += seen->bytes - most * seen->ns / NS_PER_S;
    b->phantom = !seen->rtt_ns ? 0
                 : clamp(b->phantom, 0, seen->slack + c * MAX_PHANTOM_S);
    b->least = LEAST_PART * c;
    b->most = clamp(most - seen->other / 8.0, b->least, most);
    b->excess = b->phantom > seen->slack ? b->phantom - seen->slack : 0;
    b->drain = d > 0 ? law->beta * NS_PER_S / d : 0;
    grant_again(b, seen);
    return budget_before(b, 0);
}

static bool
goes_before(const struct cc_share *a, const struct cc_share *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->demand < b->demand;
}

/* Sorts by rank, then demand, in place: qsort() may allocate memory. */
static void
sort_shares(struct cc_share *shares, size_t n)
{
    static const size_t gaps[] = { 1750, 701, 301, 132, 57, 23, 10, 4, 1 };

    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        for (size_t i = gaps[g]; i < n; i++) {
            struct cc_share share = shares[i];
            size_t j = i;

            while (j >= gaps[g] && goes_before(&share, &shares[j - gaps[g]])) {
                shares[j] = shares[j - gaps[g]];
                j -= gaps[g];
            }
            shares[j] = share;
        }
    }
}

/* Divides 'bps' among the 'n' shares of a rank, which are sorted by demand,
 * max-min.  Returns the rest. */
static uint64_t
fill_rank(struct cc_share *shares, size_t n, uint64_t bps)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t wants = shares[i].demand - shares[i].rate;
        uint64_t part = bps / (n - i);
        uint64_t gets = wants < part ? wants : part;

        shares[i].rate += gets;
        bps -= gets;
    }
    return bps;
}

/* Gives each share an equal part of 'floor', up to its demand.  Returns the
 * rest of 'bps'. */
static uint64_t
fill_floor(struct cc_share *shares, size_t n, uint64_t bps, double floor)
{
    uint64_t part = bps * clamp(floor, 0, 1) / n;

    for (size_t i = 0; i < n; i++) {
        shares[i].rate = shares[i].demand < part ? shares[i].demand : part;
        bps -= shares[i].rate;
    }
    return bps;
}

static double
excess_of(const struct cc_share *shares, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += shares[i].excess;
    }
    return sum;
}

void
cc_divide(struct cc_share *shares, size_t n, const struct cc_budget *b,
          double floor)
{
    uint64_t all = budget_before(b, 0), used;
    double behind = excess_of(shares, n);
    size_t end;

    if (!n) {
        return;
    }
    sort_shares(shares, n);
    used = all - fill_floor(shares, n, all, floor);
    for (size_t i = 0; i < n; i = end) {
        uint64_t bps;

        for (end = i; end < n && shares[end].rank == shares[i].rank; end++) {
            continue;
        }
        behind -= excess_of(&shares[i], end - i);
        bps = budget_before(b, behind) + b->again * 8;
        bps = bps > used ? bps - used : 0;
        used += bps - fill_rank(&shares[i], end - i, bps);
    }
    all = all > used ? all - used : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t part = all / (n - i);

        shares[i].rate += part;
        all -= part;
    }
}
