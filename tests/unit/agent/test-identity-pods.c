/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs of packets of pods and virtual machines, which reach the uplink through
 * interfaces that come and go, and the tags by which a shim knows them. */

#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/identify/bpf/interfaces.h"
#include "csum.h"
#include "tests/unit/agent/identity-world.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/slot-tag.h"

/* Returns the VLAN tag of the frame, -1 without one, -2 if it is not a
 * datagram to PORT. */
static int
tag_of(struct cmsghdr *c, const char *frame)
{
    const struct tpacket_auxdata *aux = (void *) CMSG_DATA(c);
    bool six = !memcmp(frame + 12, "\x86\xdd", 2);
    uint16_t port;

    memcpy(&port, frame + (six ? 56 : 36), sizeof port);
    return (frame[six ? 20 : 23] != IPPROTO_UDP || port != htons(PORT) ? -2
            : aux->tp_status & TP_STATUS_VLAN_VALID ? aux->tp_vlan_tci
                                                    : -1);
}

/* Returns the VLAN tag with which the bytes arrive at the far end that 'fd'
 * sends, -1 without one. */
static int
tag_of_sent(int fd, const void *bytes, size_t size)
{
    int packets = open_in(f.far, AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)),
        tag = -2;
    struct cmsghdr *c;
    char data[256];

    expect_messages(packets);
    assert_int_equal(write(fd, bytes, size), size);
    while (tag == -2) {
        assert_true(receive(packets, data, sizeof data, &c) > 0);
        tag = tag_of(c, data);
    }
    return tag;
}

static int
tag_sent_by(int fd)
{
    return tag_of_sent(fd, "", 1);
}

