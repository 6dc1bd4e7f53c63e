/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/classify/parse.h"
#include "tests/unit/unit-test.h"

/* Frames as hexadecimal text; spaces are skipped. */
#define ETHERNET "020000000002 020000000001 "
#define IPV4(LENGTH, FRAGMENT, PROTOCOL) \
    "4500" LENGTH "0001" FRAGMENT "40" PROTOCOL "0000 0a000001 0a000002 "
#define TCP "1389 1771 00000001 00000000 5010 0400 0000 0000 "
#define UDP "1389 1771 0008 0000 "
#define IPV6(LENGTH, NEXT, HOPS) \
    "60000000" LENGTH NEXT HOPS \
    "fd000000000000000000000000000001 fd000000000000000000000000000002 "
#define TO_64 "0000000000000000000000000000"

static const struct {
    const char *name;
    const char *frame;
    enum parsed_kind kind;
    uint16_t l3;
    uint8_t family;
} cases[] = {
    { "arp", ETHERNET "0806 0001080006040001", PARSED_OTHER, 0, 0 },
    { "lldp", ETHERNET "88cc 0207", PARSED_OTHER, 0, 0 },
    { "no ethernet header", "020000000002 0200000000", PARSED_MALFORMED, 0,
      0 },
    { "tcp", ETHERNET "0800" IPV4("0028", "4000", "06") TCP, PARSED_FLOW, 14,
      4 },
    { "tcp, padded", ETHERNET "0800" IPV4("0028", "4000", "06") TCP TO_64,
      PARSED_FLOW, 14, 4 },
    { "udp", ETHERNET "0800" IPV4("001c", "0000", "11") UDP, PARSED_FLOW, 14,
      4 },
    { "icmp", ETHERNET "0800" IPV4("001c", "0000", "01") UDP, PARSED_IP, 14,
      4 },
    { "first fragment", ETHERNET "0800" IPV4("001c", "2000", "11") UDP,
      PARSED_IP, 14, 4 },
    { "later fragment", ETHERNET "0800" IPV4("001c", "0010", "06") UDP,
      PARSED_IP, 14, 4 },
    { "vlan", ETHERNET "8100 0005 0800" IPV4("0028", "4000", "06") TCP,
      PARSED_FLOW, 18, 4 },
    { "two vlans",
      ETHERNET "88a8 0005 8100 0006 0800" IPV4("0028", "4000", "06") TCP,
      PARSED_FLOW, 22, 4 },
    { "three vlans",
      ETHERNET "88a8 0005 8100 0006 8100 0007 0800" IPV4("0028", "4000", "06")
          TCP,
      PARSED_OTHER, 0, 0 },
    { "vlan cut", ETHERNET "8100 00", PARSED_MALFORMED, 0, 0 },
    { "ipv4 cut", ETHERNET "0800 4500", PARSED_MALFORMED, 14, 4 },
    { "ipv4 longer than the frame",
      ETHERNET "0800" IPV4("0029", "4000", "06") TCP, PARSED_MALFORMED, 14,
      4 },
    { "ipv4 without a length", ETHERNET "0800" IPV4("0000", "4000", "06") TCP,
      PARSED_FLOW, 14, 4 },
    { "ipv4 without a length, cut",
      ETHERNET "0800" IPV4("0000", "4000", "06") "1389 1771 0000",
      PARSED_MALFORMED, 14, 4 },
    { "ipv6 without a length", ETHERNET "86dd" IPV6("0000", "06", "40") TCP,
      PARSED_FLOW, 14, 6 },
    { "ipv6 with the jumbo option",
      ETHERNET "86dd" IPV6("0000", "00", "40") "0600c2040001d4c0" TCP,
      PARSED_FLOW, 14, 6 },
    { "ipv4 shorter than its header",
      ETHERNET "0800" IPV4("0013", "4000", "06") TCP, PARSED_MALFORMED, 14,
      4 },
    { "ipv4 of 16 bytes of header",
      ETHERNET "0800 4400 0028 0001 4000 4006 0000 0a000001 0a000002" TCP,
      PARSED_MALFORMED, 14, 4 },
    { "ipv4 that says 6",
      ETHERNET "0800 6500 0028 0001 4000 4006 0000 0a000001 0a000002" TCP,
      PARSED_MALFORMED, 14, 4 },
    { "options longer than the packet",
      ETHERNET "0800 4f00 0028 0001 4000 4006 0000 0a000001 0a000002" TCP,
      PARSED_MALFORMED, 14, 4 },
    { "tcp cut", ETHERNET "0800" IPV4("0026", "4000", "06") TCP,
      PARSED_MALFORMED, 14, 4 },
    { "udp cut", ETHERNET "0800" IPV4("001a", "4000", "11") UDP,
      PARSED_MALFORMED, 14, 4 },
    { "tcp6", ETHERNET "86dd" IPV6("0014", "06", "40") TCP, PARSED_FLOW, 14,
      6 },
    { "udp6 after hop-by-hop",
      ETHERNET "86dd" IPV6("0010", "00", "40") "1100010400000000" UDP,
      PARSED_FLOW, 14, 6 },
    { "fragment6",
      ETHERNET "86dd" IPV6("0010", "2c", "40") "1100000100000001" UDP,
      PARSED_IP, 14, 6 },
    { "extension beyond the end",
      ETHERNET "86dd" IPV6("0010", "00", "40") "1102010400000000" UDP,
      PARSED_MALFORMED, 14, 6 },
    { "extension cut", ETHERNET "86dd" IPV6("0004", "00", "40") "11000104",
      PARSED_MALFORMED, 14, 6 },
    { "tcp6 cut", ETHERNET "86dd" IPV6("0013", "06", "40") TCP,
      PARSED_MALFORMED, 14, 6 },
    { "ipv6 longer than the frame",
      ETHERNET "86dd" IPV6("0015", "06", "40") TCP, PARSED_MALFORMED, 14, 6 },
    { "ipv6 cut", ETHERNET "86dd 6000", PARSED_MALFORMED, 14, 6 },
    { "neighbour solicitation",
      ETHERNET "86dd" IPV6("0008", "3a", "ff") "8700000000000000",
      PARSED_NEIGHBOUR, 14, 6 },
    { "the same from far away",
      ETHERNET "86dd" IPV6("0008", "3a", "fe") "8700000000000000", PARSED_IP,
      14, 6 },
    { "echo6", ETHERNET "86dd" IPV6("0008", "3a", "ff") "8000000000000000",
      PARSED_IP, 14, 6 },
};

