/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs made by rule and by chance, and two that were recorded
 * (tests/data/pytorch-*.bins: bytes sent and received in each hundredth of a
 * second by one of two ranks that train in 60 iterations). */

#include <config.h>

#include <stdio.h>

#include "agent/progress/iterations.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/shim-protocol.h"

#define BIN_S 0.01

static struct iterations *it;
static double now_s;            /* Of what follows. */
static double filled;           /* Bytes of the bin that is not full... */
static double filled_rx;
static uint64_t bin, seed;

static int
set_up(void **state OVS_UNUSED)
{
    it = iterations_create();
    now_s = filled = filled_rx = 0;
    bin = 1000;
    seed = 7;
    return 0;
}

static int
tear_down(void **state OVS_UNUSED)
{
    iterations_destroy(it);
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
static double
about(double x, double share)
{
    return x * (1 + share * (2 * chance() - 1));
}

/* For 'seconds' bytes go at 'rate' and come at 'rate_rx', per second. */
static void
pass(double seconds, double rate, double rate_rx)
{
    double to = now_s + seconds;

    while (now_s < to) {
        double bin_end = (bin - 999) * BIN_S;
        double part = MIN(to, bin_end) - now_s;

        filled += part * rate;
        filled_rx += part * rate_rx;
        now_s += part;
        if (now_s >= bin_end - 1e-9) {
            struct shim_bin b = { filled, filled_rx };

            iterations_add_bins(it, bin++, &b, 1, now_s * 1000);
            now_s = bin_end;
            filled = filled_rx = 0;
        }
    }
}

/* 'bytes' go and as many come, at about 'rate', with stops by chance as long
 * as what is sent takes, times 'stops'. */
static void
exchange(double bytes, double rate, double stops)
{
    double left = bytes;

    while (left > 1) {
        double some = about(bytes / 10, 0.8), here = about(rate, 0.3);
        double part = MIN(left, some);

        pass(part / here, here, here);
        pass(stops * 2 * chance() * part / here, 0, 0);
        left -= part;
    }
}

static void
assert_counted(int n, double share)
{
    assert_in_range(iterations_count(it), n * (1 - share) - 1,
                    n * (1 + share) + 1);
}

FIXTURE_TEST(knows_nothing_at_first)
{
    assert_int_equal(iterations_count(it), -1);
    pass(5, 0, 0);
    assert_int_equal(iterations_count(it), -1);
    exchange(1e6, 5e6, 0);
    assert_int_equal(iterations_count(it), -1);
}

FIXTURE_TEST(counts_despite_jitter)
{
    static const struct {
        double compute, bytes, rate, stops;
    } cases[] = {
        { 0.1, 1e6, 5e6, 0 },
        { 0.1, 1e6, 5e6, 0.5 },         /* Others are in its way. */
        { 0.2, 4e6, 1e6, 0.1 },         /* Hardly any compute time. */
        { 0.05, 2e5, 5e6, 0 },
        { 2, 1e8, 1e8, 0.3 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        tear_down(NULL);
        set_up(NULL);
        pass(2, 0, 0);
        exchange(cases[i].bytes / 3, cases[i].rate, 0);
        for (int j = 0; j < 50; j++) {
            pass(about(cases[i].compute, 0.2), 0, 0);
            exchange(cases[i].bytes, cases[i].rate, cases[i].stops);
        }
        pass(1.5, 0, 0);
        assert_counted(50, 0.02);
    }
}

/* Gradients leave in buckets while the rest of them is computed. */
FIXTURE_TEST(buckets_are_not_iterations)
{
    static const double buckets[] = { 3e5, 3e5, 3e5, 1e5 };

    for (int i = 0; i < 60; i++) {
        pass(about(0.1, 0.1), 0, 0);            /* Forward. */
        for (size_t j = 0; j < ARRAY_SIZE(buckets); j++) {
            pass(about(0.04, 0.3), 0, 0);
            exchange(buckets[j], 8e6, 0.1);
        }
    }
    pass(1.5, 0, 0);
    assert_counted(60, 0.02);
}

/* All but the first bucket's computation is hidden. */
FIXTURE_TEST(overlap_hides_no_iterations)
{
    for (int i = 0; i < 60; i++) {
        pass(about(0.06, 0.2), 0, 0);
        exchange(2e6, 6e6, 0);
        if (i % 3 == 0) {
            pass(about(0.03, 0.5), 0, 0);       /* Late for once. */
        }
        exchange(1e6, 6e6, 0);
    }
    pass(1.5, 0, 0);
    assert_counted(60, 0.02);
}

/* Every other iteration moves twice as much. */
FIXTURE_TEST(iterations_may_differ)
{
    for (int i = 0; i < 60; i++) {
        pass(about(0.1, 0.1), 0, 0);
        exchange(i % 2 ? 2e6 : 1e6, 8e6, 0);
    }
    pass(1.5, 0, 0);
    assert_counted(60, 0.03);
}

/* A worker pushes, waits for the others, and pulls. */
FIXTURE_TEST(a_push_and_a_pull_are_one_iteration)
{
    for (int i = 0; i < 60; i++) {
        pass(about(0.1, 0.3), 0, 0);
        pass(about(0.2, 0.2), 5e6, 5e4);
        pass(about(0.1, 0.3), 0, 0);
        pass(0.2, 5e4, 5e6);
    }
    pass(1.5, 0, 0);
    assert_counted(60, 0.1);
}

FIXTURE_TEST(heartbeats_are_no_iterations)
{
    for (int i = 0; i < 200; i++) {
        pass(0.5, 0, 0);
        pass(0.01, 8000, 8000);
    }
    assert_int_equal(iterations_count(it), -1);
}

FIXTURE_TEST(claims_nothing_of_chance)
{
    for (int i = 0; i < 300; i++) {
        pass(0.3 * chance() * chance(), 0, 0);
        exchange(1e5 + 3e6 * chance() * chance(), 8e6, 0.2);
    }
    assert_in_range(iterations_count(it) + 1, 0, 40);
}

/* The job goes on with batches of another size. */
FIXTURE_TEST(goes_on_when_the_job_changes)
{
    for (int i = 0; i < 40; i++) {
        pass(about(0.1, 0.1), 0, 0);
        exchange(1e6, 8e6, 0);
    }
    assert_counted(40, 0.03);
    for (int i = 0; i < 60; i++) {
        pass(about(0.1, 0.1), 0, 0);
        exchange(1.37e6, 8e6, 0);
    }
    assert_counted(100, 0.12);
}

FIXTURE_TEST(bins_that_come_twice_or_never_do_no_harm)
{
    struct shim_bin bins[100];
    uint64_t first = 5000;

    for (int i = 0; i < 60; i++) {
        for (int j = 0; j < 100; j++) {
            bins[j].tx = bins[j].rx = j % 50 < 25 ? 40000 : 0;
        }
        /* The last ten again, and what was missed was silence. */
        iterations_add_bins(it, first, bins, 100, i * 1000);
        iterations_add_bins(it, first + 90, &bins[90], 10, i * 1000);
        first += 100;
    }
    iterations_add_bins(it, first + 500, bins, 10, 100000);
    assert_counted(120, 0.02);
    iterations_add_bins(it, 3, bins, 100, 101000);  /* Another clock. */
    iterations_add_bins(it, UINT64_MAX - 200, bins, 100, 102000);
    assert_counted(123, 0.03);
}

/* Feeds a recording up to 'seconds'. */
static void
replay(const char *file, double seconds)
{
    FILE *stream = fopen(file, "r");
    struct shim_bin b;
    long ms = 0;

    assert_non_null(stream);
    while (fscanf(stream, "%"SCNu32" %"SCNu32, &b.tx, &b.rx) == 2
           && ms < seconds * 1000) {
        iterations_add_bins(it, bin++, &b, 1, ms);
        ms += 10;
    }
    fclose(stream);
    pass(2, 0, 0);
}

FIXTURE_TEST(counts_pytorch_among_others)
{
    replay("tests/data/pytorch-shared.bins", 1e9);
    assert_counted(60, 0);
}

/* Served last for 35 s of its 56, it trickles at a fiftieth of the link. */
FIXTURE_TEST(counts_pytorch_that_is_starved)
{
    replay("tests/data/pytorch-starved.bins", 1e9);
    assert_counted(60, 0.02);
}

/* What counts as waiting, in bins of 10 ms on a link of 80 Mbit/s, which
 * carries 100,000 bytes in each. */

#define RATE_BPS 80000000
#define FULL 100000

/* Adds 'n' bins with these bytes in a row. */
static void
add_bins(struct waiting *w, size_t n, uint32_t tx, uint32_t rx)
{
    for (size_t i = 0; i < n; i++) {
        struct shim_bin b = { tx, rx };

        waiting_add_bins(w, bin++, &b, 1, RATE_BPS);
    }
}

static void
assert_waited(const struct waiting *w, double busy, double waited)
{
    assert_float_equal(w->busy, busy, 1e-9);
    assert_float_equal(w->waited, waited, 1e-9);
}

/* A burst of 1 MB lasts 0.1 s, from the middle of a bin to the middle of
 * another. */
FIXTURE_TEST(a_burst_at_the_rate_of_the_link_does_not_wait)
{
    struct waiting w = { .busy = 0 };

    for (int i = 0; i < 4; i++) {
        add_bins(&w, 1, FULL / 2, 0);
        add_bins(&w, 9, FULL, 0);
        add_bins(&w, 1, FULL / 2, 0);
        add_bins(&w, 20, 0, 0);
    }
    assert_waited(&w, 0.4, 0);
}

/* With half of the link, it lasts 0.2 s and waits 0.1 s of these. */
FIXTURE_TEST(a_burst_waits_beyond_its_bytes_at_the_rate)
{
    struct waiting w = { .busy = 0 };

    add_bins(&w, 21, 10 * FULL / 21, 0);
    add_bins(&w, 20, 0, 0);
    assert_waited(&w, 0.2, 0.2 - 21 * (10 * FULL / 21) * 8. / RATE_BPS);
    assert_float_equal(w.waited, 0.1, 1e-5);
}

/* Pauses of two bins are within a burst, those of three end it. */
FIXTURE_TEST(a_pause_ends_a_burst)
{
    struct waiting w = { .busy = 0 };

    add_bins(&w, 2, FULL, 0);
    add_bins(&w, 2, 0, 0);
    add_bins(&w, 1, FULL, 0);
    add_bins(&w, 2, 0, 0);
    assert_waited(&w, 0, 0); /* It may go on. */
    add_bins(&w, 2, 0, 0);
    assert_waited(&w, 0.04, 0.01);
    add_bins(&w, 2, FULL, 0);
    add_bins(&w, 3, 0, 0);
    add_bins(&w, 2, FULL, 0);
    add_bins(&w, 9, 0, 0);
    assert_waited(&w, 0.06, 0.01);
}

/* A ring sends as much as it receives at the same time; a worker pushes, then
 * pulls with acknowledgements. */
FIXTURE_TEST(the_direction_with_more_bytes_counts)
{
    struct waiting ring = { .busy = 0 }, worker = { .busy = 0 };

    add_bins(&ring, 11, FULL, FULL);
    add_bins(&ring, 9, 0, 0);
    assert_waited(&ring, 0.1, 0);
    add_bins(&worker, 5, FULL, FULL / 50);
    add_bins(&worker, 6, FULL / 50, FULL);
    add_bins(&worker, 9, 0, 0);
    assert_waited(&worker, 0.1, 0);
}

FIXTURE_TEST(heartbeats_and_unknown_rates_are_no_waiting)
{
    struct shim_bin busy[2] = { { FULL, 0 }, { FULL, 0 } };
    struct waiting w = { .busy = 0 };

    add_bins(&w, 1000, FULL / 65, FULL / 100);
    assert_waited(&w, 0, 0);
    waiting_add_bins(&w, bin, busy, 2, 0);
    add_bins(&w, 9, 0, 0);
    assert_waited(&w, 0, 0);
}
