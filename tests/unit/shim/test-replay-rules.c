/* SPDX-License-Identifier: Apache-2.0 */

#include <arpa/inet.h>
#include <glob.h>
#include <libgen.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "shim/replay/rules.h"
#include "tests/unit/unit-test.h"

#define HEAD "{\"host\": {\"addresses\": [\"10.0.0.1\", \"fd00::/15\"], " \
             "\"macs\": [\"02:00:00:00:00:01\"], \"otherwise\": \"skip\"}, " \
             "\"rate\": \"50Mbit\", \"jobs\": ["

/* Calls 'check' for each "FOLDER/NAME.json"; there must be 'min' of them. */
static void
for_each_file(const char *pattern, size_t min,
              void (*check)(const char *file))
{
    glob_t files;

    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    assert_true(files.gl_pathc >= min);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        check(files.gl_pathv[i]);
    }
    globfree(&files);
}

static void
is_good(const char *file)
{
    struct replay_rules *rules;

    assert_no_error(replay_rules_read(file, &rules));
    replay_rules_destroy(rules);
}

static void
is_bad(const char *file)
{
    char err[256], name[256], *text, *expected, *error;
    struct replay_rules *rules;

    snprintf(name, sizeof name, "%s", file);
    snprintf(err, sizeof err, "%.*s.err", (int) strlen(file) - 5, file);
    assert_null(json_read_file(file, &text));
    error = replay_rules_parse(basename(name), text, &rules);
    assert_non_null(error);
    assert_null(rules);
    assert_null(json_read_file(err, &expected));
    expected[strcspn(expected, "\n")] = '\0';
    assert_is(error, expected);
    free(expected);
    free(text);
}

UNIT_TEST(accepts_valid_rules)
{
    for_each_file("tests/replay-rules/good/*.json", 3, is_good);
}

UNIT_TEST(names_the_error_and_its_place)
{
    for_each_file("tests/replay-rules/bad/*.json", 20, is_bad);
}

static struct replay_rules *
parse(const char *text)
{
    struct replay_rules *rules;

    assert_null(replay_rules_parse("rules", text, &rules));
    return rules;
}

static struct shim_flow_key
make_key(uint8_t protocol, const char *local, uint16_t local_port,
         const char *remote, uint16_t remote_port)
{
    struct shim_flow_key key = {
        .family = 4, .protocol = protocol,
        .local_port = htons(local_port), .remote_port = htons(remote_port),
    };

    if (inet_pton(AF_INET, local, key.local) != 1) {
        key.family = 6;
        assert_int_equal(inet_pton(AF_INET6, local, key.local), 1);
        assert_int_equal(inet_pton(AF_INET6, remote, key.remote), 1);
    } else {
        assert_int_equal(inet_pton(AF_INET, remote, key.remote), 1);
    }
    return key;
}

UNIT_TEST(the_first_matching_rule_decides)
{
    struct replay_rules *rules = parse(
        HEAD
        "{\"name\": \"a\", \"level\": 1, \"flows\": ["
        "  {\"protocol\": \"tcp\", \"remote_port\": 5001},"
        "  {\"remote\": \"10.1.2.128/25\", \"local_port\": 7}]},"
        "{\"name\": \"b\", \"level\": 6, \"flows\": ["
        "  {\"local\": \"fd00::/9\"}, {\"remote_port\": 5001}]}]}");
    static const struct {
        uint8_t protocol;
        const char *local, *remote;
        uint16_t local_port, remote_port, slot;
    } cases[] = {
        { IPPROTO_TCP, "10.0.0.1", "10.0.0.2", 9, 5001, 1 },
        { IPPROTO_UDP, "10.0.0.1", "10.0.0.2", 9, 5001, 2 },
        { IPPROTO_TCP, "10.0.0.1", "10.0.0.2", 5001, 9, 0 },
        { IPPROTO_UDP, "10.0.0.1", "10.1.2.128", 7, 9, 1 },
        { IPPROTO_UDP, "10.0.0.1", "10.1.2.127", 7, 9, 0 },
        { IPPROTO_UDP, "10.0.0.1", "10.1.2.255", 8, 9, 0 },
        { IPPROTO_UDP, "fd7f::1", "fd80::1", 8, 9, 2 },
        { IPPROTO_UDP, "fd80::1", "fd00::1", 8, 9, 0 },
        { IPPROTO_TCP, "fd80::1", "fd00::1", 8, 5001, 1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shim_flow_key key = make_key(
            cases[i].protocol, cases[i].local, cases[i].local_port,
            cases[i].remote, cases[i].remote_port);

        assert_int_equal(replay_rules_slot(rules, &key), cases[i].slot);
    }
    assert_int_equal(rules->jobs[0].dscp, 35);
    assert_int_equal(rules->jobs[1].dscp, 7);
    assert_int_equal(rules->jobs[1].rank, 1);
    assert_int_equal(rules->min_share, SHIM_MIN_SHARE_DEFAULT);
    replay_rules_destroy(rules);
}

/* A frame of 42 bytes, an IPv4 header or ARP. */
static enum replay_direction
direction(const struct replay_rules *rules, uint8_t to_mac, uint8_t from_mac,
          bool arp, uint8_t from, uint8_t to)
{
    uint8_t f[42] = { 2, 0, 0, 0, 0, to_mac, 2, 0, 0, 0, 0, from_mac, 8,
                      arp ? 6 : 0, 0x45, 0, 0, 28 };
    uint8_t *addresses = f + (arp ? 28 : 26);

    memcpy(addresses, (uint8_t[]) { 10, 0, 0, from }, 4);
    memcpy(addresses + (arp ? 10 : 4), (uint8_t[]) { 10, 0, 0, to }, 4);
    return replay_rules_direction(rules, f, sizeof f);
}

UNIT_TEST(senders_decide_before_receivers_and_macs_before_addresses)
{
    struct replay_rules *rules = parse(HEAD "]}");

    assert_int_equal(direction(rules, 2, 1, false, 9, 1), REPLAY_FROM_HOST);
    assert_int_equal(direction(rules, 1, 2, false, 1, 9), REPLAY_TO_HOST);
    assert_int_equal(direction(rules, 3, 2, false, 1, 9), REPLAY_FROM_HOST);
    assert_int_equal(direction(rules, 3, 2, false, 1, 1), REPLAY_FROM_HOST);
    assert_int_equal(direction(rules, 3, 2, false, 9, 1), REPLAY_TO_HOST);
    assert_int_equal(direction(rules, 3, 2, true, 1, 9), REPLAY_FROM_HOST);
    assert_int_equal(direction(rules, 3, 2, true, 9, 1), REPLAY_TO_HOST);
    assert_int_equal(direction(rules, 3, 2, false, 9, 8), REPLAY_SKIP);
    assert_int_equal(replay_rules_direction(rules, (const uint8_t *) "", 0),
                     REPLAY_SKIP);
    replay_rules_destroy(rules);
}