#define N_CASES (sizeof cases / sizeof *cases)

static int
digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* A copy that ends where its memory does, so that a checker sees what is read
 * beyond. */
static uint8_t *
bytes_of(const char *text, size_t *n)
{
    uint8_t *bytes = malloc(strlen(text) / 2 + 1), *exact;

    *n = 0;
    while (*text) {
        if (*text == ' ') {
            text++;
        } else {
            bytes[(*n)++] = digit(text[0]) << 4 | digit(text[1]);
            text += 2;
        }
    }
    exact = malloc(*n);
    memcpy(exact, bytes, *n);
    free(bytes);
    return exact;
}

static void
distinguishes_kinds(void **state)
{
    for (size_t i = 0; i < N_CASES; i++) {
        struct parsed p;
        uint8_t *frame;
        size_t n;

        frame = bytes_of(cases[i].frame, &n);
        parse_frame(frame, n, true, &p);
        free(frame);
        if (p.kind != cases[i].kind || p.l3 != cases[i].l3
            || p.family != cases[i].family) {
            fail_msg("%s: kind %d, IP at %d, family %d", cases[i].name,
                     p.kind, p.l3, p.family);
        }
    }
}

static void
local_is_the_hosts_side(void **state)
{
    static const uint8_t one[] = { 10, 0, 0, 1 }, two[] = { 10, 0, 0, 2 };
    struct parsed out, in;
    uint8_t *frame;
    size_t n;

    frame = bytes_of(cases[3].frame, &n);
    parse_frame(frame, n, true, &out);
    parse_frame(frame, n, false, &in);
    free(frame);
    assert_int_equal(out.key.family, 4);
    assert_int_equal(out.key.protocol, 6);
    assert_memory_equal(out.key.local, one, 4);
    assert_memory_equal(out.key.remote, two, 4);
    assert_memory_equal(&out.key.local_port, "\x13\x89", 2);
    assert_memory_equal(&out.key.remote_port, "\x17\x71", 2);
    assert_memory_equal(in.key.local, two, 4);
    assert_memory_equal(in.key.remote, one, 4);
    assert_memory_equal(&in.key.local_port, "\x17\x71", 2);
    assert_memory_equal(&in.key.remote_port, "\x13\x89", 2);
}

/* Whatever the short cut takes, the careful parser takes too, with the same
 * key.  There are two of it where the processor can do more. */
static void
assert_common_agrees(const uint8_t *frame, size_t n, bool from_host,
                     const struct parsed *p)
{
    struct flow_id id, portable;
    uint64_t addresses;
    uint32_t ports;
    bool common = parse_common(frame, n, from_host, &id);

    assert_int_equal(
        parse_common_portable(frame, n, from_host, &portable), common);
    if (!common) {
        return;
    }
    assert_memory_equal(&id, &portable, sizeof id);
    assert_int_equal(p->kind, PARSED_FLOW);
    assert_int_equal(p->l3, PARSE_COMMON_L3);
    assert_int_equal(p->family, 4);
    memcpy(&addresses, p->key.local, 4);
    memcpy((uint8_t *) &addresses + 4, p->key.remote, 4);
    memcpy(&ports, &p->key.local_port, sizeof ports);
    assert_true(id.addresses == addresses);
    assert_true(id.rest == flow_id_init(0, ports, p->key.protocol).rest);
}

