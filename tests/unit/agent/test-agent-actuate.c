/* SPDX-License-Identifier: Apache-2.0 */

/* What the agent sends to a shim, how long an order holds, when its row is
 * written, and what jobs may say. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/shim-tables.h"
#include "agent/host-rows.h"
#include "agent/identify/registry.h"
#include "base/name.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "ovsdb-idl.h"
#include "random.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/hosts-idl.h"
#include "wire/progress-datagram.h"

static struct slot_table slots;
static struct slot_changes changes;
static struct traffic traffic;

static uint64_t sums[8]; /* By slot; of all, received. */

static int
set_up(void **state OVS_UNUSED)
{
    slot_table_init(&slots);
    memset(&traffic, 0, sizeof traffic);
    memset(sums, 0, sizeof sums);
    return 0;
}

static int
tear_down(void **state OVS_UNUSED)
{
    slot_table_uninit(&slots);
    return 0;
}

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

static uint16_t
number(const char *name)
{
    return slot_table_number(&slots, name);
}

static void
assert_changes(size_t n_set, size_t n_clear)
{
    slot_table_changes(&slots, &changes);
    assert_int_equal(changes.n_set, n_set);
    assert_int_equal(changes.n_clear, n_clear);
}

FIXTURE_TEST(only_differences_are_sent)
{
    want("c/a", 1, true);
    want("c/b", 2, true);
    assert_changes(2, 0);
    assert_changes(0, 0);

    want("c/a", 1, true);
    want("c/b", 3, true);
    assert_changes(1, 0);
    assert_string_equal(changes.set[0].name, "c/b");
    assert_int_equal(changes.set[0].level, 3);
    assert_int_equal(changes.set[0].slot, number("c/b"));

    slot_table_unwant(&slots, "c/a");
    assert_changes(0, 1);
}

FIXTURE_TEST(restart_of_the_agent_keeps_numbers)
{
    struct shim_slot have[] = {
        make_row("c/b", 1, 2), make_row("c/old", 2, 3), make_row("c/a", 7, 1),
        make_row("c/a", 9, 1), make_row("", 0, 0), make_row("x", 2000, 0),
    };

    want("c/a", 1, true);
    want("c/b", 4, true);
    want("c/new", 5, true);
    slot_table_adopt(&slots, have, ARRAY_SIZE(have));
    assert_int_equal(number("c/b"), 1);
    assert_int_equal(number("c/a"), 7);
    assert_string_equal(slot_table_name(&slots, 7), "c/a");

    /* Changed, new; the old job's row and the double go. */
    assert_changes(2, 2);
    assert_int_equal(changes.clear[0], 2);
    assert_int_equal(changes.clear[1], 9);
}

FIXTURE_TEST(restart_of_the_shim_keeps_numbers)
{
    uint16_t a, b;

    want("c/gone", 1, true);
    want("c/a", 1, true);
    want("c/b", 1, true);
    slot_table_unwant(&slots, "c/gone");
    slot_table_changes(&slots, &changes);
    a = number("c/a");
    b = number("c/b");
    slot_table_adopt(&slots, NULL, 0);
    assert_int_equal(number("c/a"), a);
    assert_int_equal(number("c/b"), b);
    assert_changes(2, 0);
}

FIXTURE_TEST(a_job_that_is_found_later_has_its_number)
{
    const struct shim_slot have[] = { make_row("c/other", 1, 3),
                                      make_row("c/a", 2, 3) };

    slot_table_adopt(&slots, have, ARRAY_SIZE(have));
    want("c/a", 7, false);
    assert_int_equal(number("c/a"), 2);
    want("c/new", 7, false);
    assert_int_equal(number("c/new"), 3);
}

FIXTURE_TEST(row_stays_until_somebody_decides)
{
    struct shim_slot have = make_row("c/a", 3, 1);

    want("c/a", 7, false);
    slot_table_adopt(&slots, &have, 1);
    assert_changes(0, 0);
    want("c/a", 7, true);
    assert_changes(1, 0);
    assert_int_equal(changes.set[0].level, 7);
}

