/* SPDX-License-Identifier: Apache-2.0 */

/* Keys of the controller, and the addresses that are reported to it. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "agent/telemetry.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/shim-protocol.h"

static bool
take(struct peers *p, const char *text)
{
    struct json *json = json_from_string(text);
    bool good = peers_take_keys(p, json);

    json_destroy(json);
    return good;
}

static void
keys_are_replaced_and_removed(void **state OVS_UNUSED)
{
    static const char *const bad[] = {
        "7",
        "[7]",
        "[{\"key\": \"00112233445566778899aabbccddeeff\"}]",
        "[{\"address\": \"10.0.0\"}]",
        "[{\"address\": \"10.0.0.2\", \"key\": \"0011\"}]",
        "[{\"address\": \"10.0.0.2\","
        " \"key\": \"00112233445566778899aabbccddeexx\"}]",
    };
    struct peers p = { .n_keys = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_false(take(&p, bad[i]));
        assert_int_equal(p.n_keys, 0);
    }
    assert_true(take(&p, "[{\"address\": \"10.0.0.2\","
                         " \"key\": \"00112233445566778899aabbccddeeff\"},"
                         " {\"address\": \"fd00::1\","
                         " \"key\": \"10112233445566778899aabbccddeeff\"}]"));
    assert_int_equal(p.n_keys, 2);
    assert_int_equal(p.keys[0].key[1], 0x11);
    assert_int_equal(p.keys[1].family, 6);
    assert_true(take(&p, "[{\"address\": \"10.0.0.2\"}]"));
    assert_int_equal(p.n_keys, 2);
    assert_int_equal(p.keys[1].removed, 1);
    assert_int_equal(p.keys[1].remote[3], 2);
    for (int i = 0; i < PEERS_MAX_KEYS; i++) {
        char *text =
            xasprintf("[{\"address\": \"10.1.%d.%d\"}]", i / 256, i % 256);

        assert_true(take(&p, text));
        free(text);
    }
    assert_int_equal(p.n_keys, PEERS_MAX_KEYS);
    assert_int_equal(p.keys[0].remote[1], 1);
    peers_uninit(&p);
}

/* What a process sends with the address of another host is not reported. */
static void
only_addresses_of_this_host_are_reported(void **state OVS_UNUSED)
{
    static const struct shim_peer list[] = {
        { .family = 4,
          .local = { 127, 0, 0, 1 },
          .remote = { 127, 0, 0, 2 },
          .refused = 3 },
        { .family = 4,
          .local = { 127, 0, 0, 1 },
          .remote = { 127, 0, 0, 2 },
          .refused = 4,
          .disobeyed = 1 },
        { .family = 4,
          .local = { 198, 51, 100, 1 },
          .remote = { 198, 51, 100, 2 },
          .refused = 5 },
    };
    struct peers p = { .n_keys = 0 };
    struct json *report;

    peers_take_list(&p, list, ARRAY_SIZE(list));
    report = peers_take_report(&p);
    assert_non_null(report);
    assert_null(peers_take_report(&p));
    assert_is(json_to_string(report, JSSF_SORT),
              "{\"own\":[\"127.0.0.1\"],"
              "\"remote\":[{\"address\":\"127.0.0.2\",\"disobeyed\":1,"
              "\"refused\":7}]}");
    json_destroy(report);
    peers_uninit(&p);
}

RUN_TESTS("peers", NULL, NULL, cmocka_unit_test(keys_are_replaced_and_removed),
          cmocka_unit_test(only_addresses_of_this_host_are_reported))
