/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/cc/allocate.h"
#include "tests/unit/unit-test.h"

#define MBIT UINT64_C(1000000)
#define MAX 600

/* Divides 'bps' without a phantom queue. */
static void
allocate(struct cc_share *shares, size_t n, uint64_t bps, double floor)
{
    cc_divide(shares, n, &(struct cc_budget) { .most = bps / 8.0 }, floor);
}

static uint64_t
sum_of(const struct cc_share *s, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += s[i].rate;
    }
    return sum;
}

static const struct cc_share *
share_of(const struct cc_share *s, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i].id == id) {
            return &s[i];
        }
    }
    fail_msg("share %u is lost", id);
    return NULL;
}

static size_t
random_shares(struct cc_share *s)
{
    size_t n = 1 + random() % (random() % 8 ? 20 : MAX);
    uint32_t n_ranks = 1 + random() % 5;

    for (size_t i = 0; i < n; i++) {
        s[i] = (struct cc_share) {
            .demand = random() % 3 ? random() % (300 * MBIT) : 1000 * MBIT,
            .rank = random() % n_ranks,
            .id = i,
        };
    }
    return n;
}

/* Cases with an obvious result. */
UNIT_TEST(fills_ranks_in_order)
{
    struct cc_share s[] = {
        { .demand = 100 * MBIT, .rank = 2, .id = 0 },
        { .demand = 30 * MBIT, .rank = 1, .id = 1 },
        { .demand = 100 * MBIT, .rank = 1, .id = 2 },
        { .demand = 100 * MBIT, .rank = 1, .id = 3 },
    };

    allocate(s, 4, 100 * MBIT, 0);
    assert_int_equal(share_of(s, 4, 0)->rate, 0);
    assert_int_equal(share_of(s, 4, 1)->rate, 30 * MBIT);
    assert_int_equal(share_of(s, 4, 2)->rate, 35 * MBIT);
    assert_int_equal(share_of(s, 4, 3)->rate, 35 * MBIT);

    /* With a floor, the last one gets its part. */
    allocate(s, 4, 100 * MBIT, 0.08);
    assert_int_equal(share_of(s, 4, 0)->rate, 2 * MBIT);
    assert_int_equal(share_of(s, 4, 1)->rate, 30 * MBIT);
    assert_int_equal(share_of(s, 4, 2)->rate, 34 * MBIT);

    /* The rest is divided among all. */
    allocate(s, 4, 430 * MBIT, 0);
    assert_int_equal(share_of(s, 4, 0)->rate, 125 * MBIT);
    assert_int_equal(share_of(s, 4, 1)->rate, 55 * MBIT);
    allocate(s, 0, 100, 0.1);
}

UNIT_TEST(grants_sum_to_the_budget)
{
    struct cc_share s[MAX];

    srandom(1);
    for (int i = 0; i < 20000; i++) {
        size_t n = random_shares(s);
        uint64_t a = random() % (1000 * MBIT);

        allocate(s, n, a, random() % 100 / 200.0);
        assert_int_equal(sum_of(s, n), a);
    }
}

/* No share exceeds its demand while another one has less than its own. */
UNIT_TEST(demands_are_caps)
{
    struct cc_share s[MAX];

    srandom(2);
    for (int i = 0; i < 20000; i++) {
        size_t n = random_shares(s);
        bool more = false, less = false;

        allocate(s, n, random() % (1000 * MBIT), random() % 100 / 200.0);
        for (size_t j = 0; j < n; j++) {
            more |= s[j].rate > s[j].demand;
            less |= s[j].rate < s[j].demand;
        }
        assert_false(more && less);
    }
}

/* With equal demand, an earlier rank gets no less; shares of equal rank differ
 * by rounding only; each gets the floor. */
UNIT_TEST(rank_is_monotone_and_the_floor_holds)
{
    struct cc_share s[MAX];

    srandom(3);
    for (int i = 0; i < 3000; i++) {
        size_t n = random_shares(s);
        uint64_t a = random() % (1000 * MBIT), demand = random() % (2 * a + 1);
        double floor = random() % 100 / 200.0;
        uint64_t part = a * floor / n;

        for (size_t j = 0; j < n; j++) {
            s[j].demand = demand;
        }
        allocate(s, n, a, floor);
        for (size_t j = 0; j < n; j++) {
            assert_true(s[j].rate >= (demand < part ? demand : part));
            if (j) {
                assert_true(s[j - 1].rank <= s[j].rank);
                assert_true(s[j - 1].rate + 2 >= s[j].rate);
                assert_true(s[j - 1].rank != s[j].rank
                            || s[j].rate + 2 >= s[j - 1].rate);
            }
        }
    }
}