FIXTURE_TEST(numbers_are_reused_late_and_run_out)
{
    uint16_t first;

    want("c/a", 1, true);
    first = number("c/a");
    slot_table_unwant(&slots, "c/a");
    want("c/b", 1, true);
    assert_int_not_equal(number("c/b"), first);
    for (int i = 0; i < REGISTRY_MAX_JOBS - 1; i++) {
        char *name = xasprintf("d/%d", i);

        want(name, 1, true);
        assert_in_range(number(name), 1, REGISTRY_MAX_JOBS);
        free(name);
    }
    want("c/late", 1, true);
    assert_int_equal(number("c/late"), 0);
    assert_changes(REGISTRY_MAX_JOBS, 0);

    slot_table_unwant(&slots, "c/b");
    slot_table_changes(&slots, &changes);
    assert_int_not_equal(number("c/late"), 0);
}

static void
add_up(uint16_t slot, uint64_t tx, uint64_t rx, void *aux OVS_UNUSED)
{
    sums[slot] += tx;
    sums[0] += rx;
}

/* Takes a report of the shim with one slot. */
static void
take(const struct shim_stats *stats, const struct shim_slot_stats *slot)
{
    traffic_add_stats(&traffic, stats, slot, 1, add_up, NULL);
}

FIXTURE_TEST(counters_never_fall)
{
    struct shim_stats stats = { .boot_id = 1, .tx_bytes = 1000,
                                .tx_ip_bytes = 900 };
    struct shim_slot_stats slot = { .slot = 3,
                                    .tx_bytes = 500,
                                    .rx_bytes = 50 };

    /* The first look is the mark. */
    take(&stats, &slot);
    assert_int_equal(traffic.total.tx_bytes, 0);
    assert_int_equal(sums[3], 0);

    /* So is that at a slot that comes later, which others had before. */
    slot.slot = 4;
    take(&stats, &slot);
    assert_int_equal(sums[4], 0);
    slot.slot = 3;

    stats.tx_bytes = 1500;
    stats.tx_ip_bytes = 1300;
    slot.tx_bytes = 700;
    take(&stats, &slot);
    assert_int_equal(traffic.total.tx_bytes, 500);
    assert_int_equal(traffic.total.ip_bytes, 400);
    assert_int_equal(sums[3], 200);

    /* Another shim that has counted more already. */
    stats.boot_id = 2;
    stats.tx_bytes = 2000;
    stats.tx_ip_bytes = 0;
    slot.tx_bytes = 800;
    slot.rx_bytes = 5;
    take(&stats, &slot);
    assert_int_equal(traffic.total.tx_bytes, 2500);
    assert_int_equal(sums[3], 1000);
    assert_int_equal(sums[0], 5);

    /* The same shim cleared the slot; and a number that cannot be. */
    slot.tx_bytes = 10;
    take(&stats, &slot);
    assert_int_equal(sums[3], 1010);
    slot.slot = 5000;
    take(&stats, &slot);
    assert_int_equal(traffic.total.tx_bytes, 2500);
}

FIXTURE_TEST(counts_by_the_level_in_force)
{
    struct shim_stats stats = { .boot_id = 1 };
    struct shim_slot_stats slot = {
        .slot = 3, .level = 2, .tx_bytes = 500, .tx_dropped = 5
    };

    take(&stats, &slot);
    assert_int_equal(traffic.total.level_bytes[2], 0);
    slot.tx_bytes = 600;
    slot.tx_dropped = 6;
    take(&stats, &slot);
    slot.level = 1;
    slot.tx_bytes = 650;
    take(&stats, &slot);
    assert_int_equal(traffic.total.level_bytes[2], 100);
    assert_int_equal(traffic.total.level_dropped[2], 1);
    assert_int_equal(traffic.total.level_bytes[1], 50);
    assert_int_equal(traffic.total.level_dropped[1], 0);

    /* A level that there is not. */
    slot.level = UINT16_MAX;
    slot.tx_bytes = 660;
    take(&stats, &slot);
    assert_int_equal(traffic.total.level_bytes[SHIM_LEVEL_DEFAULT], 10);
}

