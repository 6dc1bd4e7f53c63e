/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the queues of interfaces in a network namespace of this test, of those
 * kinds that the kernel has. */

#include <config.h>

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/actuate/actuator.h"
#include "shim/ports/route-socket.h"
#include "tests/unit/unit-test.h"
#include "util.h"

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

static void
levels_have_the_queues_that_are_there(void **state OVS_UNUSED)
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
            print_message("    is not to be had here\n");
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

RUN_TESTS("uplink-queues", NULL, NULL,
          cmocka_unit_test(levels_have_the_queues_that_are_there))