/* Within a rank, only a flow with a smaller demand gets less. */
UNIT_TEST(ranks_are_max_min)
{
    struct cc_share s[MAX];

    srandom(4);
    for (int i = 0; i < 20000; i++) {
        size_t n = random_shares(s);

        allocate(s, n, random() % (1000 * MBIT), 0.05);
        for (size_t j = 1; j < n; j++) {
            if (s[j].rank == s[j - 1].rank
                && s[j - 1].rate + 2 < s[j].rate) {
                assert_true(s[j - 1].rate >= s[j - 1].demand);
            }
        }
    }
}

UNIT_TEST(budget_stays_in_its_bounds)
{
    struct cc_law law = CC_LAW_DEFAULT;
    struct cc_budget b = { 0 };

    srandom(5);
    for (int i = 0; i < 100000; i++) {
        struct cc_load seen = {
            .capacity = 100 * MBIT,
            .bytes = random() % 40000,
            .ns = 1 + random() % 2000000,
            .other = random() % (120 * MBIT),
            .rtt_ns = random() % 3 ? random() % 5000000 : 0,
            .slack = random() % 20000,
        };
        uint64_t a = cc_budget(&b, &law, &seen);

        assert_true(a >= 4999999 && a <= 97 * MBIT);
        assert_true(b.phantom >= 0);
    }
}

/* With senders that honour grants after a round trip, the phantom queue of a
 * start at twice the rate drains and does not return. */
UNIT_TEST(phantom_queue_drains_without_overshoot)
{
    enum { DELAY = 10, STEP_NS = 100000 };
    struct cc_law law = CC_LAW_DEFAULT;
    struct cc_budget b = { 0 };
    uint64_t rates[DELAY], c = 1000 * MBIT;
    double highest = 0;

    for (int i = 0; i < DELAY; i++) {
        rates[i] = 2 * c;
    }
    for (int i = 0; i < 3000; i++) {
        struct cc_load seen = {
            .capacity = c,
            .bytes = rates[i % DELAY] / 8 / 10000,
            .ns = STEP_NS,
            .rtt_ns = DELAY * STEP_NS,
        };
        double before = b.phantom;

        rates[i % DELAY] = cc_budget(&b, &law, &seen);
        highest = b.phantom > highest ? b.phantom : highest;
        if (i > DELAY) {
            assert_true(b.phantom <= before + 1);
        }
    }
    assert_true(highest > 100000);
    assert_true(b.phantom < highest / 100);
    assert_true(rates[0] > 969 * MBIT);
}

/* If a flow cannot be limited, the others keep their grants; otherwise the
 * budget falls by a quarter at most. */
UNIT_TEST(an_unlimited_flow_does_not_lower_the_budget)
{
    struct cc_law law = CC_LAW_DEFAULT;
    struct cc_budget b = { 0 };
    struct cc_load seen = {
        .capacity = 100 * MBIT, .bytes = 12500, .ns = 1000000,
        .rtt_ns = 1000000,
    };

    for (int i = 0; i < 1000; i++) {
        cc_budget(&b, &law, &seen);
    }
    assert_int_equal(cc_budget(&b, &law, &seen), 97 * MBIT / 4 * 3);
    seen.rtt_ns = 0;
    assert_int_equal(cc_budget(&b, &law, &seen), 97 * MBIT);
    seen.rtt_ns = 1000000;
    seen.bytes = 0;
    assert_int_equal(cc_budget(&b, &law, &seen), 97 * MBIT);
}

/* Excess of a later rank does not lower the grants of earlier ones; excess of
 * the first rank does. */