UNIT_TEST(order_holds_as_long_as_somebody_says_so)
{
    static const struct {
        bool row; /* Else a notification. */
        int64_t generation, ms;
        long long now;
        bool good;
        long long until;
    } steps[] = {
        /* A notification without a row holds nothing. */
        { false, 3, 10000, 1000, true, 0 },
        { true, 3, 10000, 2000, true, 12000 },
        { false, 3, 10000, 5000, true, 15000 },

        /* A new controller is there, but its order is not: the old order holds
         * no more, and nothing of the old controller counts. */
        { false, 4, 10000, 6000, true, 0 },
        { false, 3, 10000, 6500, false, 0 },
        { true, 3, 10000, 6500, false, 0 },
        { true, 4, 10000, 7000, true, 17000 },

        /* What a peer asks for is bounded. */
        { false, 4, INT64_MAX, 8000, true, 8000 + LEASE_MAX_MS },
        { false, 4, -5, 8000, true, 8000 + LEASE_MIN_MS },
        { true, -1, 1000, 8000, false, 8000 + LEASE_MIN_MS },
    };
    struct lease lease;

    lease_init(&lease);
    assert_int_equal(lease_until(&lease), 0);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        assert_int_equal(
            (steps[i].row ? lease_row : lease_notify)(
                &lease, steps[i].generation, steps[i].ms, steps[i].now),
            steps[i].good);
        assert_int_equal(lease_until(&lease), steps[i].until);
    }
}

UNIT_TEST(only_a_later_order_is_taken)
{
    static const struct {
        int message;
        const char *host, *more;
        int generation, version;
        const char *error; /* NULL without one. */
        bool taken;
    } orders[] = {
        { 1, "h0", "", 3, 5, NULL, true },
        { 1, "h0", "", 3, 5, NULL, false },
        { 1, "h0", "", 3, 4, NULL, false },
        { 1, "h0", "", 3, 6, NULL, true },
        { 1, "h0", "", 2, 7, NULL, false },
        { 1, "h0", "", 4, 1, NULL, true },
        { 1, "h0", "", 3, 9, NULL, false },
        { 2, "h0", "", 5, 9, "order: version 2 of the message; expected 1; " },
        { 1, "h1", "", 5, 9, "order: for host h1; expected h0" },
        { 1, "h0", ",\"x\":1", 5, 9, "order: column of another name is not" },
        { 1, "h0", ",\"rank\":1", 5, 9, "order: column rank is not" },
        { 1, "h0", "", 4, 2, NULL, true },
    };
    struct ovsdb_idl *idl =
        ovsdb_idl_create("unix:/none", &hostsrec_idl_class, false, true);
    struct shim_slot row = { .dscp = 0 };
    struct wanted w;
    struct lease lease;
    int dscp = 0;

    lease_init(&lease);
    wanted_init(&w, idl, "h0");
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        char *text = xasprintf(
            "{\"version\":%d,\"row\":{\"host\":\"%s\",\"generation\":%d,"
            "\"version\":%d,\"lease_ms\":10000,\"policy\":\"p\",\"trust\":"
            "\"registered\",\"min_share\":0.5,\"congestion\":[\"map\",[]],"
            "\"level_dscp\":[\"map\",[[1,%d]]],\"owner_uid\":[\"map\",[]],"
            "\"rank\":[\"map\",[]],\"level\":[\"map\",[[\"c/j\",0]]],"
            "\"weight\":[\"map\",[]]%s}}",
            orders[i].message, orders[i].host, orders[i].generation,
            orders[i].version, (int) i + 1, orders[i].more);
        struct json *json = json_from_string(text);
        char *error = wanted_push(&w, json, &lease, 1000);

        if (orders[i].error) {
            assert_says(error, orders[i].error);
        } else {
            assert_null(error);
        }
        assert_int_equal(wanted_run(&w, idl, &lease, 1000), orders[i].taken);
        dscp = orders[i].taken ? i + 1 : dscp;
        assert_true(wanted_get(&w, "c/j", &row));
        assert_int_equal(row.dscp, dscp);
        assert_int_equal(lease_until(&lease), 11000);
        json_destroy(json);
        free(text);
    }
    wanted_uninit(&w);
    ovsdb_idl_destroy(idl);
}

UNIT_TEST(progress_is_read)
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

UNIT_TEST(only_three_members_are_required)
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

