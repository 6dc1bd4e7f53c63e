/* SPDX-License-Identifier: Apache-2.0 */

/* What the agent sends to a shim, how long an order holds, and what jobs may
 * say. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "agent/actuate/shim-tables.h"
#include "agent/actuate/traffic.h"
#include "agent/identify/registry.h"
#include "agent/wanted.h"
#include "base/name.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/progress-datagram.h"

static struct slot_table slots;
static struct slot_changes changes;
static struct traffic traffic;

static struct shim_slot
make_row(const char *name, uint16_t slot, uint8_t level)
{
    struct shim_slot row;

    memset(&row, 0, sizeof row);
    row.slot = slot;
    row.level = level;
    row.weight = 1000;
    strcpy(row.name, name);
    return row;
}

static void
want(const char *name, uint8_t level, bool decided)
{
    struct shim_slot row = make_row(name, 0, level);

    slot_table_want(&slots, name, &row, decided);
}

static void
only_differences_are_sent(void **state OVS_UNUSED)
{
    slot_table_init(&slots);
    want("c/a", 1, true);
    want("c/b", 2, true);
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set, 2);
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set + changes.n_clear, 0);

    want("c/a", 1, true);
    want("c/b", 3, true);
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set, 1);
    assert_string_equal(changes.set[0].name, "c/b");
    assert_int_equal(changes.set[0].level, 3);
    assert_int_equal(changes.set[0].slot, slot_table_number(&slots, "c/b"));

    slot_table_unwant(&slots, "c/a");
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set, 0);
    assert_int_equal(changes.n_clear, 1);
    slot_table_uninit(&slots);
}

static void
restart_of_the_agent_keeps_numbers(void **state OVS_UNUSED)
{
    struct shim_slot have[] = {
        make_row("c/b", 1, 2), make_row("c/old", 2, 3), make_row("c/a", 7, 1),
        make_row("c/a", 9, 1), make_row("", 0, 0), make_row("x", 2000, 0),
    };

    slot_table_init(&slots);
    want("c/a", 1, true);
    want("c/b", 4, true);
    want("c/new", 5, true);
    slot_table_adopt(&slots, have, ARRAY_SIZE(have));
    assert_int_equal(slot_table_number(&slots, "c/b"), 1);
    assert_int_equal(slot_table_number(&slots, "c/a"), 7);
    assert_string_equal(slot_table_name(&slots, 7), "c/a");

    /* Changed, new; the old job's row and the double go. */
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set, 2);
    assert_int_equal(changes.n_clear, 2);
    assert_int_equal(changes.clear[0], 2);
    assert_int_equal(changes.clear[1], 9);
    slot_table_uninit(&slots);
}

static void
restart_of_the_shim_keeps_numbers(void **state OVS_UNUSED)
{
    uint16_t a, b;

    slot_table_init(&slots);
    want("c/gone", 1, true);
    want("c/a", 1, true);
    want("c/b", 1, true);
    slot_table_unwant(&slots, "c/gone");
    slot_table_changes(&slots, &changes);
    a = slot_table_number(&slots, "c/a");
    b = slot_table_number(&slots, "c/b");
    slot_table_adopt(&slots, NULL, 0);
    assert_int_equal(slot_table_number(&slots, "c/a"), a);
    assert_int_equal(slot_table_number(&slots, "c/b"), b);
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set, 2);
    slot_table_uninit(&slots);
}

static void
a_job_that_is_found_later_has_its_number(void **state OVS_UNUSED)
{
    const struct shim_slot have[] = { make_row("c/other", 1, 3),
                                      make_row("c/a", 2, 3) };

    slot_table_init(&slots);
    slot_table_adopt(&slots, have, ARRAY_SIZE(have));
    want("c/a", 7, false);
    assert_int_equal(slot_table_number(&slots, "c/a"), 2);
    want("c/new", 7, false);
    assert_int_equal(slot_table_number(&slots, "c/new"), 3);
    slot_table_uninit(&slots);
}

static void
row_stays_until_somebody_decides(void **state OVS_UNUSED)
{
    struct shim_slot have = make_row("c/a", 3, 1);

    slot_table_init(&slots);
    want("c/a", 7, false);
    slot_table_adopt(&slots, &have, 1);
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set, 0);
    want("c/a", 7, true);
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set, 1);
    assert_int_equal(changes.set[0].level, 7);
    slot_table_uninit(&slots);
}

static void
numbers_are_reused_late_and_run_out(void **state OVS_UNUSED)
{
    uint16_t first;

    slot_table_init(&slots);
    want("c/a", 1, true);
    first = slot_table_number(&slots, "c/a");
    slot_table_unwant(&slots, "c/a");
    want("c/b", 1, true);
    assert_int_not_equal(slot_table_number(&slots, "c/b"), first);
    for (int i = 0; i < REGISTRY_MAX_JOBS - 1; i++) {
        char *name = xasprintf("d/%d", i);

        want(name, 1, true);
        assert_in_range(slot_table_number(&slots, name), 1, REGISTRY_MAX_JOBS);
        free(name);
    }
    want("c/late", 1, true);
    assert_int_equal(slot_table_number(&slots, "c/late"), 0);
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set, REGISTRY_MAX_JOBS);

    slot_table_unwant(&slots, "c/b");
    slot_table_changes(&slots, &changes);
    assert_int_not_equal(slot_table_number(&slots, "c/late"), 0);
    slot_table_uninit(&slots);
}

