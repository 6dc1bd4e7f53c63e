/* SPDX-License-Identifier: Apache-2.0 */

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
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

UNIT_TEST(distinguishes_kinds)
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

UNIT_TEST(local_is_the_hosts_side)
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

UNIT_TEST(common_frames_need_no_full_parse)
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

/* They have the keys of their outer headers. */
UNIT_TEST(some_tunnels_have_no_flow_inside)
{
    static const char *const frames[] = {
        /* A fragment, no network's number, and nothing. */
        ETHERNET "0800" IPV4("005a", "0000", "11") VXLAN("08") ETHERNET
        "0800 4500 0028 0001 2000 4006 0000 0a010009 0a010008" TCP,
        ETHERNET "0800" IPV4("005a", "0000", "11") VXLAN("00") ETHERNET
        "0800 4500 0028 0001 4000 4006 0000 0a010009 0a010008" TCP,
        ETHERNET "0800" IPV4("001c", "0000", "11") "c001 12b5 0008 0000",
    };
    static const struct prefix_list any = { .n = 1 };

    for (size_t i = 0; i < N_ELEMENTS(frames); i++) {
        struct parsed p, outer;
        size_t n;
        uint8_t *frame = bytes_of(frames[i], &n);

        parse_frame(frame, n, true, &outer);
        p = outer;
        parse_inner(frame, true, &any, &p);
        assert_memory_equal(&p, &outer, sizeof p);
        free(frame);
    }
}

#define MAX_TEXT 1024

/* Puts what 'format' makes before the hexadecimal 'text'. */
__attribute__((__format__(__printf__, 2, 3))) static void
put_before(char text[MAX_TEXT], const char *format, ...)
{
    char *old = strdup(text);
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text, MAX_TEXT, format, args);
    va_end(args);
    assert_true(n + strlen(old) < MAX_TEXT);
    strcpy(text + n, old);
    free(old);
}

/* Puts an IP header before 'text': from node 1 to 2, or from pod 5 to 6. */
static void
put_ip(char text[MAX_TEXT], int family, int protocol, bool pods)
{
    size_t n = strlen(text) / 2;

    if (family == 4) {
        put_before(text, "4500%04zx0001400040%02x0000%s", n + 20, protocol,
                   pods ? "0af400050af40106" : "0a0000010a000002");
    } else {
        const char *net = pods ? "fd0a" : "fd00";

        put_before(text, "60000000%04zx%02x40%s%026x%02x%s%026x%02x", n,
                   protocol, net, 0, pods ? 5 : 1, net, 0, pods ? 6 : 2);
    }
}

enum inside { VXLAN_FRAME, GENEVE_FRAME, GENEVE_PACKET, PACKET };

static const struct tunnel_kind {
    enum inside inside;
    int protocol, port, vxlan_port, geneve_port;
    bool known;
} tunnel_kinds[] = {
    { VXLAN_FRAME, 17, 4789, 0, 0, true },
    { VXLAN_FRAME, 17, 8472, 0, 0, true },
    { VXLAN_FRAME, 17, 6784, 6784, 0, true },
    { VXLAN_FRAME, 17, 4789, 6784, 0, false },
    { VXLAN_FRAME, 17, 4790, 0, 0, false },
    { VXLAN_FRAME, 17, 6081, 6081, 0, true },
    { GENEVE_FRAME, 17, 6081, 0, 0, true },
    { GENEVE_PACKET, 17, 6081, 6784, 0, true },
    { GENEVE_FRAME, 17, 6080, 0, 0, false },
    { GENEVE_FRAME, 17, 6080, 0, 6080, true },
    { GENEVE_PACKET, 17, 6081, 0, 6080, false },
    { GENEVE_FRAME, 17, 8472, 0, 8472, true },
    { PACKET, 4, 0, 0, 0, true },
    { PACKET, 41, 0, 0, 0, true },
    { PACKET, 47, 0, 0, 0, false },            /* GRE. */
    { PACKET, 50, 0, 0, 0, false },            /* IPsec. */
    { GENEVE_PACKET, 17, 51820, 0, 0, false }, /* WireGuard. */
};