/* What any process of the host can send, and the replies. */
#define NO_ITERATION "/iteration: not an integer; expected 0 to 2^53"
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
    { "[[[[[[[[[[[[", "/: not valid JSON" },
    { "{}", "/cojob: not " NAME_RULE },
    { "{\"cojob\":\"a/b\"}", "/cojob: not " NAME_RULE },
    { "{\"cojob\":7}", "/cojob: not " NAME_RULE },
    { "{\"cojob\":\"a\",\"job\":\"..\"}", "/job: not " NAME_RULE },
    { "{\"cojob\":\"a\",\"job\":\"" TOO_LONG "\"}", "/job: not " NAME_RULE },
    { "{" AB "\"stage\":1}", NO_ITERATION },
    { "{" AB "\"iteration\":-1}", NO_ITERATION },
    { "{" AB "\"iteration\":1.5}", NO_ITERATION },
    { "{" AB "\"iteration\":1e400}", NO_ITERATION },
    { "{" AB "\"iteration\":\"1\"}", NO_ITERATION },
    { "{" AB "\"iteration\":NaN}", NO_ITERATION },
    { "{" AB "\"iteration\":{}}", NO_ITERATION },
    { "{" AB "\"iteration\":1,\"value\":nan}", "/: not valid JSON" },
    { "{" AB "\"iteration\":1,\"value\":- Infinity}", "/: not valid JSON" },
    { "{" AB "\"control_port\":0}",
      "/control_port: not a port; expected 1 to 65535" },
    { "{" AB "\"sent\":-1}", NO_ITERATION },
    { "{" AB "\"received\":1,\"counted\":1}", NO_ITERATION },
};

UNIT_TEST(transfers_need_no_iteration)
{
    static const char text[] = "{" AB "\"sent\":0,\"counted\":7.5}";
    char name[PROGRESS_NAME_SIZE];
    struct progress p;

    assert_null(progress_parse(text, strlen(text), name, &p));
    assert_int_equal(p.iteration, -1);
    assert_int_equal(p.sent, 0);
    assert_int_equal(p.received, -1);
    assert_int_equal(p.counted, -1);
    assert_true(p.left_out);
}

/* Whatever else a job reports with an iteration, and however it is written,
 * the iteration counts, and only a number has a value.  From 60 seeds. */
UNIT_TEST(an_iteration_is_not_lost_for_another_member)
{
    static const char *const values[] = {
        "NaN", "Infinity", "-Infinity", "null",   "\"nan\"", "{\"a\": [1]}",
        "[]",  "true",     "1e999",     "-1e999", "\"\"",
    };
    static const char *const metrics[] = {
        "null",       "7",  "NaN",      "\"\"",
        "[\"loss\"]", "{}", "\"\xc3\"", "\"" TOO_LONG "xx\"",
    };

    for (unsigned int seed = 0; seed < 60; seed++) {
        bool bad_value, bad_metric, bad_stage;
        char name[PROGRESS_NAME_SIZE], *members[6], *kept;
        struct ds text = DS_EMPTY_INITIALIZER;
        struct progress p;

        srand(seed);
        bad_value = rand() % 2;
        bad_metric = rand() % 3 == 0;
        bad_stage = rand() % 3 == 0;
        members[0] = xstrdup("\"cojob\": \"a\"");
        members[1] = xstrdup("\"job\" :\"b\"");
        members[2] =
            xasprintf("\"iteration\":%u%s", seed, rand() % 2 ? ".0" : "");
        members[3] =
            xasprintf("\"value\": %s",
                      bad_value ? values[rand() % ARRAY_SIZE(values)] : "0.5");
        members[4] =
            xasprintf("\"metric\": %s",
                      bad_metric ? metrics[rand() % ARRAY_SIZE(metrics)]
                                 : "\"Infinity\"");
        members[5] =
            xasprintf("\"stage\": %s",
                      bad_stage ? values[rand() % ARRAY_SIZE(values)] : "1");
        ds_put_char(&text, '{');
        for (int i = 5; i >= 0; i--) {
            int other = rand() % (i + 1);

            kept = members[other];
            members[other] = members[i];
            ds_put_format(&text, "%s%s%s", kept, rand() % 2 ? "\r\n " : "",
                          i ? "," : "}");
            free(kept);
        }
        assert_null(progress_parse(text.string, text.length, name, &p));
        assert_string_equal(name, "a/b");
        assert_int_equal(p.iteration, seed);
        assert_int_equal(p.has_value, !bad_value && !bad_metric);
        assert_string_equal(p.metric, bad_metric ? "" : "Infinity");
        assert_int_equal(p.stage, bad_stage ? -1 : 1);
        assert_int_equal(p.left_out, bad_value || bad_metric || bad_stage);
        ds_destroy(&text);
    }
}

