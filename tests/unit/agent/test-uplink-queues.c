/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the queues of interfaces in a network namespace of this test, of those
 * kinds that the kernel has. */

#include <config.h>

#include <linux/if_ether.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/actuate/actuator.h"
#include "agent/actuate/tc.h"
#include "shim/ports/route-socket.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/shim-protocol.h"

#define MAKE "ip link add q0 numtxqueues 4 type veth peer name q1 && "
#define HTB 0x53630010 /* Class of level 0. */

/* Levels of a policy: 0, 1, 2 and the default, or all. */
enum { FOUR = 0x87, ALL = 0xff };

#define ROW(MAKE, IFACE, EVERYWHERE, LEVELS, ...) \
    {                                             \
        MAKE, IFACE, EVERYWHERE, LEVELS,          \
        {                                         \
            __VA_ARGS__                           \
        }                                         \
    }

/* Commands that make the queues of the interface "q0", or of 'iface'.  A case
 * is left out if they fail and it is not 'everywhere'. */
static const struct {
    const char *make, *iface;
    bool everywhere;
    uint8_t levels;
    struct uplink_queues queues;
} cases[] = {
    ROW("true", NULL, true, FOUR, .n = 0),
    ROW("tc qdisc add dev q0 root pfifo_fast", NULL, true, FOUR, 3,
        "pfifo_fast", { 6, 6, 0, 1, 1, 1, 1, 1 }),
    ROW("tc qdisc add dev q0 root pfifo_fast", NULL, true, 0, 3, "pfifo_fast",
        { 1, 1, 1, 1, 1, 1, 1, 1 }),
    ROW("tc qdisc add dev q0 root handle 9: mq && for i in 1 2 3 4; do "
        "tc qdisc replace dev q0 parent 9:$i pfifo_fast; done",
        NULL, true, FOUR, 3, "pfifo_fast", { 6, 6, 0, 1, 1, 1, 1, 1 }),
    ROW("tc qdisc add dev q0 root handle 9: mq && "
        "tc qdisc replace dev q0 parent 9:2 tbf rate 1gbit burst 9k limit 9k",
        NULL, true, FOUR, .n = 0),
    ROW("tc qdisc add dev q0 root handle 5363: htb default 17", NULL, true,
        FOUR, 8, "htb",
        { HTB, HTB + 1, HTB + 2, HTB + 3, HTB + 4, HTB + 5, HTB + 6,
          HTB + 7 }),
    ROW("tc qdisc add dev q0 root handle 1: htb default 17", NULL, true, FOUR,
        .n = 0),
    ROW("tc qdisc add dev q0 root prio bands 4 "
        "priomap 3 3 3 3 2 2 1 0 3 3 3 3 3 3 3 3",
        NULL, false, FOUR, 4, "prio", { 7, 6, 4, 0, 0, 0, 0, 0 }),
    ROW("tc qdisc add dev q0 root ets bands 8 strict 8 "
        "priomap 7 6 5 4 3 2 1 0",
        NULL, false, ALL, 8, "ets", { 7, 6, 5, 4, 3, 2, 1, 0 }),
    ROW("tc qdisc add dev q0 root mqprio num_tc 4 map 0 1 2 3 "
        "queues 1@0 1@1 1@2 1@3 hw 0",
        NULL, false, FOUR, 4, "mqprio", { 3, 2, 1, 0, 0, 0, 0, 0 }),
    ROW("ip link add link q0 name q0.5 type vlan id 5 && "
        "tc qdisc add dev q0 root pfifo_fast",
        "q0.5", false, FOUR, 3, "pfifo_fast", { 6, 6, 0, 1, 1, 1, 1, 1 }),
    ROW("ip link add bond0 type bond && ip link set q0 master bond0 && "
        "ip link add link bond0 name bond0.5 type vlan id 5 && "
        "tc qdisc add dev q0 root pfifo_fast",
        "bond0.5", false, FOUR, 3, "pfifo_fast", { 6, 6, 0, 1, 1, 1, 1, 1 }),
    ROW("tc qdisc add dev q0 root fq && "
        "uname -r | awk -F. '{ exit $1 * 1000 + $2 < 6007 }'",
        NULL, false, FOUR, 3, "fq", { 6, 6, 0, 1, 1, 1, 1, 1 }),
};

UNIT_TEST(levels_have_the_queues_that_are_there)
{
    struct route_socket *rs;

    if (unshare(CLONE_NEWNET)) {
        skip();
    }
    assert_int_equal(route_socket_open(-1, &rs), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *iface = cases[i].iface ? cases[i].iface : "q0";
        char *make = xasprintf(MAKE "%s", cases[i].make);
        struct uplink_queues q;

        print_message("%s\n", cases[i].make);
        if (system(make)) {
            assert_false(cases[i].everywhere);
            print_message("    is not available here\n");
        } else {
            assert_int_equal(uplink_queues_find(rs, if_nametoindex(iface),
                                                cases[i].levels, &q),
                             0);
            assert_int_equal(q.n, cases[i].queues.n);
            assert_string_equal(q.kind, cases[i].queues.kind);
            assert_memory_equal(q.priority, cases[i].queues.priority,
                                sizeof q.priority);
        }
        free(make);
        assert_int_equal(system("ip link del q0; ip link del bond0 2>/dev/null"
                                " || true"),
                         0);
    }
    route_socket_close(rs);
}

