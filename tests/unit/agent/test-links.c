/* SPDX-License-Identifier: Apache-2.0 */

/* What an uplink leaves to a job. */

#include <config.h>

#include <arpa/inet.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/host-rows.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/registry.h"
#include "agent/identify/tracker.h"
#include "agent/links.h"
#include "agent/telemetry.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/shim-protocol.h"

static const struct {
    const char *what;
    double before, beside;
    size_t n_beside;
    double left;
} cases[] = {
    { "alone", 0, 0, 0, 100 },
    { "after one who goes first", 30, 0, 0, 70 },
    { "after ones who take all: the floor", 100, 0, 0, 5 },
    { "the counters were late: the floor", 250, 0, 0, 5 },
    { "beside one who takes all: a half", 0, 100, 1, 50 },
    { "beside ones who leave more than their part", 0, 20, 3, 80 },
    { "after one and beside one", 40, 60, 1, 30 },
};

UNIT_TEST(an_uplink_leaves_what_others_do_not_take)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double left = links_left(100, cases[i].before, 0.05, cases[i].beside,
                                 cases[i].n_beside);

        if (fabs(left - cases[i].left) > 1e-9) {
            fail_msg("%s: %g", cases[i].what, left);
        }
    }
}

static void
ignore_job(struct job *job OVS_UNUSED, void *aux OVS_UNUSED)
{
}

static uint16_t
no_slot(const char *name OVS_UNUSED, void *aux OVS_UNUSED)
{
    return 0;
}

/* Returns the reply to a job of an agent without jobs. */
static struct json *
ask(void)
{
    static const struct registry_class class = {
        .begin = ignore_job,
        .end = ignore_job,
        .slot = no_slot,
    };
    const struct tracker_config tracker_config = {
        .identity = identity_open_blind(),
    };
    struct wanted wanted = {
        .all.min_share = SHIM_MIN_SHARE_DEFAULT,
        .jobs = SHASH_INITIALIZER(&wanted.jobs),
    };
    struct tracker *tracker = tracker_create(&tracker_config, &class, NULL);
    const struct links_facts facts = {
        .registry = tracker_registry(tracker),
        .wanted = &wanted,
        .capacity_bps = 50000000,
    };
    struct json *json = links_compose(&facts, "asha/t0");

    tracker_destroy(tracker);
    identity_close(tracker_config.identity);
    return json;
}

/* The trainer's peers (trainer/gossip/agent-links.c) read these members. */
UNIT_TEST(reply_has_the_members_that_peers_read)
{
    struct json *json = ask();
    const struct shash *members = json_object(json);

    assert_int_equal(json_integer(shash_find_data(members, "capacity_bps")),
                     50000000);
    assert_int_equal(json_integer(shash_find_data(members, "left_bps")),
                     50000000);
    assert_non_null(shash_find_data(members, "links"));
    json_destroy(json);
}

/* An address of this host that is not 127.0.0.0/8, or 0. */
static uint32_t
own_address(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(9),
        .sin_addr.s_addr = htonl(0x0a000001),
    };
    socklen_t n = sizeof to;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool ok = !connect(fd, (struct sockaddr *) &to, sizeof to)
              && !getsockname(fd, (struct sockaddr *) &to, &n);

    close(fd);
    return ok && (ntohl(to.sin_addr.s_addr) >> 24) != 127 ? to.sin_addr.s_addr
                                                          : 0;
}

/* Returns the number of connections to 'remote'; none is of the loopback. */
static int
flows_to(uint32_t remote)
{
    struct json *json = ask();
    const struct json *links = shash_find_data(json_object(json), "links");
    char address[INET_ADDRSTRLEN];
    int n = 0;

    inet_ntop(AF_INET, &remote, address, sizeof address);
    for (size_t i = 0; i < links->array.n; i++) {
        const struct shash *path = json_object(links->array.elems[i]);
        const char *to = json_string(shash_find_data(path, "remote"));

        assert_int_not_equal(strncmp(to, "127.", 4), 0);
        if (!strcmp(to, address)) {
            n = json_integer(shash_find_data(path, "flows"));
        }
    }
    json_destroy(json);
    return n;
}

UNIT_TEST(a_mapped_connection_counts_as_ipv4)
{
    uint32_t address = own_address();
    struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
    socklen_t n = sizeof sin6;
    int listener = socket(AF_INET6, SOCK_STREAM, 0), fd, off = 0, before;

    if (!address || listener < 0) {
        close(listener);
        skip();
    }
    sin6.sin6_addr.s6_addr[10] = sin6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&sin6.sin6_addr.s6_addr[12], &address, 4);
    setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    assert_int_equal(bind(listener, (struct sockaddr *) &sin6, n), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &sin6, &n), 0);
    before = flows_to(address);
    fd = socket(AF_INET6, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &sin6, n), 0);

    /* Both ends. */
    assert_in_range(flows_to(address), before + 2, INT_MAX);
    close(fd);
    close(listener);
}

/* The bytes of a job by remote address. */

/* Adds bytes that were sent to an address of IPv4. */
static void
add(struct job *job, int a, int b, int c, int d, uint64_t bytes)
{
    const uint8_t address[16] = { [10] = 0xff, 0xff, a, b, c, d };

    pairs_add(job, address, bytes);
}

UNIT_TEST(bytes_of_an_address_add_up)
{
    struct job job = { .n_remotes = 0 };
    struct json *json;
    char *text;

    add(&job, 10, 77, 0, 2, 100);
    add(&job, 10, 77, 0, 3, 5);
    add(&job, 10, 77, 0, 2, 20);
    pairs_add(&job, (uint8_t[16]){ 0xfd, 9, [15] = 2 }, 7);
    json = pairs_to_json(&job);
    text = json_to_string(json, JSSF_SORT);
    assert_is(text, "[{\"bytes\":120,\"remote\":\"10.77.0.2\"},"
                    "{\"bytes\":5,\"remote\":\"10.77.0.3\"},"
                    "{\"bytes\":7,\"remote\":\"fd09::2\"}]");
    json_destroy(json);
    free(job.remotes);
}

UNIT_TEST(addresses_beyond_the_limit_are_left_out)
{
    struct job job = { .n_remotes = 0 };

    for (int i = 0; i < PAIRS_MAX_REMOTES + 3; i++) {
        add(&job, 10, 0, i / 100, i % 100, 1);
    }
    assert_int_equal(job.n_remotes, PAIRS_MAX_REMOTES);
    add(&job, 10, 0, 0, 7, 1);
    assert_int_equal(job.remotes[7].bytes, 2);
    free(job.remotes);
}

/* Keys of the controller, and the addresses that are reported to it. */

static bool
take(struct peers *p, const char *text)
{
    struct json *json = json_from_string(text);
    bool good = peers_take_keys(p, json);

    json_destroy(json);
    return good;
}

UNIT_TEST(keys_are_replaced_and_removed)
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
UNIT_TEST(only_addresses_of_this_host_are_reported)
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