UNIT_TEST(hostile_datagrams_are_named)
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

/* When the agent writes its row. */

#define N_HOSTS 1000
#define WINDOW_MS 50000
#define STEP_MS 100

UNIT_TEST(host_alone_writes_at_once)
{
    struct report r = { .next = 2000 };

    report_set_window(&r, 1000, 500);
    assert_false(report_is_due(&r, false, 500));
    assert_true(report_is_due(&r, true, 500));
    assert_false(report_is_due(&r, true, 1499));
    assert_true(report_is_due(&r, true, 1750));
}

UNIT_TEST(host_that_is_told_no_window_waits_and_then_writes)
{
    struct report r = { .next = 2000 };

    assert_false(report_is_due(&r, true, 1999));
    assert_true(report_is_due(&r, true, 2000));
    assert_false(report_is_due(&r, true, 2999));
    assert_true(report_is_due(&r, true, 3250));
}

/* A controller that sends no interval, or nonsense, gets the default one. */
UNIT_TEST(window_has_bounds)
{
    static const struct {
        int64_t ms, window;
    } rows[] = {
        { 0, 1000 },
        { -5, 1000 },
        { 1001, 1001 },
        { INT64_MAX, 600000 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct report r = { .window = 0 };

        report_set_window(&r, rows[i].ms, 0);
        assert_int_equal(r.window, rows[i].window);
    }
}

/* Writes that each of 'buckets' of 'bucket_ms' gets when every host has
 * something new at each of its looks, 'news_ms' apart. */
static void
count_writes(int news_ms, int bucket_ms, int *buckets, int n_buckets)
{
    struct report *reports = test_calloc(N_HOSTS, sizeof *reports);
    bool *news = test_calloc(N_HOSTS, sizeof *news);

    random_set_seed(1);
    for (int i = 0; i < N_HOSTS; i++) {
        report_set_window(&reports[i], WINDOW_MS, 0);
    }
    for (int now = 0; now < bucket_ms * n_buckets; now += STEP_MS) {
        for (int i = 0; i < N_HOSTS; i++) {
            news[i] = news[i] || now % news_ms == 0;
            if (report_is_due(&reports[i], news[i], now)) {
                buckets[now / bucket_ms]++;
                news[i] = false;
            }
        }
    }
    test_free(news);
    test_free(reports);
}

/* The first of the new orders is news to all at once, and the writes must not
 * come at once. */
UNIT_TEST(writes_of_many_stay_within_the_rate)
{
    int allowed = N_HOSTS * 10000 / WINDOW_MS;
    int buckets[30] = { 0 };

    count_writes(300, 10000, buckets, ARRAY_SIZE(buckets));
    for (size_t i = 0; i < ARRAY_SIZE(buckets); i++) {
        assert_in_range(buckets[i], 1, allowed * 5 / 4);
    }
}

/* One change is written by all within a window. */
UNIT_TEST(change_is_written_within_a_window)
{
    int buckets[2] = { 0 };

    count_writes(INT32_MAX, WINDOW_MS + STEP_MS, buckets, ARRAY_SIZE(buckets));
    assert_int_equal(buckets[0], N_HOSTS);
    assert_int_equal(buckets[1], 0);
}

/* Many agents connect one after the other: the window grows while their
 * reports wait. */
UNIT_TEST(larger_window_delays_what_waits)
{
    struct report r = { .next = 2000 };

    report_set_window(&r, 1000, 0);
    assert_true(report_is_due(&r, true, 0));
    assert_false(report_is_due(&r, true, 100));
    random_set_seed(2);
    report_set_window(&r, WINDOW_MS, 200);
    assert_false(report_is_due(&r, true, 200));
    assert_true(r.next > 1250);
    assert_true(report_is_due(&r, true, 200 + WINDOW_MS));
}