UNIT_TEST(excess_lowers_the_budget_of_its_rank_and_later)
{
    const uint64_t full = 97 * MBIT, cut = 97 * MBIT / 4 * 3;
    struct cc_law law = CC_LAW_DEFAULT;
    struct cc_load seen = {
        .capacity = 100 * MBIT, .bytes = 12500, .ns = 1000000,
        .rtt_ns = 1000000,
    };
    static const struct {
        double first, second, third;    /* Bytes of excess. */
        bool first_cut, second_cut;
    } cases[] = {
        { 0, 0, 1e6, false, false },
        { 0, 1e6, 0, false, true },
        { 1e6, 0, 0, true, true },
        { 0, 0, 0, true, true },        /* Excess of no share. */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cc_budget b = { 0 };
        struct cc_share s[] = {
            { .demand = 20 * MBIT, .rank = 1, .id = 0,
              .excess = cases[i].first },
            { .demand = 100 * MBIT, .rank = 2, .id = 1,
              .excess = cases[i].second },
            { .demand = 100 * MBIT, .rank = 3, .id = 2,
              .excess = cases[i].third },
        };

        for (int j = 0; j < 1000; j++) {
            cc_budget(&b, &law, &seen);
        }
        cc_divide(s, 3, &b, 0);
        assert_int_equal(share_of(s, 3, 0)->rate, 20 * MBIT);
        assert_int_equal(share_of(s, 3, 1)->rate,
                         (cases[i].second_cut ? cut : full) - 20 * MBIT);
        assert_int_equal(share_of(s, 3, 2)->rate, 0);

        for (int j = 0; j < 3; j++) {
            s[j].rank = s[j].id;
            s[j].demand = 100 * MBIT;
        }
        cc_divide(s, 3, &b, 0);
        assert_int_equal(share_of(s, 3, 0)->rate,
                         cases[i].first_cut ? cut : full);
    }
}

enum later {
    NOT_BUSY,                   /* No sender is busy with other flows. */
    BUSY_SENDER,
    SORTED,                     /* The switch serves the ranks in order. */
};

/* Runs the law for 'ms' with 'bps' arriving, then divides the link between a
 * first and a later rank that can use all of it.  Returns the later one's
 * rate. */
static uint64_t
later_rate(struct cc_budget *b, enum later kind, uint64_t bps, int ms)
{
    struct cc_law law = CC_LAW_DEFAULT;
    struct cc_share s[] = {
        { .demand = 100 * MBIT, .rank = 1, .id = 0 },
        { .demand = 100 * MBIT, .rank = 2, .id = 1 },
    };
    struct cc_load seen = {
        .capacity = 100 * MBIT, .bytes = bps / 8000, .ns = 1000000,
        .rtt_ns = 1000000, .slack = 36000, .busy = true,
        .elsewhere = kind == BUSY_SENDER, .sorted = kind == SORTED,
    };

    for (int i = 0; i < ms; i++) {
        cc_budget(b, &law, &seen);
    }
    cc_divide(s, 2, b, law.floor);
    return s[0].id ? s[0].rate : s[1].rate;
}

/* The first rank has the whole link but its sender is busy. */
UNIT_TEST(what_a_busy_sender_cannot_use_is_granted_again)
{
    struct cc_budget b = { 0 };

    b.used = 97 * MBIT / 8;
    assert_true(later_rate(&b, BUSY_SENDER, 97 * MBIT, 30) < 3 * MBIT);
    assert_true(later_rate(&b, BUSY_SENDER, 40 * MBIT, 1) < 15 * MBIT);
    assert_in_range(later_rate(&b, BUSY_SENDER, 40 * MBIT, 30), 50 * MBIT,
                    60 * MBIT);
    assert_true(later_rate(&b, NOT_BUSY, 40 * MBIT, 1) < 3 * MBIT);

    /* The first rank sends after all. */
    assert_true(later_rate(&b, BUSY_SENDER, 97 * MBIT, 30) < 3 * MBIT);
}

/* A queue that serves the ranks in order may be long. */
UNIT_TEST(sorted_ranks_get_all_until_the_queue_is_long)
{
    struct cc_budget b = { 0 };

    assert_int_equal(later_rate(&b, SORTED, 100 * MBIT, 1), 100 * MBIT);
    assert_int_equal(later_rate(&b, SORTED, 200 * MBIT, 2), 100 * MBIT);
    assert_true(later_rate(&b, SORTED, 200 * MBIT, 3) < 5 * MBIT);
}