/* Queues that the agent makes. */

UNIT_TEST(reads_an_interface_and_its_rate)
{
    static const char *const bad[] = {
        "",
        "eth0",
        "eth0:",
        ":1Gbit",
        "eth0:fast",
        "eth0:-1Gbit",
        "eth0:1Tbit",
        "eth0:999bit",
        "eth0:10001Gbit",
        "../eth0:1Gbit",
        "an-interface-of-17:1Gbit",
    };
    struct tc_iface iface;

    assert_null(tc_iface_parse("eth0:25Gbit", &iface));
    assert_string_equal(iface.name, "eth0");
    assert_int_equal(iface.rate_bps, 25000000000);
    assert_null(tc_iface_parse("vlan:7:1.5Mbit", &iface));
    assert_string_equal(iface.name, "vlan:7");
    assert_int_equal(iface.rate_bps, 1500000);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        char *start =
            xasprintf("\"%s\"; expected an interface of 1 to 15 ", bad[i]);
        char *error = tc_iface_parse(bad[i], &iface);

        assert_non_null(error);
        assert_memory_equal(error, start, strlen(start));
        free(error);
        free(start);
    }
}

/* Which level the filters choose for the first bytes of a packet. */
static int
level_of(const struct tc_plan *plan, uint16_t protocol, uint32_t first)
{
    int level = SHIM_LEVEL_DEFAULT, n = 0;

    for (int i = 0; i < TC_N_FILTERS; i++) {
        struct tc_filter f;

        if (tc_filter_of(plan, i, &f) && f.protocol == protocol
            && (first & f.mask) == f.value) {
            level = f.level;
            n++;
        }
    }
    assert_in_range(n, 0, 1);
    return level;
}

UNIT_TEST(chooses_the_level_by_the_dscp_of_the_policy)
{
    /* A policy of four levels. */
    const struct tc_plan plan = {
        .dscps = { 39, 35, 23, 20, 7, 255, 255, 0 },
    };

    for (uint32_t dscp = 0; dscp < 64; dscp++) {
        int level = 0;

        while (level < SHIM_LEVEL_DEFAULT && plan.dscps[level] != dscp) {
            level++;
        }

        /* A header of 20 bytes, with ECN and a length; and IPv6 with a flow
         * label. */
        assert_int_equal(level_of(&plan, ETH_P_IP,
                                  0x45000000 | dscp << 18 | 3 << 16 | 1500),
                         level);
        assert_int_equal(level_of(&plan, ETH_P_IPV6,
                                  0x60000000 | dscp << 22 | 3 << 20 | 0xfffff),
                         level);
    }
    assert_int_equal(level_of(&plan, ETH_P_ARP, 0x00010800),
                     SHIM_LEVEL_CONTROL);
    assert_int_equal(level_of(&plan, 0x88cc, 0), SHIM_LEVEL_DEFAULT);
}

UNIT_TEST(keeps_a_share_for_each_level)
{
    const struct tc_plan plan = {
        .rate_bps = 50000000,
        .min_share = SHIM_MIN_SHARE_UNIT / 50,
        .ordered = true,
    };
    struct tc_class link = tc_class_of(&plan, 1500, -1);
    struct tc_htb_opt opt = tc_class_options(&link);

    assert_int_equal(link.id, TC_LINK_CLASS);
    assert_int_equal(link.parent, TC_ROOT);
    assert_int_equal(opt.rate.rate, 6250000);
    assert_int_equal(opt.ceil.rate, 6250000);
    for (int level = 0; level < SHIM_N_LEVELS; level++) {
        struct tc_class c = tc_class_of(&plan, 1500, level);

        assert_int_equal(c.id, TC_LEVEL_CLASS(level));
        assert_int_equal(c.parent, TC_LINK_CLASS);
        opt = tc_class_options(&c);
        assert_int_equal(opt.rate.rate, 125000);
        assert_int_equal(opt.ceil.rate, 6250000);
        assert_int_equal(opt.prio, level);
        /* Two packets at 1 Mbit/s, in ticks of 64 ns. */
        assert_int_equal(opt.buffer, 2 * 1514 * 8 * 1000 / 64);
    }
}

/* HTB's fields have 32 bits, and cannot divide by nothing. */
UNIT_TEST(stays_within_what_can_be_counted)
{
    struct tc_plan plan = { .rate_bps = UINT64_C(4000000000000) };
    struct tc_class c = tc_class_of(&plan, 9000, 0);
    struct tc_htb_opt opt = tc_class_options(&c);

    assert_int_equal(c.ceil_bps, plan.rate_bps);
    assert_int_equal(opt.ceil.rate, UINT32_MAX);
    assert_int_equal(opt.rate.rate, TC_MIN_RATE_BPS / 8);
    plan.rate_bps = 1000;
    c = tc_class_of(&plan, 65536, 0);
    assert_int_equal(c.rate_bps, 1000);
    opt = tc_class_options(&c);
    assert_int_equal(opt.buffer, UINT32_MAX);
}
