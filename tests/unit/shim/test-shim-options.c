/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <string.h>

#include "base/name.h"
#include "shim/options.h"
#include "tests/unit/unit-test.h"

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

UNIT_TEST(accepts_what_is_needed)
{
    struct options o;
    char copy[512];

    assert_null(parse(GOOD, &o, copy));
    assert_string_equal(o.name, "h0");
    assert_string_equal(o.host.iface, "in");
    assert_string_equal(o.uplink.iface, "out");
    assert_int_equal(o.rate_bps, 50000000);
    assert_string_equal(o.control, "/tmp/s.sock");
    assert_int_equal(o.mtu, 1500);
    assert_int_equal(o.late_us, 500);
    assert_false(o.no_tag);
    assert_null(o.cpus);
    assert_int_equal(o.huge, HUGE_AUTO);
    assert_int_equal(o.poll, LOOP_AUTO);
    assert_false(o.keep_offload);
    assert_int_equal(o.tunnels.n, 0);

    assert_null(parse(GOOD " --mtu=9000 --cpus 0-1 --no-huge --no-tag "
                      "--poll interrupt --keep-offload --late 0", &o, copy));
    assert_int_equal(o.poll, LOOP_INTERRUPT);
    assert_true(o.host.keep_offload && o.uplink.keep_offload);
    assert_int_equal(o.mtu, 9000);
    assert_int_equal(o.late_us, 0);
    assert_string_equal(o.cpus, "0-1");
    assert_int_equal(o.huge, HUGE_NO);
    assert_true(o.no_tag);
    assert_false(o.take_over);

    assert_null(parse(GOOD " --poll sleep", &o, copy));
    assert_int_equal(o.poll, LOOP_SLEEP);
    assert_null(parse(GOOD " --poll sleep", &o, copy));
    assert_int_equal(o.poll, LOOP_SLEEP);

    assert_null(parse(GOOD " --take-over", &o, copy));
    assert_true(o.take_over);

    assert_null(parse(GOOD " --vxlan 10.0.0.0/24 --vxlan=fd00::1", &o, copy));
    assert_int_equal(o.tunnels.n, 2);
    assert_int_equal(o.tunnels.prefixes[0].bits, 24);
    assert_int_equal(o.tunnels.prefixes[1].family, 6);
    assert_int_equal(o.tunnels.vxlan_port, 0);
    assert_null(
        parse(GOOD " --vxlan 10.0.0.0/24 --vxlan-port 6784 --geneve-port 99",
              &o, copy));
    assert_int_equal(o.tunnels.vxlan_port, 6784);
    assert_int_equal(o.tunnels.geneve_port, 99);

    assert_true(o.cc);
    assert_false(o.strict_switch);
    assert_null(parse(GOOD " --cc off", &o, copy));
    assert_false(o.cc);
    assert_null(parse(GOOD " --switch-queues strict --downlink-rate 2Gbit"
                      " --control-port 7000 --control-port=65535", &o, copy));
    assert_true(o.cc);
    assert_true(o.strict_switch);
    assert_int_equal(o.downlink_bps, 2000000000);
    assert_int_equal(o.control_ports[0], 7000);
    assert_int_equal(o.control_ports[1], 65535);
    assert_int_equal(o.control_ports[2], 0);
    assert_null(parse("--show /tmp/s.sock", &o, copy));
    assert_string_equal(o.show, "/tmp/s.sock");
}

UNIT_TEST(ports_of_the_kernel_have_slot_tags)
{
    static const struct {
        const char *port;
        bool tags;
    } cases[] = { { "af_packet:in", true }, { "af_xdp:in", true },
                  { "tap:in", true },       { "virtio_user:in", true },
                  { "ring", false },        { "pci:0000:01:00.0", false } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int given = -1; given < 2; given++) {
            char line[256], copy[512];
            struct options o;

            snprintf(line, sizeof line,
                     "--name h0 --host-port %s --uplink af_packet:out "
                     "--rate 50Mbit --control /tmp/s.sock%s",
                     cases[i].port,
                     given < 0 ? ""
                     : given   ? " --host-tags yes"
                               : " --host-tags no");
            assert_null(parse(line, &o, copy));
            assert_int_equal(o.host.slot_tags,
                             given < 0 ? cases[i].tags : given);
            assert_false(o.uplink.slot_tags);
        }
    }
}

UNIT_TEST(a_replay_needs_options_of_its_own)
{
    struct options o;
    char copy[512];

    assert_null(parse("--replay in --rules r --out o", &o, copy));
    assert_string_equal(o.replay, "in");
    assert_string_equal(o.rules, "r");
    assert_string_equal(o.out, "o");
    assert_null(o.to_host);
}