static void
add_up(uint16_t slot, uint64_t tx, uint64_t rx, void *sums_)
{
    uint64_t *sums = sums_;

    sums[slot] += tx;
    sums[0] += rx;
}

static void
counters_never_fall(void **state OVS_UNUSED)
{
    struct shim_stats stats = { .boot_id = 1, .tx_bytes = 1000,
                                .tx_ip_bytes = 900 };
    struct shim_slot_stats slot = { .slot = 3, .tx_bytes = 500,
                                    .rx_bytes = 50 };
    uint64_t sums[8] = { 0 };

    /* The first look is the mark. */
    memset(&traffic, 0, sizeof traffic);
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    assert_int_equal(traffic.total.tx_bytes, 0);
    assert_int_equal(sums[3], 0);

    /* So is that at a slot that comes later, which others had before. */
    slot.slot = 4;
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    assert_int_equal(sums[4], 0);
    slot.slot = 3;

    stats.tx_bytes = 1500;
    stats.tx_ip_bytes = 1300;
    slot.tx_bytes = 700;
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    assert_int_equal(traffic.total.tx_bytes, 500);
    assert_int_equal(traffic.total.ip_bytes, 400);
    assert_int_equal(sums[3], 200);

    /* Another shim that has counted more already. */
    stats.boot_id = 2;
    stats.tx_bytes = 2000;
    stats.tx_ip_bytes = 0;
    slot.tx_bytes = 800;
    slot.rx_bytes = 5;
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    assert_int_equal(traffic.total.tx_bytes, 2500);
    assert_int_equal(sums[3], 1000);
    assert_int_equal(sums[0], 5);

    /* The same shim cleared the slot; and a number that cannot be. */
    slot.tx_bytes = 10;
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    assert_int_equal(sums[3], 1010);
    slot.slot = 5000;
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    assert_int_equal(traffic.total.tx_bytes, 2500);
}

static void
counts_by_the_level_in_force(void **state OVS_UNUSED)
{
    struct shim_stats stats = { .boot_id = 1 };
    struct shim_slot_stats slot = { .slot = 3, .level = 2, .tx_bytes = 500,
                                    .tx_dropped = 5 };
    uint64_t sums[8] = { 0 };

    memset(&traffic, 0, sizeof traffic);
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    assert_int_equal(traffic.total.level_bytes[2], 0);
    slot.tx_bytes = 600;
    slot.tx_dropped = 6;
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    slot.level = 1;
    slot.tx_bytes = 650;
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    assert_int_equal(traffic.total.level_bytes[2], 100);
    assert_int_equal(traffic.total.level_dropped[2], 1);
    assert_int_equal(traffic.total.level_bytes[1], 50);
    assert_int_equal(traffic.total.level_dropped[1], 0);

    /* A level that there is not. */
    slot.level = UINT16_MAX;
    slot.tx_bytes = 660;
    traffic_add_stats(&traffic, &stats, &slot, 1, add_up, sums);
    assert_int_equal(traffic.total.level_bytes[SHIM_LEVEL_DEFAULT], 10);
}

static void
order_holds_as_long_as_somebody_says_so(void **state OVS_UNUSED)
{
    struct lease lease;

    lease_init(&lease);
    assert_int_equal(lease_until(&lease), 0);

    /* A notification without a row holds nothing. */
    assert_true(lease_notify(&lease, 3, 10000, 1000));
    assert_int_equal(lease_until(&lease), 0);
    assert_true(lease_row(&lease, 3, 10000, 2000));
    assert_int_equal(lease_until(&lease), 12000);
    assert_true(lease_notify(&lease, 3, 10000, 5000));
    assert_int_equal(lease_until(&lease), 15000);

    /* A new controller is there, but its order is not: the old order holds no
     * more, and nothing of the old controller counts. */
    assert_true(lease_notify(&lease, 4, 10000, 6000));
    assert_int_equal(lease_until(&lease), 0);
    assert_false(lease_notify(&lease, 3, 10000, 6500));
    assert_false(lease_row(&lease, 3, 10000, 6500));
    assert_int_equal(lease_until(&lease), 0);
    assert_true(lease_row(&lease, 4, 10000, 7000));
    assert_int_equal(lease_until(&lease), 17000);

    /* What a peer asks for is bounded. */
    assert_true(lease_notify(&lease, 4, INT64_MAX, 8000));
    assert_int_equal(lease_until(&lease), 8000 + LEASE_MAX_MS);
    assert_true(lease_notify(&lease, 4, -5, 8000));
    assert_int_equal(lease_until(&lease), 8000 + LEASE_MIN_MS);
    assert_false(lease_row(&lease, -1, 1000, 8000));
}