static void
common_frames_need_no_full_parse(void **state)
{
    static const struct {
        const char *name;
        bool common;
    } expected[] = {
        { "tcp", true },
        { "tcp, padded", true },
        { "udp", true },
        { "icmp", false },
        { "first fragment", false },
        { "later fragment", false },
        { "vlan", false },
        { "tcp cut", false },
        { "udp cut", false },
        { "tcp6", false },
        { "ipv4 longer than the frame", false },
        { "ipv4 without a length", false },
        { "ipv4 shorter than its header", false },
        { "ipv4 of 16 bytes of header", false },
        { "ipv4 that says 6", false },
        { "arp", false },
    };

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        size_t j = 0, n;
        struct flow_id id;
        uint8_t *frame;

        while (strcmp(cases[j].name, expected[i].name)) {
            j++;
        }
        frame = bytes_of(cases[j].frame, &n);
        if (parse_common(frame, n, true, &id) != expected[i].common) {
            fail_msg("%s: not as common as that", cases[j].name);
        }
        free(frame);
    }
}

#define VXLAN(FLAGS) "c001 12b5 003a 0000 " FLAGS "000000 00000700 "

/* Returns a list with 'prefix', an empty one if that is null. */
static const struct prefix_list *
tunnels_of(const char *prefix)
{
    static struct prefix_list list;

    list.n = prefix && prefix_parse(prefix, &list.prefixes[0]);
    assert_int_equal(list.n, prefix != NULL);
    return &list;
}

/* It has the key of its outer header where no endpoints are configured, and
 * where only the sender is one. */
static void
a_tunnel_has_the_key_of_its_inner_frame(void **state)
{
    static const struct {
        const char *frame;
        uint8_t local;          /* Last byte of the address. */
    } tunnels[] = {
        { ETHERNET "0800" IPV4("005a", "0000", "11") VXLAN("08")
          ETHERNET "0800 4500 0028 0001 4000 4006 0000 0a010009 0a010008"
          TCP, 9 },
        /* A fragment inside, and no network's number. */
        { ETHERNET "0800" IPV4("005a", "0000", "11") VXLAN("08")
          ETHERNET "0800 4500 0028 0001 2000 4006 0000 0a010009 0a010008"
          TCP, 1 },
        { ETHERNET "0800" IPV4("005a", "0000", "11") VXLAN("00")
          ETHERNET "0800 4500 0028 0001 4000 4006 0000 0a010009 0a010008"
          TCP, 1 },
        /* Nothing inside. */
        { ETHERNET "0800" IPV4("001c", "0000", "11") "c001 12b5 0008 0000",
          1 },
    };

    for (size_t i = 0; i < sizeof tunnels / sizeof *tunnels; i++) {
        struct parsed p, outer;
        size_t n;
        uint8_t *frame = bytes_of(tunnels[i].frame, &n);

        parse_frame(frame, n, true, &p);
        outer = p;
        parse_inner(frame, true, tunnels_of(NULL), &p);
        assert_memory_equal(&p, &outer, sizeof p);
        parse_inner(frame, true, tunnels_of("10.0.0.1"), &p);
        assert_memory_equal(&p, &outer, sizeof p);
        parse_inner(frame, true, tunnels_of("10.0.0.0/24"), &p);
        assert_int_equal(p.kind, PARSED_FLOW);
        assert_int_equal(p.key.local[3], tunnels[i].local);
        assert_int_equal(p.key.protocol, tunnels[i].local == 9 ? 6 : 17);
        assert_int_equal(p.l3, 14);             /* Of the outer one. */
        free(frame);
    }
}

/* Every start of every frame, with bytes changed at random: what matters is
 * that nothing is read beyond the end (run it under a checker), and that a
 * claimed IP header is inside. */
static void
survives_anything(void **state)
{
    static const struct prefix_list any = { .n = 1 };

    srandom(3);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < N_CASES; i++) {
            struct parsed p;
            size_t n, cut;
            uint8_t *whole = bytes_of(cases[i].frame, &n), *frame;

            cut = random() % (n + 1);
            frame = malloc(cut ? cut : 1);
            memcpy(frame, whole, cut);
            for (int j = 0; cut && j < round % 4; j++) {
                frame[random() % cut] = random();
            }
            parse_frame(frame, cut, round % 2, &p);
            assert_common_agrees(frame, cut, round % 2, &p);
            parse_inner(frame, round % 2, &any, &p);
            if (p.kind == PARSED_FLOW || p.kind == PARSED_IP) {
                assert_true(p.l3 + (p.family == 4 ? 20u : 40u) <= cut);
            }
            free(frame);
            free(whole);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distinguishes_kinds),
        cmocka_unit_test(local_is_the_hosts_side),
        cmocka_unit_test(common_frames_need_no_full_parse),
        cmocka_unit_test(a_tunnel_has_the_key_of_its_inner_frame),
        cmocka_unit_test(survives_anything),
    };

    return cmocka_run_group_tests_name("shim-parse", tests, NULL, NULL);
}
