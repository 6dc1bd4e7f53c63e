/* SPDX-License-Identifier: Apache-2.0 */

/* Examines interfaces in a network namespace of this test. */

#include <config.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/doctor/doctor.h"
#include "agent/identify/bpf/interfaces.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static const struct doctor_config config = { .root = "" };
static struct doctor doctor = { .config = &config };

/* Makes an interface of a pod; skips the test if that is not possible. */
static int
set_up(void **state)
{
    *state = unshare(CLONE_NEWNET)
                     || system("cd /proc/sys/net/ipv4/conf && "
                               "echo 1 >all/rp_filter && "
                               "ip link add v0 type veth peer v1 && "
                               "ip link set v0 up && ip link set v1 up")
                 ? NULL
                 : &doctor;
    return 0;
}

static int
tear_down(void **state OVS_UNUSED)
{
    for (size_t i = 0; i < doctor.n; i++) {
        free(doctor.findings[i].what);
        free(doctor.findings[i].mend);
    }
    free(doctor.findings);
    doctor = (struct doctor){ .config = &config };
    return 0;
}

#define KERNEL_TEST(NAME) UNIT_TEST_BETWEEN(NAME, set_up, tear_down)

/* Examines, and fails unless there is one finding with these words. */
static void
expect(void **state, enum doctor_result result, const char *words)
{
    if (!*state) {
        skip();
    }
    doctor_check_interfaces(&doctor);
    assert_int_equal(doctor.n, 1);
    assert_string_equal(doctor.findings[0].check, "pods");
    assert_int_equal(doctor.findings[0].result, result);
    assert_non_null(strstr(doctor.findings[0].what, words));
}

/* Loads a program that lets packets pass. */
static int
load(enum bpf_prog_type type, const char *name, int verdict)
{
    const struct bpf_insn code[] = {
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = verdict },
        { .code = BPF_JMP | BPF_EXIT },
    };

    return bpf_prog_load(type, name, "Apache-2.0", code, ARRAY_SIZE(code),
                         NULL);
}

/* Attaches a filter to "v0".  Skips the test if that is not possible. */
static void
attach_filter(const char *name, enum bpf_tc_attach_point point,
              uint32_t priority)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = if_nametoindex("v0"),
                .attach_point = point);
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = priority);
    int fd = load(BPF_PROG_TYPE_SCHED_CLS, name, -1);

    if (fd < 0 || bpf_tc_hook_create(&hook)) {
        skip();
    }
    opts.prog_fd = fd;
    assert_int_equal(bpf_tc_attach(&hook, &opts), 0);
    close(fd);
}

KERNEL_TEST(is_content_with_a_veth)
{
    expect(state, DOCTOR_OK, "nothing");
}

KERNEL_TEST(names_addresses_that_nobody_checks)
{
    static const char *const cases[] = {
        "echo 2 >/proc/sys/net/ipv4/conf/v0/rp_filter",
        "echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter",
        "ip link add b0 type bridge && ip link set v0 master b0",
    };

    for (size_t i = 0; *state && i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(system(cases[i]), 0);
        expect(state, DOCTOR_NOTE, "rp_filter is not strict");
        tear_down(state);
        set_up(state);
    }
}

KERNEL_TEST(names_gro)
{
    if (*state) {
        assert_int_equal(system("ethtool -K v0 gro on"), 0);
    }
    expect(state, DOCTOR_NOTE, "v0: GRO");
}

KERNEL_TEST(names_xdp_of_the_driver)
{
    int fd = load(BPF_PROG_TYPE_XDP, "other", 2 /* XDP_PASS */);

    if (fd < 0
        || bpf_xdp_attach(if_nametoindex("v0"), fd, XDP_FLAGS_DRV_MODE,
                          NULL)) {
        skip();
    }
    close(fd);
    expect(state, DOCTOR_NOTE, "v0: an XDP program");
}

KERNEL_TEST(names_cilium)
{
    attach_filter("cil_to_netdev", BPF_TC_EGRESS, 2);
    expect(state, DOCTOR_NOTE, "v0: Cilium (cil_to_netdev");
}