static void
progress_is_read(void **state OVS_UNUSED)
{
    static const char text[]
        = "{\"cojob\": \"asha\", \"job\": \"t0\", \"stage\": 1, "
          "\"iteration\": 12, \"metric\": \"loss\", \"value\": -0.5, "
          "\"time\": 1790000000000, \"new\": \"{[\\\"\"}";
    char name[PROGRESS_NAME_SIZE];
    struct progress p;

    assert_null(progress_parse(text, strlen(text), name, &p));
    assert_string_equal(name, "asha/t0");
    assert_int_equal(p.iteration, 12);
    assert_int_equal(p.stage, 1);
    assert_string_equal(p.metric, "loss");
    assert_true(p.has_value && p.value == -0.5);
    assert_true(p.time == 1790000000000);
}

static void
only_three_members_are_required(void **state OVS_UNUSED)
{
    static const char text[]
        = "{\"cojob\":\"a\",\"job\":\"b\",\"iteration\":0,\"value\":null}";
    char name[PROGRESS_NAME_SIZE];
    struct progress p;

    assert_null(progress_parse(text, strlen(text), name, &p));
    assert_int_equal(p.stage, -1);
    assert_false(p.has_value);
    assert_string_equal(p.metric, "");
}

/* What anybody on the host can send, and what is said about it. */
#define AB "\"cojob\":\"a\",\"job\":\"b\","
#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define TOO_LONG X50 X50 X50 X50 X50 "xxxx"

static const struct {
    const char *text;
    const char *error;
} hostile[] = {
    { "", "/: not valid JSON" },
    { "\x01\x02", "/: not valid JSON" },
    { "null", "/: not an object" },
    { "12", "/: not an object" },
    { "{", "/: not valid JSON" },
    { "[[[[[[[[[[[[", "/: an object in an object, only plain members are "
                      "allowed" },
    { "{" AB "\"iteration\":{}}", "/: an object in an object, only plain "
                                  "members are allowed" },
    { "{}", "/cojob: not " NAME_RULE },
    { "{\"cojob\":\"a/b\"}", "/cojob: not " NAME_RULE },
    { "{\"cojob\":7}", "/cojob: not " NAME_RULE },
    { "{\"cojob\":\"a\",\"job\":\"..\"}", "/job: not " NAME_RULE },
    { "{\"cojob\":\"a\",\"job\":\"" TOO_LONG "\"}", "/job: not " NAME_RULE },
    { "{" AB "\"stage\":1}",
      "/iteration: not an integer, 0 to 2^53 is allowed" },
    { "{" AB "\"iteration\":-1}",
      "/iteration: not an integer, 0 to 2^53 is allowed" },
    { "{" AB "\"iteration\":1.5}",
      "/iteration: not an integer, 0 to 2^53 is allowed" },
    { "{" AB "\"iteration\":1e400}",
      "/iteration: not an integer, 0 to 2^53 is allowed" },
    { "{" AB "\"iteration\":\"1\"}",
      "/iteration: not an integer, 0 to 2^53 is allowed" },
    { "{" AB "\"iteration\":1,\"stage\":null}",
      "/stage: not an integer, 0 to 2^53 is allowed" },
    { "{" AB "\"iteration\":1,\"metric\":7}", "/metric: not " NAME_RULE },
    { "{" AB "\"iteration\":1,\"value\":\"x\"}",
      "/value: neither number nor null" },
};

static void
hostile_datagrams_are_named(void **state OVS_UNUSED)
{
    char big[PROGRESS_MAX_BYTES + 1];
    char other[PROGRESS_NAME_SIZE];
    struct progress progress;
    char *message;

    for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
        char name[PROGRESS_NAME_SIZE] = "untouched";
        struct progress p = { .iteration = 77 };
        char *error = progress_parse(hostile[i].text, strlen(hostile[i].text),
                                     name, &p);

        assert_is(error, hostile[i].error);
        assert_string_equal(name, "untouched");
        assert_int_equal(p.iteration, 77);
    }

    memset(big, ' ', sizeof big);
    message = progress_parse(big, sizeof big, other, &progress);
    assert_is(message, "/: more than 4096 bytes");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_differences_are_sent),
        cmocka_unit_test(restart_of_the_agent_keeps_numbers),
        cmocka_unit_test(restart_of_the_shim_keeps_numbers),
        cmocka_unit_test(a_job_that_is_found_later_has_its_number),
        cmocka_unit_test(row_stays_until_somebody_decides),
        cmocka_unit_test(numbers_are_reused_late_and_run_out),
        cmocka_unit_test(counters_never_fall),
        cmocka_unit_test(counts_by_the_level_in_force),
        cmocka_unit_test(order_holds_as_long_as_somebody_says_so),
        cmocka_unit_test(progress_is_read),
        cmocka_unit_test(only_three_members_are_required),
        cmocka_unit_test(hostile_datagrams_are_named),
    };
    return cmocka_run_group_tests_name("agent-actuate", tests, NULL, NULL);
}
