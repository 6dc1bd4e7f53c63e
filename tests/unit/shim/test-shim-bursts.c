/* SPDX-License-Identifier: Apache-2.0 */

/* Trains of packets made by rule and by chance, and what is seen of them. */

#include <stdint.h>
#include <string.h>

#include "shim/classify/bursts.h"
#include "tests/unit/unit-test.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)

static struct burst_train train;
static uint64_t now, seed;

static int
begin(void **state)
{
    memset(&train, 0, sizeof train);
    now = SECOND;
    seed = 1;
    return 0;
}

/* A number from 0 to 1, the same ones in each run. */
static double
chance(void)
{
    seed = seed * UINT64_C(6364136223846793005)
           + UINT64_C(1442695040888963407);
    return (seed >> 11) / 9007199254740992.0;
}

/* 'x', up to 'share' of it more or less. */
static uint64_t
about(uint64_t x, double share)
{
    return x * (1 + share * (2 * chance() - 1));
}

/* 'n' packets of 1500 bytes, 'gap' after one another. */
static void
burst(int n, uint64_t gap, double jitter)
{
    for (int i = 0; i < n; i++) {
        burst_train_count(&train, 1500, now);
        now += about(gap, jitter);
    }
}

static void
check(uint64_t period, uint64_t bytes, double duty, double tolerance)
{
    struct shim_burst_stats p;

    assert_true(burst_train_get(&train, now, &p));
    assert_in_range(p.period_ns, period * (1 - tolerance),
                    period * (1 + tolerance));
    assert_in_range(p.bytes, bytes * (1 - tolerance),
                    bytes * (1 + tolerance));
    assert_true(p.duty >= 1e6 * (duty - tolerance)
                && p.duty <= 1e6 * (duty + tolerance));
}

UNIT_TEST_BETWEEN(sees_iterations_after_a_few_bursts, begin, NULL)
{
    struct shim_burst_stats p;

    for (int i = 0; i < 3; i++) {
        assert_false(burst_train_get(&train, now, &p));
        burst(100, 100 * US, 0);
        now += 90 * MS;
    }
    burst(1, 0, 0);
    check(100 * MS, 150000, 0.1, 0.02);
    assert_true(burst_train_get(&train, now, &p));
    assert_in_range(p.regularity, 600000, 700000);
}

UNIT_TEST_BETWEEN(is_not_misled_by_jitter_and_gaps_within, begin, NULL)
{
    static const struct {
        uint64_t compute, gap;
        int n;
        double jitter;
    } cases[] = {
        { 400 * MS, 1 * MS, 100, 0.3 },         /* Paced. */
        { 400 * MS, 20 * MS, 10, 0.3 },         /* It must wait: starved. */
        { 20 * MS, 100 * US, 2000, 0.3 },       /* Hardly any compute time. */
        { 20 * MS, 1 * MS, 200, 0.3 },
        { 2 * MS, 10 * US, 100, 0.2 },          /* A fast network. */
        { 3 * SECOND, 5 * MS, 400, 0.3 },
    };
    struct shim_burst_stats p;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t length = cases[i].gap * cases[i].n;

        begin(NULL);
        for (int j = 0; j < 40; j++) {
            burst(cases[i].n, cases[i].gap, cases[i].jitter);
            now += about(cases[i].compute, cases[i].jitter / 2);
        }
        burst(1, 0, 0);
        check(length + cases[i].compute, 1500 * cases[i].n,
              (double) length / (length + cases[i].compute), 0.1);
        assert_true(burst_train_get(&train, now, &p));
        assert_true(p.regularity > 900000);
    }
}

UNIT_TEST_BETWEEN(parts_of_an_iteration_are_not_iterations, begin, NULL)
{
    for (int i = 0; i < 20; i++) {
        for (int layer = 0; layer < 4; layer++) {
            burst(50, 50 * US, 0.2);
            now += about(8 * MS, 0.2);
        }
        now += about(300 * MS, 0.05);
    }
    burst(1, 0, 0);
    check(4 * (10500 * US) + 300 * MS, 4 * 50 * 1500, 0.1, 0.05);
}

UNIT_TEST_BETWEEN(heartbeats_in_the_silence_do_not_matter, begin, NULL)
{
    for (int i = 0; i < 20; i++) {
        burst(500, 50 * US, 0.2);
        for (int j = 0; j < 4; j++) {
            now += about(50 * MS, 0.1);
            burst_train_count(&train, 66, now);
        }
        now += about(50 * MS, 0.1);
    }
    burst(1, 0, 0);
    check(275 * MS, 750000, 0.09, 0.08);
}

UNIT_TEST_BETWEEN(follows_a_job_that_changes, begin, NULL)
{
    for (int i = 0; i < 50; i++) {
        burst(100, 100 * US, 0.2);
        now += 390 * MS;
    }
    check(400 * MS, 150000, 0.025, 0.02);
    for (int i = 0; i < 60; i++) {
        burst(20, 100 * US, 0.2);
        now += 38 * MS;
    }
    burst(1, 0, 0);
    check(40 * MS, 30000, 0.05, 0.05);
}

UNIT_TEST_BETWEEN(claims_nothing_of_what_has_no_bursts, begin, NULL)
{
    struct shim_burst_stats p;
    int n = 0;

    burst(200000, 100 * US, 0.9);               /* It never pauses. */
    assert_false(burst_train_get(&train, now, &p));

    begin(NULL);
    for (int i = 0; i < 500; i++) {             /* Anything at any time. */
        burst(1 + 1000 * chance() * chance() * chance(), 50 * US, 0.5);
        now += 300 * MS * chance() * chance() * chance();
        n += burst_train_get(&train, now, &p) && p.regularity > 700000;
    }
    assert_in_range(n, 0, 5);
}