/* As Cilium attaches since 6.6. */
KERNEL_TEST(names_cilium_of_tcx)
{
    char pin[64];
    int fd = load(BPF_PROG_TYPE_SCHED_CLS, "cil_to_netdev", -1), error;

    if (fd < 0) {
        skip();
    }
    snprintf(pin, sizeof pin, "/sys/fs/bpf/test-doctor-%d", (int) getpid());
    error =
        tc_program_attach(fd, if_nametoindex("v0"), TC_PROGRAM_INGRESS, pin);
    assert_int_equal(error, 0);
    close(fd);
    doctor_check_interfaces(&doctor);
    unlink(pin);
    assert_int_equal(doctor.n, 1);
    assert_non_null(strstr(doctor.findings[0].what, "v0: Cilium"));
}

KERNEL_TEST(names_wireguard)
{
    if (system("ip link del v0; ip link add wg0 type wireguard 2>/dev/null")) {
        skip();
    }
    expect(state, DOCTOR_NOTE, "wg0: what WireGuard");
}

/* An overlay of each kind, and VXLAN and Geneve with ports of a seed. */
KERNEL_TEST(names_overlays)
{
    static const struct {
        const char *link, *words;
        enum doctor_result result;
    } cases[] = {
        { "type vxlan id 1 dstport 4789 dev v0",
          "o0: VXLAN on UDP port 4789: a shim knows", DOCTOR_OK },
        { "type vxlan id 1 dstport 8472 dev v0", "of the nodes", DOCTOR_OK },
        { "type vxlan external dstport 6784", "--vxlan-port", DOCTOR_OK },
        { "type geneve external", "o0: Geneve on UDP port 6081: a shim knows",
          DOCTOR_OK },
        { "type ipip remote 10.0.0.2", "o0: IP in IP: a shim", DOCTOR_OK },
        { "type gretap remote 10.0.0.2", "o0: GRE cannot be seen",
          DOCTOR_NOTE },
    };

    int n_known = 0;

    srandom(8472);
    for (size_t i = 0; *state && i < ARRAY_SIZE(cases) + 10; i++) {
        const char *link = i < ARRAY_SIZE(cases) ? cases[i].link : NULL;
        int port = 10000 + random() % 50000;
        bool vxlan = i % 2;
        char *words =
            (link ? xstrdup(cases[i].words)
                  : xasprintf("%s on UDP port %d: a shim knows the flows "
                              "inside with --vxlan and the addresses of the "
                              "nodes, and --%s-port",
                              vxlan ? "VXLAN" : "Geneve", port,
                              vxlan ? "vxlan" : "geneve"));
        char *command =
            (link
                 ? xasprintf("ip link add o0 %s", link)
                 : xasprintf("ip link add o0 type %s id %d dstport %d",
                             vxlan ? "vxlan dev v0" : "geneve remote 10.0.0.2",
                             port, port));

        if (!system(command)) {
            n_known++;
            doctor_check_interfaces(&doctor);
            assert_int_equal(
                doctor.n,
                strstr(command, "vxlan") || strstr(command, "geneve") ? 2 : 1);
            tear_down(state);
            assert_int_equal(system("ip link set o0 up"), 0);
            doctor_check_interfaces(&doctor);
            assert_int_equal(doctor.n, 2);
            assert_string_equal(doctor.findings[0].check, "overlay");
            assert_int_equal(doctor.findings[0].result,
                             link ? cases[i].result : DOCTOR_OK);
            assert_non_null(strstr(doctor.findings[0].what, words));
            tear_down(state);
            assert_int_equal(system("ip link del o0"), 0);
        }
        free(command);
        free(words);
    }
    if (!n_known) {
        skip();
    }
}

/* Before 6.6 only: later, ours is a program of TCX, which runs before all
 * filters. */
KERNEL_TEST(names_a_filter_in_our_place)
{
    attach_filter("other", BPF_TC_INGRESS, 1);
    if (doctor_kernel_is_from(&doctor, 6, 6)) {
        expect(state, DOCTOR_OK, "nothing");
    } else {
        expect(state, DOCTOR_NOTE, "v0: the filter other");
    }
}
