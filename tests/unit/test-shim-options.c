/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/options.h"

#define MAX_ARGS 24

/* Splits 'line' at spaces and parses it. */
static char *
parse(const char *line, struct options *o, char *copy)
{
    char *argv[MAX_ARGS] = { (char *) "stagecoach-shim" };
    int argc = 1;

    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    return options_parse(argc, argv, o);
}

#define GOOD "--name h0 --host-port af_packet:in --uplink af_packet:out " \
             "--rate 50Mbit --control /tmp/s.sock"

static void
accepts_what_is_needed(void **state)
{
    struct options o;
    char copy[512];

    (void) state;
    assert_null(parse(GOOD, &o, copy));
    assert_string_equal(o.name, "h0");
    assert_string_equal(o.host.iface, "in");
    assert_string_equal(o.uplink.iface, "out");
    assert_int_equal(o.rate_bps, 50000000);
    assert_string_equal(o.control, "/tmp/s.sock");
    assert_int_equal(o.mtu, 1500);
    assert_int_equal(o.late_us, 500);
    assert_true(o.tag);
    assert_null(o.cpus);
    assert_int_equal(o.huge, HUGE_AUTO);

    assert_null(parse(GOOD " --mtu=9000 --cpus 0-1 --no-huge --no-tag --late 0", &o,
                      copy));
    assert_int_equal(o.mtu, 9000);
    assert_int_equal(o.late_us, 0);
    assert_string_equal(o.cpus, "0-1");
    assert_int_equal(o.huge, HUGE_NO);
    assert_false(o.tag);

    assert_false(o.cc);
    assert_null(parse(GOOD " --cc on --downlink-rate 2Gbit --control-port 7000"
                      " --control-port=65535", &o, copy));
    assert_true(o.cc);
    assert_int_equal(o.downlink_bps, 2000000000);
    assert_int_equal(o.control_ports[0], 7000);
    assert_int_equal(o.control_ports[1], 65535);
    assert_int_equal(o.control_ports[2], 0);

    assert_null(parse("--show /tmp/s.sock", &o, copy));
    assert_string_equal(o.show, "/tmp/s.sock");
}

static void
names_the_option_at_fault(void **state)
{
    static const struct {
        const char *line, *error;
    } cases[] = {
        { "--name", "--name: needs an argument, NAME" },
        { "--name h0", "--host-port: required option is missing" },
        { "--speed 3", "--speed: unknown option, --help lists them" },
        { "x", "x: unknown option, --help lists them" },
        { "--rate x", "--rate: \"x\" is not a rate, such as 50Mbit" },
        { "--rate 50", "--rate: \"50\" is not a rate, such as 50Mbit" },
        { "--rate -5Mbit",
          "--rate: \"-5Mbit\" is not a rate, such as 50Mbit" },
        { "--rate 0Mbit", "--rate: \"0Mbit\" is not a rate, such as 50Mbit" },
        { "--rate nanbit",
          "--rate: \"nanbit\" is not a rate, such as 50Mbit" },
        { "--rate 1e30bit",
          "--rate: \"1e30bit\" is not a rate, such as 50Mbit" },
        { "--cc yes", "--cc: \"yes\" is not one of \"on\", \"off\"" },
        { "--downlink-rate 1", "--downlink-rate: \"1\" is not a rate, such as "
          "50Mbit" },
        { "--control-port 0",
          "--control-port: \"0\" is not an integer from 1 to 65535" },
        { "--control-port 65536",
          "--control-port: \"65536\" is not an integer from 1 to 65535" },
        { "--late 10001",
          "--late: \"10001\" is not an integer from 0 to 10000" },
        { "--late=", "--late: \"\" is not an integer from 0 to 10000" },
        { "--mtu 9001",
          "--mtu: \"9001\" is not an integer from 576 to 9000" },
        { "--mtu 1500x",
          "--mtu: \"1500x\" is not an integer from 576 to 9000" },
        { "--name a/b", "--name: \"a/b\" is not 1 to 31 letters, digits, "
          "'.', '_' and '-'" },
        { "--uplink pcap:eth0",
          "--uplink: \"pcap:eth0\" is not a port, such as af_packet:eth0" },
        { "--uplink af_packet:",
          "--uplink: \"af_packet:\" is not a port, such as "
          "af_packet:eth0" },
        { "--uplink af_packet:eth0,qpairs=2",
          "--uplink: \"af_packet:eth0,qpairs=2\" is not a port, such as "
          "af_packet:eth0" },
        { "--uplink af_packet:aninterfacetoolong",
          "--uplink: \"af_packet:aninterfacetoolong\" is not a port, such as "
          "af_packet:eth0" },
        { "--name h --control s --rate 1Gbit --host-port af_packet:a "
          "--uplink af_packet:a",
          "--uplink: \"af_packet:a\" is the host's port, another interface is "
          "needed" },
        { "--cpus 0-",
          "--cpus: \"0-\" is not a list of CPUs, such as 0-1" },
        { "--no-tag=1",
          "--no-tag: \"1\" is too much, it takes no argument" },
    };

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        char copy[512], *error = parse(cases[i].line, &o, copy);

        assert_non_null(error);
        assert_string_equal(error, cases[i].error);
        free(error);
    }
}

static void
reads_rates(void **state)
{
    static const struct {
        const char *text;
        uint64_t bps;
    } cases[] = {
        { "100000bit", 100000 }, { "150Kbit", 150000 },
        { "2.5Gbit", UINT64_C(2500000000) }, { "50mbit", 50000000 },
    };

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bps = 0;

        assert_true(options_parse_rate(cases[i].text, &bps));
        assert_int_equal(bps, cases[i].bps);
    }
}

static void
ring_sizes_suit_the_kernel(void **state)
{
    struct port_spec spec = { .iface = "eth0" };
    char args[128];

    (void) state;
    port_spec_devargs(&spec, 1500, args, sizeof args);
    assert_string_equal(args, "iface=eth0,framesz=2048,blocksz=65536,"
                        "framecnt=512,qdisc_bypass=1");
    port_spec_devargs(&spec, 9000, args, sizeof args);
    assert_string_equal(args, "iface=eth0,framesz=9216,blocksz=36864,"
                        "framecnt=256,qdisc_bypass=1");
    for (uint32_t mtu = PORT_MIN_MTU; mtu <= PORT_MAX_MTU; mtu++) {
        unsigned int frame, block, count;

        port_spec_devargs(&spec, mtu, args, sizeof args);
        assert_int_equal(sscanf(args, "iface=eth0,framesz=%u,blocksz=%u,"
                                "framecnt=%u", &frame, &block, &count), 3);
        assert_true(frame >= mtu + 22 + 66);
        assert_int_equal(block % frame, 0);
        assert_int_equal(block % 4096, 0);
        assert_int_equal(count % (block / frame), 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_is_needed),
        cmocka_unit_test(names_the_option_at_fault),
        cmocka_unit_test(reads_rates),
        cmocka_unit_test(ring_sizes_suit_the_kernel),
    };

    return cmocka_run_group_tests_name("shim-options", tests, NULL, NULL);
}
