/* SPDX-License-Identifier: Apache-2.0 */

/* What counts as waiting, in bins of 10 ms on a link of 80 Mbit/s, which
 * carries 100,000 bytes in each. */

#include <config.h>

#include "agent/progress/waiting.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/shim-protocol.h"

#define RATE_BPS 80000000
#define FULL 100000

/* Adds 'n' bins with these bytes in a row. */
static void
pass(struct waiting *w, uint64_t *bin, size_t n, uint32_t tx, uint32_t rx)
{
    for (size_t i = 0; i < n; i++) {
        struct shim_bin b = { tx, rx };

        waiting_add_bins(w, (*bin)++, &b, 1, RATE_BPS);
    }
}

static void
assert_waited(const struct waiting *w, double busy, double waited)
{
    assert_float_equal(w->busy, busy, 1e-9);
    assert_float_equal(w->waited, waited, 1e-9);
}

/* A burst of 1 MB lasts 0.1 s, from the middle of a bin to that of another. */
static void
a_burst_at_the_rate_of_the_link_does_not_wait(void **state OVS_UNUSED)
{
    struct waiting w = { .busy = 0 };
    uint64_t bin = 7;

    for (int i = 0; i < 4; i++) {
        pass(&w, &bin, 1, FULL / 2, 0);
        pass(&w, &bin, 9, FULL, 0);
        pass(&w, &bin, 1, FULL / 2, 0);
        pass(&w, &bin, 20, 0, 0);
    }
    assert_waited(&w, 0.4, 0);
}

/* With half of the link, it lasts 0.2 s, of which it waits 0.1 s. */
static void
a_burst_waits_beyond_its_bytes_at_the_rate(void **state OVS_UNUSED)
{
    struct waiting w = { .busy = 0 };
    uint64_t bin = 7;

    pass(&w, &bin, 21, 10 * FULL / 21, 0);
    pass(&w, &bin, 20, 0, 0);
    assert_waited(&w, 0.2, 0.2 - 21 * (10 * FULL / 21) * 8. / RATE_BPS);
    assert_float_equal(w.waited, 0.1, 1e-5);
}

/* Pauses of two bins are within a burst, those of three end it. */
static void
a_pause_ends_a_burst(void **state OVS_UNUSED)
{
    struct waiting w = { .busy = 0 };
    uint64_t bin = 7;

    pass(&w, &bin, 2, FULL, 0);
    pass(&w, &bin, 2, 0, 0);
    pass(&w, &bin, 1, FULL, 0);
    pass(&w, &bin, 2, 0, 0);
    assert_waited(&w, 0, 0); /* It may go on. */
    pass(&w, &bin, 2, 0, 0);
    assert_waited(&w, 0.04, 0.01);
    pass(&w, &bin, 2, FULL, 0);
    pass(&w, &bin, 3, 0, 0);
    pass(&w, &bin, 2, FULL, 0);
    pass(&w, &bin, 9, 0, 0);
    assert_waited(&w, 0.06, 0.01);
}

/* A ring sends as much as it receives at the same time; a worker pushes, then
 * pulls with acknowledgements. */
static void
the_direction_with_more_bytes_counts(void **state OVS_UNUSED)
{
    struct waiting ring = { .busy = 0 }, worker = { .busy = 0 };
    uint64_t bin = 7;

    pass(&ring, &bin, 11, FULL, FULL);
    pass(&ring, &bin, 9, 0, 0);
    assert_waited(&ring, 0.1, 0);
    pass(&worker, &bin, 5, FULL, FULL / 50);
    pass(&worker, &bin, 6, FULL / 50, FULL);
    pass(&worker, &bin, 9, 0, 0);
    assert_waited(&worker, 0.1, 0);
}

static void
heartbeats_and_unknown_rates_are_no_waiting(void **state OVS_UNUSED)
{
    struct shim_bin busy[2] = { { FULL, 0 }, { FULL, 0 } };
    struct waiting w = { .busy = 0 };
    uint64_t bin = 7;

    pass(&w, &bin, 1000, FULL / 65, FULL / 100);
    assert_waited(&w, 0, 0);
    waiting_add_bins(&w, bin, busy, 2, 0);
    pass(&w, &bin, 9, 0, 0);
    assert_waited(&w, 0, 0);
}

RUN_TESTS("waiting", NULL, NULL,
          cmocka_unit_test(a_burst_at_the_rate_of_the_link_does_not_wait),
          cmocka_unit_test(a_burst_waits_beyond_its_bytes_at_the_rate),
          cmocka_unit_test(a_pause_ends_a_burst),
          cmocka_unit_test(the_direction_with_more_bytes_counts),
          cmocka_unit_test(heartbeats_and_unknown_rates_are_no_waiting))