/* Makes a frame of a tunnel with a segment of a pod's connection, or with its
 * datagram; VLAN and options of Geneve are by chance. */
static void
make_tunnel(char text[MAX_TEXT], const struct tunnel_kind *kind, int outer,
            int inner, bool udp)
{
    const char *type = inner == 4 ? "0800" : "86dd";
    int n_options = random() % 64;

    strcpy(text, udp ? "1389177100080000"
                     : "1389177100000001000000005010040000000000");
    put_ip(text, inner, udp ? 17 : 6, true);
    if (kind->inside == VXLAN_FRAME || kind->inside == GENEVE_FRAME) {
        put_before(text, "020000000004020000000003%s%s",
                   random() % 2 ? "81000005" : "", type);
        type = "6558";
    }
    if (kind->inside == VXLAN_FRAME) {
        put_before(text, "0800000000002a00");
    } else if (kind->inside != PACKET) {
        for (int i = 0; i < n_options; i++) {
            put_before(text, "01020304");
        }
        put_before(text, "%02x%s%s00002a00", n_options,
                   random() % 2 ? "40" : "00", type);
    }
    if (kind->protocol == 17) {
        put_before(text, "c350%04x%04zx0000", kind->port,
                   strlen(text) / 2 + 8);
    }
    put_ip(text, outer, kind->protocol, false);
    put_before(text, "020000000002020000000001%s",
               outer == 4 ? "0800" : "86dd");
}

/* Families and directions are by chance, too.  Without endpoints, and where
 * only the sender is one, it is the flow of the outer header. */
UNIT_TEST(knows_the_flow_inside_each_kind_of_tunnel)
{
    struct prefix_list tunnels = { .n = 2 }, none = { .n = 0 };
    struct prefix_list one_end = { .n = 2 };

    assert_true(prefix_parse("10.0.0.0/24", &tunnels.prefixes[0]));
    assert_true(prefix_parse("fd00::/64", &tunnels.prefixes[1]));
    assert_true(prefix_parse("10.0.0.1", &one_end.prefixes[0]));
    assert_true(prefix_parse("fd00::1", &one_end.prefixes[1]));
    srandom(8472);
    for (size_t i = 0; i < 40 * N_ELEMENTS(tunnel_kinds); i++) {
        const struct tunnel_kind *kind =
            &tunnel_kinds[i % N_ELEMENTS(tunnel_kinds)];
        int outer = random() % 2 ? 4 : 6;
        int inner = kind->protocol == 4                    ? 4
                    : kind->protocol == 41 || random() % 2 ? 6
                                                           : 4;
        bool from_host = random() % 2, udp = random() % 2;
        char text[MAX_TEXT];
        struct parsed p, before;
        uint8_t *frame;
        size_t n;

        make_tunnel(text, kind, outer, inner, udp);
        frame = bytes_of(text, &n);
        tunnels.vxlan_port = kind->vxlan_port;
        tunnels.geneve_port = kind->geneve_port;
        parse_frame(frame, n, from_host, &p);
        before = p;
        parse_inner(frame, from_host, &none, &p);
        parse_inner(frame, from_host, &one_end, &p);
        assert_memory_equal(&p, &before, sizeof p);
        if (from_host) {
            assert_int_equal(parse_is_udp_to(frame, &p, &tunnels, 0x1771),
                             udp && kind->known);
        }
        parse_inner(frame, from_host, &tunnels, &p);
        assert_int_equal(p.l3, 14); /* Of the outer one. */
        assert_int_equal(ntohs(p.key.local_port)
                             == (from_host ? 0x1389 : 0x1771),
                         kind->known);
        if (kind->known) {
            assert_int_equal(p.kind, PARSED_FLOW);
            assert_int_equal(p.key.family, inner);
            assert_int_equal(p.key.protocol, udp ? 17 : 6);
            assert_int_equal(p.key.local[inner == 4 ? 3 : 15],
                             from_host ? 5 : 6);
        }
        free(frame);
    }
}

/* Every start of every frame, with bytes changed at random: what matters is
 * that nothing is read beyond the end (run it under a checker), and that a
 * claimed IP header is inside. */
UNIT_TEST(survives_anything)
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