UNIT_TEST_BETWEEN(forgets_what_is_over, begin, NULL)
{
    struct shim_burst_stats p;

    for (int i = 0; i < 10; i++) {
        burst(100, 100 * US, 0);
        now += 90 * MS;
    }
    assert_true(burst_train_get(&train, now, &p));
    assert_false(burst_train_get(&train, now + 400 * MS, &p));
    assert_true(burst_train_get(&train, now - SECOND, &p));
}

UNIT_TEST_BETWEEN(a_slot_that_changes_hands_begins_again, begin, NULL)
{
    struct bursts *b = bursts_create();
    struct shim_burst_stats s;

    for (int i = 0; i < 10; i++) {
        for (int slot = 0; slot < 3; slot++) {
            bursts_count(b, slot, BURSTS_TX, 1000, now);
            bursts_count(b, slot, BURSTS_RX, 50, now);
        }
        now += 10 * MS;
    }
    bursts_get(b, 0, BURSTS_TX, now, &s);
    assert_int_equal(s.period_ns, 0);
    bursts_get(b, 2, BURSTS_TX, now, &s);
    assert_in_range(s.period_ns, 10 * MS - 1000, 10 * MS + 1000);
    assert_int_equal(s.bytes, 1000);
    bursts_get(b, 2, BURSTS_RX, now, &s);
    assert_int_equal(s.bytes, 50);

    bursts_reset(b, 2);
    bursts_get(b, 2, BURSTS_TX, now, &s);
    assert_int_equal(s.period_ns, 0);
    bursts_count(b, 2, BURSTS_RX, 50, now);
    bursts_get(b, 2, BURSTS_TX, now, &s);
    assert_int_equal(s.period_ns, 0);
    bursts_get(b, 1, BURSTS_TX, now, &s);
    assert_int_equal(s.bytes, 1000);
    bursts_destroy(b);
}

UNIT_TEST_BETWEEN(keeps_the_bytes_of_the_last_second, begin, NULL)
{
    struct bursts *b = bursts_create();
    struct shim_bin bins[SHIM_MAX_BINS];
    uint64_t first, bin = now / BURST_BIN;

    assert_int_equal(bursts_bins(b, 1, now, bin - 3, &first, bins), 3);
    assert_int_equal(bins[2].tx, 0);
    bursts_count(b, 1, BURSTS_TX, 1000, now);
    bursts_count(b, 1, BURSTS_TX, 500, now + 3 * MS);
    bursts_count(b, 1, BURSTS_RX, 70, now + 9 * MS);

    /* A bin that has not ended is not reported. */
    assert_int_equal(bursts_bins(b, 1, now + 9 * MS, bin, &first, bins), 0);
    assert_int_equal(bursts_bins(b, 1, now + 10 * MS, bin, &first, bins), 1);
    assert_int_equal(first, bin);
    assert_int_equal(bins[0].tx, 1500);
    assert_int_equal(bins[0].rx, 70);

    /* Empty ones are, also those after the last packet. */
    bursts_count(b, 1, BURSTS_TX, 7, now + 45 * MS);
    assert_int_equal(bursts_bins(b, 1, now + 65 * MS, bin, &first, bins), 6);
    assert_int_equal(bins[0].tx, 1500);
    assert_int_equal(bins[1].tx, 0);
    assert_int_equal(bins[4].tx, 7);
    assert_int_equal(bins[5].tx, 0);
    assert_int_equal(bursts_bins(b, 1, now + 65 * MS, bin + 4, &first, bins),
                     2);
    assert_int_equal(bins[0].tx, 7);

    /* A late request gets the latest. */
    bursts_count(b, 1, BURSTS_TX, 9, now + 3000 * MS);
    assert_int_equal(bursts_bins(b, 1, now + 3010 * MS, bin, &first, bins),
                     SHIM_MAX_BINS);
    assert_int_equal(first, bin + 301 - SHIM_MAX_BINS);
    assert_int_equal(bins[SHIM_MAX_BINS - 1].tx, 9);
    for (int i = 0; i < SHIM_MAX_BINS - 1; i++) {
        assert_int_equal(bins[i].tx, 0);
    }

    /* Another job's slot has none of it. */
    bursts_reset(b, 1);
    assert_int_equal(bursts_bins(b, 1, now + 3010 * MS, bin, &first, bins),
                     0);
    bursts_destroy(b);
}

UNIT_TEST_BETWEEN(loses_no_byte_between_bins, begin, NULL)
{
    struct bursts *b = bursts_create();
    struct shim_bin bins[SHIM_MAX_BINS];
    uint64_t sent = 0, told = 0, next = now / BURST_BIN, first;

    for (int i = 0; i < 20000; i++) {
        uint32_t bytes = 60 + 9000 * chance();

        bursts_count(b, 5, BURSTS_TX, bytes, now);
        sent += bytes;
        now += about(i % 100 ? 300 * US : 60 * MS, 0.9);
        if (i % 300 == 299) {
            size_t n = bursts_bins(b, 5, now, next, &first, bins);

            assert_true(first >= next);
            for (size_t j = 0; j < n; j++) {
                told += bins[j].tx;
            }
            next = first + n;
        }
    }
    now += 10 * MS;
    for (size_t j = bursts_bins(b, 5, now, next, &first, bins); j--; ) {
        told += bins[j].tx;
    }
    assert_int_equal(told, sent);
    bursts_destroy(b);
}