UNIT_TEST(names_the_option_at_fault)
{
    static const struct {
        const char *line, *error;
    } cases[] = {
        { "--name", "--name: needs a value, NAME" },
        { "--name h0", "--host-port: required option is missing" },
        { "--speed 3", "--speed: unknown option, --help lists them" },
        { "x", "\"x\": unexpected argument, there are only options" },
        { "--replay in --out o", "--rules: required option is missing" },
        { "--replay in --rules r", "--out: required option is missing" },
        { GOOD " --to-host x", "--to-host: without --replay; expected both" },
        { GOOD " --out x", "--out: without --replay; expected both" },
        { GOOD " --geneve-port 9",
          "--geneve-port: without --vxlan; expected both" },
        { GOOD " --vxlan fd00::1 --vxlan-port 9 --geneve-port 9",
          "--geneve-port: 9 is VXLAN's; expected another" },
        { "--rate x", "--rate: \"x\" is not a rate, such as 50Mbit" },
        { "--rate 50", "--rate: \"50\" is not a rate, such as 50Mbit" },
        { "--rate -5Mbit",
          "--rate: \"-5Mbit\" is not a rate, such as 50Mbit" },
        { "--rate 0Mbit", "--rate: \"0Mbit\" is not a rate, such as 50Mbit" },
        { "--rate nanbit",
          "--rate: \"nanbit\" is not a rate, such as 50Mbit" },
        { "--rate 1e30bit",
          "--rate: \"1e30bit\" is not a rate, such as 50Mbit" },
        { "--host-tags on",
          "--host-tags: \"on\" is not one of \"no\", \"yes\"" },
        { "--cc yes", "--cc: \"yes\" is not one of \"off\", \"on\"" },
        { "--downlink-rate 1", "--downlink-rate: \"1\" is not a rate, such as "
                               "50Mbit" },
        { "--control-port 0",
          "--control-port: \"0\" is not an integer from 1 to 65535" },
        { "--control-port 65536",
          "--control-port: \"65536\" is not an integer from 1 to 65535" },
        { "--late 10001",
          "--late: \"10001\" is not an integer from 0 to 10000" },
        { "--late=", "--late: \"\" is not an integer from 0 to 10000" },
        { "--mtu 9001", "--mtu: \"9001\" is not an integer from 576 to 9000" },
        { "--mtu 1500x",
          "--mtu: \"1500x\" is not an integer from 576 to 9000" },
        { "--name a/b", "--name: \"a/b\" is not " NAME_RULE },
        { "--uplink eth0",
          "--uplink: \"eth0\" is not a port, the kinds are af_packet, "
          "af_xdp, tap, virtio_user, ring, pci" },
        { "--uplink ring:eth0",
          "--uplink: \"ring:eth0\" is not a port, such as ring" },
        { "--uplink pci:01:00.0",
          "--uplink: \"pci:01:00.0\" is not a port, such as "
          "pci:0000:01:00.0" },
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
          "--uplink: \"af_packet:a\" is the host's port, another is "
          "needed" },
        { "--name h --control s --rate 1Gbit --host-port af_packet:a "
          "--uplink af_xdp:a",
          "--uplink: \"af_xdp:a\" is the host's port, another is needed" },
        { "--name h --control s --rate 1Gbit --host-port tap:a "
          "--uplink af_packet:b --mtu 9000",
          "--mtu: 9000 is too much for tap; expected at most 1500" },
        { "--name h --control s --rate 1Gbit --host-port af_packet:a "
          "--uplink af_xdp:b --mtu 3600",
          "--mtu: 3600 is too much for af_xdp; expected at most 2984" },
        { "--poll never",
          "--poll: \"never\" is not one of \"auto\", \"busy\", \"sleep\", "
          "\"interrupt\"" },
        { "--name h --control s --rate 1Gbit --host-port af_packet:a "
          "--uplink af_xdp:b --poll interrupt",
          "--poll: af_xdp has no receive interrupt, auto, busy or sleep is "
          "needed" },
        { "--cpus 0-", "--cpus: \"0-\" is not a list of CPUs, such as 0-1" },
        { "--no-tag=1", "--no-tag: \"1\" is too much, it takes no value" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        char copy[512], *error = parse(cases[i].line, &o, copy);

        assert_is(error, cases[i].error);
    }
}

UNIT_TEST(reads_rates)
{
    static const struct {
        const char *text;
        uint64_t bps;
    } cases[] = {
        { "100000bit", 100000 }, { "150Kbit", 150000 },
        { "2.5Gbit", UINT64_C(2500000000) }, { "50mbit", 50000000 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        char line[256], copy[512];

        snprintf(line, sizeof line, GOOD " --rate %s", cases[i].text);
        assert_null(parse(line, &o, copy));
        assert_int_equal(o.rate_bps, cases[i].bps);
    }
}

UNIT_TEST(ring_sizes_suit_the_kernel)
{
    struct port_spec spec;
    char args[PORT_MAX_ARGS];

    assert_null(port_spec_parse("af_packet:eth0", &spec));
    port_spec_devargs(&spec, 1500, args);
    assert_string_equal(args, "iface=eth0,framesz=2048,blocksz=65536,"
                        "framecnt=512,qdisc_bypass=1");
    port_spec_devargs(&spec, 9000, args);
    assert_string_equal(args, "iface=eth0,framesz=9216,blocksz=36864,"
                        "framecnt=256,qdisc_bypass=1");
    for (uint32_t mtu = PORT_MIN_MTU; mtu <= PORT_MAX_MTU; mtu++) {
        unsigned int frame, block, count;

        port_spec_devargs(&spec, mtu, args);
        assert_int_equal(sscanf(args, "iface=eth0,framesz=%u,blocksz=%u,"
                                "framecnt=%u", &frame, &block, &count), 3);
        assert_true(frame >= mtu + 22 + 66);
        assert_int_equal(block % frame, 0);
        assert_int_equal(block % 4096, 0);
        assert_int_equal(count % (block / frame), 0);
    }
}

UNIT_TEST(every_kind_of_port_has_its_arguments)
{
    static const struct {
        const char *text, *iface, *args;
    } cases[] = {
        { "af_xdp:eth0", "eth0", "iface=eth0" },
        { "tap:host0", "host0", "iface=host0" },
        { "virtio_user:host0", "host0",
          "path=/dev/vhost-net,queues=1,"
          "queue_size=1024,iface=host0" },
        { "ring", "", "" },
        { "pci:0000:01:00.0", "", "" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct port_spec spec;
        char args[PORT_MAX_ARGS];

        assert_null(port_spec_parse(cases[i].text, &spec));
        port_spec_devargs(&spec, 1500, args);
        assert_string_equal(args, cases[i].args);
        assert_string_equal(spec.iface, cases[i].iface);
    }
}