IDENTITY_TEST(a_shim_gets_tags)
{
    int a = sender(0, "a"), none = sender(0, "");
    int tos = DSCP_CONTROL << 2;

    claim_cgroup("a", SLOT_A);
    f.settings->mode = IDENTITY_TAGS;
    assert_int_equal(tag_sent_by(a), SLOT_A);
    assert_int_equal(tag_sent_by(none), 0);
    setsockopt(a, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    assert_int_equal(tag_sent_by(a), SLOT_A | SLOT_TAG_CONTROL);
}

/* The pod's packets are routed to the uplink; the mark that the pod's root
 * sets itself does not count. */
IDENTITY_TEST(packets_of_a_pod_are_of_its_job)
{
    int a = sender(f.pod, "a"), none = sender(f.pod, "");
    int mark = (SLOT_A << 1 | 1) << 3;

    claim_cgroup("a", SLOT_A);
    assert_int_equal(dscp_sent_by(a), 0); /* No program at "pod0". */
    assert_int_equal(add_pod(f.id), 0);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_int_equal(setsockopt(none, SOL_SOCKET, SO_MARK, &mark, sizeof mark),
                     0);
    assert_int_equal(dscp_sent_by(none), 0);
    f.settings->mark_shift = IDENTITY_NO_MARK;
    assert_int_equal(dscp_sent_by(a), 0);
}

/* A user's namespace can have the addresses and ports of a connection of
 * another job, but not its socket. */
IDENTITY_TEST(equal_addresses_in_a_namespace_move_nothing)
{
    struct sockaddr_in name;
    socklen_t size = sizeof name;
    int a = sender(0, "a"), attacker;

    in(f.pod, "ip addr add 10.9.0.1/32 dev lo");
    assert_int_equal(add_pod(f.id), 0);
    claim_cgroup("a", SLOT_A);
    claim_cgroup("b", SLOT_B);
    assert_int_equal(getsockname(a, (struct sockaddr *) &name, &size), 0);
    enter("b");
    attacker = open_in(f.pod, AF_INET, SOCK_DGRAM, 0);
    enter("");
    bind_to(attacker, "10.9.0.1", ntohs(name.sin_port));
    connect_to(attacker, FAR, PORT);
    for (int i = 0; i < 5; i++) {
        send(attacker, "", 1, 0);
        assert_int_equal(dscp_sent_by(a), DSCP_A);
    }
    assert_int_equal(f.traffic[SLOT_A].tx_bytes, 5 * 142);
    in(f.pod, "ip addr del 10.9.0.1/32 dev lo");
}

/* Claims cgroup "a", and looks at the interfaces of pods. */
static void
begin_tags(enum identity_mode mode)
{
    claim_cgroup("a", SLOT_A);
    f.settings->mode = mode;
    assert_null(pods_create(f.id, &f.pods));
    in(0, "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$f; done");
}

/* A shim learns where received packets belong from packets that a pod sends
 * with its own address, and from no others. */
IDENTITY_TEST(only_the_pods_own_source_is_learned)
{
    const uint16_t header[4] = { 0, htons(PORT), htons(sizeof header), 0 };
    int own, another, raw, host;

    begin_tags(IDENTITY_TAGS);
    in(f.pod, "ip addr add 10.9.0.77/32 dev lo");
    own = sender(f.pod, "a");
    another = open_sender(
        (struct from){ .netns = f.pod, .cgroup = "a", .source = "10.9.0.77" });
    raw = open_sender((struct from){ .netns = f.pod,
                                     .cgroup = "a",
                                     .type = SOCK_RAW,
                                     .protocol = IPPROTO_UDP });
    host = open_sender((struct from){
        .cgroup = "a", .type = SOCK_RAW, .protocol = IPPROTO_UDP });
    assert_int_equal(tag_sent_by(own), SLOT_A);
    assert_int_equal(tag_sent_by(another), SLOT_A | SLOT_TAG_NO_LEARN);
    assert_int_equal(tag_of_sent(raw, header, sizeof header),
                     SLOT_A | SLOT_TAG_NO_LEARN);
    assert_int_equal(tag_of_sent(host, header, sizeof header),
                     SLOT_A | SLOT_TAG_NO_LEARN);

    /* Behind a bridge, the route leads to that. */
    in(0, "ip link add br0 type bridge; ip link set br0 up;"
          "ip addr del 10.9.1.1/24 dev pod0; ip link set pod0 master br0;"
          "ip addr add 10.9.1.1/24 dev br0");
    in(f.pod, "ip neigh flush dev eth0");
    pods_run(f.pods);
    assert_int_equal(tag_sent_by(own), SLOT_A);
    assert_int_equal(tag_sent_by(another), SLOT_A | SLOT_TAG_NO_LEARN);
    in(0, "ip link del br0; ip addr add 10.9.1.1/24 dev pod0");
    in(f.pod, "ip addr del 10.9.0.77/32 dev lo; ip neigh flush dev eth0");
}

/* Packets of macvlan have their socket at the uplink.  Answers to an address
 * that is the host's too do not come back. */
IDENTITY_TEST(macvlan_needs_no_program_of_its_own)
{
    struct from from = {
        .netns = f.pod, .cgroup = "a", .source = "10.9.0.5", .iface = "mv0"
    };
    int own, hosts;

    begin_tags(IDENTITY_TAGS);
    in(0,
       "ip link add mv0 link up0 type macvlan mode bridge;"
       "ip link set mv0 netns %d",
       (int) f.pod);
    in(f.pod, "ip addr add 10.9.0.5/24 dev mv0;"
              "ip addr add 10.9.0.1/32 dev mv0; ip link set mv0 up;"
              "ip neigh add " FAR " lladdr " FAR_MAC " dev mv0");
    own = open_sender(from);
    from.source = "10.9.0.1";
    hosts = open_sender(from);
    assert_int_equal(tag_sent_by(own), SLOT_A);
    assert_int_equal(tag_sent_by(hosts), SLOT_A | SLOT_TAG_NO_LEARN);
    in(f.pod, "ip link del mv0");
}

/* Any user can bind a socket of IPv6 to an address of a pod. */
IDENTITY_TEST(an_address_of_a_pod_is_not_the_hosts)
{
    struct from from = { .cgroup = "a", .source = "fd09::1", .to = FAR6 };
    int own, pods_own;

    begin_tags(IDENTITY_TAGS);
    make_ipv6();
    in(0, "ip addr replace fd09:1::1/64 dev pod0 nodad;"
          "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding;"
          "ip neigh replace " FAR6 " lladdr " FAR_MAC " dev up0");
    own = open_sender(from);
    from.source = "fd09:1::9";
    pods_own = open_sender(from);
    assert_int_equal(tag_sent_by(own), SLOT_A);
    assert_int_equal(tag_sent_by(pods_own), SLOT_A | SLOT_TAG_NO_LEARN);
}

/* netkit has a hook of its own, in the pod's direction. */
IDENTITY_TEST(packets_of_a_pod_behind_netkit_are_of_its_job)
{
    int a;

    if (!has_kind("ip link add host0 type netkit")) {
        skip();
    }
    begin_tags(IDENTITY_ORDERS);
    in(0,
       "ip link set nk0 netns %d; ip addr add 10.9.7.1/24 dev host0;"
       "ip link set host0 up",
       (int) f.pod);
    in(f.pod, "ip addr add 10.9.7.2/24 dev nk0; ip link set nk0 up;"
              "ip route add " FAR " via 10.9.7.1 dev nk0");
    in(f.far, "ip route add 10.9.7.0/24 via 10.9.0.1");
    pods_run(f.pods);
    a = open_sender((struct from){
        .netns = f.pod, .cgroup = "a", .source = "10.9.7.2", .iface = "nk0" });
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    f.settings->mode = IDENTITY_TAGS;
    assert_int_equal(tag_sent_by(a), SLOT_A);
    in(0, "ip link del host0");
    in(f.far, "ip route del 10.9.7.0/24");
}

/* With GRO at the host's end, packets of a pod without TSO lose their
 * socket. */
IDENTITY_TEST(gro_is_off_until_the_agent_is_removed)
{
    static const char off[] = "ethtool -k pod0 | "
                              "grep -q \"^generic-receive-offload: %s\"";
    struct identity_config observe = f.config;

    in(0, "ethtool -K pod0 gro on");
    begin_tags(IDENTITY_ORDERS);
    in(0, off, "off");
    in(0, "ethtool -K pod0 gro on");
    pods_run(f.pods);
    in(0, off, "off");
    pods_destroy(f.pods);
    end_identity();
    in(0, off, "on");

    observe.mode = IDENTITY_COUNTS;
    begin_identity(&observe, "up0");
    begin_tags(IDENTITY_COUNTS);
    in(0, off, "on");
    in(0, "ethtool -K pod0 gro off");
}

/* Makes a namespace within the pod.  The pod routes its packets. */
static pid_t
make_inner(void)
{
    pid_t inner = hold_namespace();

    in(f.pod,
       "ip link add in0 type veth peer eth0 netns %d;"
       "ip addr add 10.9.2.1/24 dev in0; ip link set in0 up;"
       "echo 1 >/proc/sys/net/ipv4/ip_forward",
       (int) inner);
    in(inner, "ip addr add 10.9.2.2/24 dev eth0; ip link set eth0 up;"
              "ip route add default via 10.9.2.1");
    in(0, "ip route add 10.9.2.0/24 via 10.9.1.2");
    in(f.far, "ip route add 10.9.2.0/24 via 10.9.0.1");
    return inner;
}

static void
remove_inner(pid_t inner)
{
    kill(inner, SIGKILL);
    waitpid(inner, NULL, 0);
    in(f.pod, "ip link del in0 2>/dev/null || true");
    in(0, "ip route del 10.9.2.0/24");
    in(f.far, "ip route del 10.9.2.0/24");
}

/* A pod within the pod has lost its socket at the host's end. */
IDENTITY_TEST(packets_without_a_socket_are_of_their_interface)
{
    char *path = xasprintf("/proc/%d/ns/net", (int) f.pod);
    pid_t inner = make_inner();
    int fd = sender(inner, "a");
    uint64_t cookie;

    begin_tags(IDENTITY_ORDERS);
    assert_int_equal(dscp_sent_by(fd), 0);
    assert_int_equal(identity_add_netns(f.id, path, &cookie), 0);
    claim(IDENTITY_NAMESPACES, cookie, SLOT_B, CLAIM_LAUNCHER);
    assert_int_equal(dscp_sent_by(fd), DSCP_B);
    f.settings->mark_shift = IDENTITY_NO_MARK;
    assert_int_equal(dscp_sent_by(fd), DSCP_B);
    f.settings->mode = IDENTITY_TAGS;
    assert_int_equal(tag_sent_by(fd), SLOT_B);
    f.settings->mark_shift = f.config.mark_shift;
    assert_int_equal(tag_sent_by(fd), SLOT_B);
    close(fd);
    remove_inner(inner);
    free(path);
}

/* Makes an interface as a virtual machine's, of a process in cgroup 'cgroup'.
 * Returns its fd, and stores its address. */
static int
open_tap(const char *cgroup, uint8_t mac[6])
{
    struct ifreq ifr = { .ifr_name = "tap0",
                         .ifr_flags = IFF_TAP | IFF_NO_PI };
    int fd, any = socket(AF_INET, SOCK_DGRAM, 0);

    enter(cgroup);
    fd = keep(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    enter("");
    assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
    in(0, "ip addr add 10.9.3.1/24 dev tap0; ip link set tap0 up");
    assert_int_equal(ioctl(any, SIOCGIFHWADDR, &ifr), 0);
    memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
    close(any);
    return fd;
}

/* Writes the frame of a datagram of 100 bytes from 10.9.3.2 to the far end. */
static void
write_frame(int tap, const uint8_t mac[6])
{
    struct {
        struct ethhdr eth;
        struct iphdr ip;
        struct udphdr udp;
        char data[100];
    } __attribute__((packed))
    frame = { .eth = { .h_source = { 2 }, .h_proto = htons(ETH_P_IP) },
              .ip = { .version = 4,
                      .ihl = 5,
                      .tot_len = htons(128),
                      .ttl = 9,
                      .protocol = IPPROTO_UDP },
              .udp = { .dest = htons(PORT), .len = htons(108) } };

    memcpy(frame.eth.h_dest, mac, 6);
    inet_pton(AF_INET, "10.9.3.2", &frame.ip.saddr);
    inet_pton(AF_INET, FAR, &frame.ip.daddr);
    frame.ip.check = csum(&frame.ip, sizeof frame.ip);
    assert_int_equal(write(tap, &frame, sizeof frame), sizeof frame);
}

/* The socket of a virtual machine's packets is the socket of its interface. */
IDENTITY_TEST(a_virtual_machine_is_of_the_cgroup_of_its_tap)
{
    uint8_t mac[6];
    int tap;

    begin_tags(IDENTITY_ORDERS);
    tap = open_tap("a", mac);
    pods_run(f.pods);
    write_frame(tap, mac);
    assert_int_equal(dscp_received(f.receiver), DSCP_A);
}

IDENTITY_TEST(a_namespace_can_be_claimed)
{
    int pod = sender(f.pod, "");
    char *path = xasprintf("/proc/%d/ns/net", (int) f.pod);
    uint64_t cookie;

    assert_int_equal(add_pod(f.id), 0);
    assert_int_equal(identity_add_netns(f.id, path, &cookie), 0);
    claim(IDENTITY_NAMESPACES, cookie, SLOT_A, CLAIM_LAUNCHER);
    assert_int_equal(dscp_sent_by(pod), DSCP_A);
    assert_int_equal(identity_add_netns(f.id, "/proc/self/ns/none", &cookie),
                     ENOENT);
    free(path);
}

IDENTITY_TEST(an_uplink_that_is_made_again_has_its_program_at_once)
{
    int a = sender(0, "a");

    begin_tags(IDENTITY_ORDERS);
    identity_run(f.id, 100000);
    in(0, "ip link del up0");
    make_uplink();
    pods_run(f.pods);
    identity_run(f.id, 100001);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
}
