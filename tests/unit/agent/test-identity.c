/* SPDX-License-Identifier: Apache-2.0 */

/* Loads the programs into this machine's kernel.  The uplink "up0" of a new
 * network namespace leads to the namespace "far"; behind "pod0" is the
 * namespace "pod", whose packets are routed to the uplink. */

#include <config.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/identify/bpf/identity.h"
#include "agent/identify/bpf/interfaces.h"
#include "agent/identify/connections.h"
#include "agent/identify/questions.h"
#include "agent/identify/registry.h"
#include "csum.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/cgroup-path.h"
#include "wire/slot-tag.h"

#define FAR "10.9.0.2"
#define FAR6 "fd09::2"
#define FAR_MAC "02:00:00:00:09:02"
#define PORT 4700
#define WAIT_S 5

enum { SLOT_A = 5, SLOT_B = 6 };
enum { DSCP_A = 35, DSCP_B = 23, DSCP_CONTROL = 39, DSCP_OTHERS = 7 };

struct fixture {
    struct identity *id;
    struct identity_settings *settings;
    struct identity_traffic *traffic;
    struct identity_config config;
    char *tree;     /* A cgroup with the children "a" and "b". */
    pid_t far, pod; /* Processes that hold the namespaces. */
    int home, receiver;
    struct pods *pods;
    int fds[64]; /* Of a test, which its tear-down closes. */
    size_t n_fds;
};

static struct fixture f;

/* Starts a process that holds a new network namespace. */
static pid_t
hold_namespace(void)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(unshare(CLONE_NEWNET) || write(ready[1], "", 1) != 1 || pause());
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

/* Runs commands of the shell in the namespace of a process, 0 for this one. */
static void OVS_PRINTF_FORMAT(2, 3) in(pid_t netns, const char *format, ...)
{
    va_list args;
    char *command, *whole;

    va_start(args, format);
    command = xvasprintf(format, args);
    va_end(args);
    whole = xasprintf("nsenter -t %d -n sh -ec '%s'",
                      (int) (netns ? netns : getpid()), command);
    assert_int_equal(system(whole), 0);
    free(whole);
    free(command);
}

static void
make_uplink(void)
{
    in(0,
       "ip link add up0 type veth peer far0 address " FAR_MAC " netns %d;"
       "ip addr add 10.9.0.1/24 dev up0; ip link set up0 up",
       (int) f.far);
    in(f.far, "ip addr add " FAR "/24 dev far0; ip link set far0 up;"
              "ip route add 10.9.1.0/24 via 10.9.0.1");
}

static void
make_network(void)
{
    in(0,
       "ip link set lo up; ip link add pod0 type veth peer eth0 netns %d;"
       "ip addr add 10.9.1.1/24 dev pod0; ip link set pod0 up;"
       "echo 1 >/proc/sys/net/ipv4/ip_forward",
       (int) f.pod);
    make_uplink();
    in(f.pod, "ip addr add 10.9.1.2/24 dev eth0; ip link set eth0 up;"
              "ip route add default via 10.9.1.1");
}

int
unit_test_set_up(void **state OVS_UNUSED)
{
    char *mount = cgroup_mount_from("/proc/mounts");
    int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "try", 4, 4, 1, NULL);

    if (map < 0 || close(map) || !mount || unshare(CLONE_NEWNET)) {
        puts("skip: no root, or no BPF");
        exit(77);
    }
    f.home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    f.far = hold_namespace();
    f.pod = hold_namespace();
    make_network();
    f.tree = xasprintf("%s/stagecoach-test-%d", mount, (int) getpid());
    in(0, "mkdir -p %s/a %s/b", f.tree, f.tree);
    f.config = (struct identity_config){
        .pins = xasprintf("/sys/fs/bpf/stagecoach-test-%d", (int) getpid()),
        .cgroup = mount,
        .mark_shift = 3,
        .mode = IDENTITY_ORDERS
    };
    return 0;
}

int
unit_test_tear_down(void **state OVS_UNUSED)
{
    kill(f.far, SIGKILL);
    kill(f.pod, SIGKILL);
    waitpid(f.far, NULL, 0);
    waitpid(f.pod, NULL, 0);
    free(identity_detach(f.config.pins)); /* A set-up has failed. */
    in(0, "rmdir %s/a %s/b %s", f.tree, f.tree, f.tree);
    free(CONST_CAST(char *, f.config.pins));
    free(CONST_CAST(char *, f.config.cgroup));
    free(f.tree);
    return 0;
}

/* Moves this process into a cgroup of the test, or "" for the tree itself. */
static void
enter(const char *cgroup)
{
    in(0, "echo %d >%s/%s/cgroup.procs", (int) getpid(), f.tree, cgroup);
}

static int
keep(int fd)
{
    assert_true(fd >= 0 && f.n_fds < ARRAY_SIZE(f.fds));
    f.fds[f.n_fds++] = fd;
    return fd;
}

/* Opens a socket in the namespace of a process, 0 for this one. */
static int
open_in(pid_t netns, int family, int type, int protocol)
{
    char *path =
        xasprintf("/proc/%d/ns/net", (int) (netns ? netns : getpid()));
    int away = open(path, O_RDONLY | O_CLOEXEC), fd;

    assert_int_equal(setns(away, CLONE_NEWNET), 0);
    fd = keep(socket(family, type, protocol));
    assert_int_equal(setns(f.home, CLONE_NEWNET), 0);
    close(away);
    free(path);
    return fd;
}

static struct sockaddr_storage
address_of(const char *text, int port)
{
    struct sockaddr_storage address = { .ss_family = AF_INET };
    struct sockaddr_in *four = (void *) &address;
    struct sockaddr_in6 *six = (void *) &address;

    four->sin_port = htons(port); /* Where that of IPv6 is. */
    if (strchr(text, ':')) {
        address.ss_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    } else {
        assert_int_equal(inet_pton(AF_INET, text, &four->sin_addr), 1);
    }
    return address;
}

static void
bind_to(int fd, const char *text, int port)
{
    struct sockaddr_storage address = address_of(text, port);

    assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof address),
                     0);
}

static void
connect_to(int fd, const char *text, int port)
{
    struct sockaddr_storage address = address_of(text, port);

    assert_int_equal(connect(fd, (struct sockaddr *) &address, sizeof address),
                     0);
}

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

/* Has messages of a socket come within WAIT_S, with their class. */
static void
expect_messages(int fd)
{
    struct timeval wait = { .tv_sec = WAIT_S };
    int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
    setsockopt(fd, SOL_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
    setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on);
}

/* Receives a message.  Returns its size, and what the kernel tells of it. */
static ssize_t
receive(int fd, char *data, size_t size, struct cmsghdr **c)
{
    static char room[128];
    struct iovec iov = { data, size };
    struct msghdr message = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = room,
                              .msg_controllen = sizeof room };
    ssize_t n = recvmsg(fd, &message, 0);

    *c = CMSG_FIRSTHDR(&message);
    assert_non_null(*c);
    return n;
}

static void
set_rows(void)
{
    struct identity_settings *s = f.settings = identity_settings(f.id);
    struct identity_row *rows = identity_rows(f.id);
    struct timespec now;

    f.traffic = identity_traffic(f.id);
    clock_gettime(CLOCK_MONOTONIC, &now);
    s->lease_until = (now.tv_sec + 60) * UINT64_C(1000000000);
    s->default_dscp = 0;
    s->control_dscp = DSCP_CONTROL;
    s->level_dscps = UINT64_C(1) << DSCP_A | UINT64_C(1) << DSCP_B;
    rows[SLOT_A] = (struct identity_row){ .dscp = DSCP_A,
                                          .has_control = true,
                                          .used = true };
    rows[SLOT_B] = (struct identity_row){ .dscp = DSCP_B, .used = true };
}

/* Loads the programs, with 'uplink'. */
static void
begin_identity(const struct identity_config *config, const char *uplink)
{
    assert_null(identity_open(config, &f.id));
    assert_null(identity_add_uplink(f.id, uplink));
    set_rows();
}

static void
end_identity(void)
{
    identity_close(f.id);
    assert_null(identity_detach(f.config.pins));
}

static int
set_up(void **state OVS_UNUSED)
{
    begin_identity(&f.config, "up0");
    enter("");
    f.receiver = open_in(f.far, AF_INET, SOCK_DGRAM, 0);
    expect_messages(f.receiver);
    bind_to(f.receiver, "0.0.0.0", PORT);
    return 0;
}

static int
tear_down(void **state OVS_UNUSED)
{
    in(0, "echo %d >%s/cgroup.procs", (int) getpid(), f.config.cgroup);
    pods_destroy(f.pods);
    f.pods = NULL;
    while (f.n_fds) {
        close(f.fds[--f.n_fds]);
    }
    end_identity();
    assert_int_equal(access(f.config.pins, F_OK), -1);
    return 0;
}

/* A socket that is connected to the far end. */
struct from {
    const char *cgroup; /* Of the process that makes it. */
    pid_t netns;        /* Process with its namespace, 0: this one's. */
    int type, protocol; /* 0: of UDP. */
    const char *source, *iface;
    const char *to; /* NULL: FAR. */
};

static int
open_sender(struct from from)
{
    const char *to = from.to ? from.to : FAR;
    bool six = strchr(to, ':');
    int fd, on = 1;

    enter(from.cgroup);
    fd = open_in(from.netns, six ? AF_INET6 : AF_INET,
                 from.type ? from.type : SOCK_DGRAM, from.protocol);
    if (from.iface) {
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, from.iface,
                   strlen(from.iface));
    }
    if (from.source) { /* Any user can bind a socket of IPv6 to any. */
        setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
        bind_to(fd, from.source, 0);
    }
    connect_to(fd, to, from.type == SOCK_RAW ? 0 : PORT);
    enter("");
    return fd;
}

static int
sender(pid_t netns, const char *cgroup)
{
    return open_sender((struct from){ .netns = netns, .cgroup = cgroup });
}

/* Returns the DSCP of the datagram of 100 bytes that arrives next. */
static int
dscp_received(int fd)
{
    struct cmsghdr *c;
    char data[100];

    assert_int_equal(receive(fd, data, sizeof data, &c), sizeof data);
    return (c->cmsg_type == IPV6_TCLASS ? *(int *) CMSG_DATA(c)
                                        : *(uint8_t *) CMSG_DATA(c))
           >> 2;
}

/* Sends such a datagram. */
static int
dscp_sent_by(int fd)
{
    static const char data[100];

    assert_int_equal(send(fd, data, sizeof data, 0), sizeof data);
    return dscp_received(f.receiver);
}

static void
set_claim(enum identity_map map, uint64_t key, struct identity_claim c)
{
    size_t set;

    assert_int_equal(identity_set_claims(f.id, map, &key, &c, 1, &set), 0);
    identity_raise_epoch(f.id);
}

static void
claim(enum identity_map map, uint64_t key, uint32_t slot,
      enum claim_source source)
{
    set_claim(map, key,
              (struct identity_claim){ .slot = slot, .source = source });
}

static int
add_pod(struct identity *id)
{
    return identity_add_pod(id, if_nametoindex("pod0"), IDENTITY_VETH, 0, -1);
}

static void
claim_cgroup(const char *name, uint32_t slot)
{
    char *path = xasprintf("%s/%s", f.tree, name);
    struct stat s;

    assert_int_equal(stat(path, &s), 0);
    claim(IDENTITY_CGROUPS, s.st_ino, slot, CLAIM_CGROUP);
    free(path);
}

FIXTURE_TEST(packets_are_of_the_job_of_their_socket)
{
    int a = sender(0, "a"), b = sender(0, "b"), none = sender(0, "");
    int tos = DSCP_A << 2;

    claim_cgroup("a", SLOT_A);
    claim_cgroup("b", SLOT_B);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_int_equal(dscp_sent_by(b), DSCP_B);
    assert_int_equal(dscp_sent_by(b), DSCP_B);
    assert_int_equal(dscp_sent_by(none), 0);
    assert_int_equal(f.traffic[SLOT_A].tx_bytes, 142);
    assert_int_equal(f.traffic[SLOT_B].tx_bytes, 284);
    assert_int_equal(f.traffic[SLOT_B].tx_packets, 2);
    assert_int_equal(f.traffic[SLOT_B].default_bytes, 0);
    assert_int_equal(f.traffic[0].default_bytes, f.traffic[0].tx_bytes);

    /* A user's mark counts for nobody, and only the policy's are removed. */
    setsockopt(a, IPPROTO_IP, IP_TOS, &(int){ DSCP_B << 2 }, sizeof tos);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    setsockopt(none, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    assert_int_equal(dscp_sent_by(none), 0);
    setsockopt(none, IPPROTO_IP, IP_TOS, &(int){ DSCP_OTHERS << 2 },
               sizeof tos);
    assert_int_equal(dscp_sent_by(none), DSCP_OTHERS);
}

/* A claim of a process reaches sockets that it has already, and decides
 * against one of lower precedence. */
FIXTURE_TEST(a_claim_reaches_running_sockets)
{
    int a = sender(0, "a");

    assert_int_equal(dscp_sent_by(a), 0);
    claim(IDENTITY_PROCESSES, getpid(), SLOT_B, CLAIM_ENVIRONMENT);
    assert_int_equal(dscp_sent_by(a), DSCP_B);
    claim_cgroup("a", SLOT_A);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    claim(IDENTITY_PROCESSES, getpid(), SLOT_B, CLAIM_REGISTRATION);
    assert_int_equal(dscp_sent_by(a), DSCP_B);
    assert_int_equal(identity_remove_claim(f.id, IDENTITY_PROCESSES, getpid()),
                     0);
    identity_raise_epoch(f.id);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
}

/* The queue of the level is that of the priority that the uplink has for it.
 */
FIXTURE_TEST(a_priority_selects_the_queue)
{
    static const uint32_t classes[IDENTITY_ORDER_LEVELS] = {
        [1] = 0x90001, [2] = 0x90002
    };
    static const char sent[] = "tc -s class show dev up0 classid 9:2 | "
                               "grep -q \"Sent 142 bytes\"";
    int a = sender(0, "a"), on = 6;

    in(0, "tc qdisc add dev up0 root handle 9: htb default 3;"
          "for i in 1 2 3; do tc class add dev up0 parent 9: classid 9:$i "
          "htb rate 1gbit quantum 1514; done");
    identity_rows(f.id)[SLOT_A].level = 2;
    claim_cgroup("a", SLOT_A);
    identity_set_priorities(f.id, if_nametoindex("up0"), classes);
    setsockopt(a, SOL_SOCKET, SO_PRIORITY, &on, sizeof on);
    dscp_sent_by(a);
    in(0, sent);
    identity_set_priorities(f.id, if_nametoindex("up0"), NULL);
    dscp_sent_by(a);
    in(0, sent);
    in(0, "tc qdisc del dev up0 root");
}

/* Makes 'iface' the only uplink, and claims cgroup "a". */
static void
change_uplink(const char *iface)
{
    end_identity();
    begin_identity(&f.config, iface);
    claim_cgroup("a", SLOT_A);
}

/* Returns false if the kernel has no interfaces of this kind. */
static bool
has_kind(const char *make)
{
    char *command = xasprintf("%s 2>/dev/null", make);
    bool has = !system(command);

    free(command);
    return has;
}

FIXTURE_TEST(a_vlan_can_be_an_uplink_and_above_one)
{
    int a;

    if (!has_kind("ip link add link up0 name up0.5 type vlan id 5")) {
        skip();
    }
    in(0, "ip addr add 10.9.5.1/24 dev up0.5; ip link set up0.5 up");
    in(f.far, "ip link add link far0 name far0.5 type vlan id 5;"
              "ip addr add 10.9.5.2/24 dev far0.5; ip link set far0.5 up");
    claim_cgroup("a", SLOT_A);
    a = open_sender((struct from){ .cgroup = "a", .to = "10.9.5.2" });
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    change_uplink("up0.5");
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    in(0, "ip link del up0.5");
    in(f.far, "ip link del far0.5");
}

FIXTURE_TEST(a_bond_can_be_an_uplink)
{
    int a;

    if (!has_kind("ip link add bond0 type bond mode active-backup")) {
        skip();
    }
    in(0,
       "ip link add b0 type veth peer far1 netns %d;"
       "ip link set b0 master bond0; ip link set bond0 up;"
       "ip addr add 10.9.6.1/24 dev bond0",
       (int) f.far);
    in(f.far, "ip addr add 10.9.6.2/24 dev far1; ip link set far1 up");
    change_uplink("bond0");
    a = open_sender((struct from){ .cgroup = "a", .to = "10.9.6.2" });
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    in(0, "ip link del b0; ip link del bond0");
}

/* An id that is used again is another process. */
FIXTURE_TEST(a_claim_has_the_life_of_its_process)
{
    int a = sender(0, "a");

    set_claim(IDENTITY_PROCESSES, getpid(),
              (struct identity_claim){ .ended = 1, .slot = SLOT_A });
    assert_int_equal(dscp_sent_by(a), 0);
    set_claim(IDENTITY_PROCESSES, getpid(),
              (struct identity_claim){ .born = UINT64_MAX, .slot = SLOT_A });
    assert_int_equal(dscp_sent_by(a), 0);
}

FIXTURE_TEST(after_the_lease_all_are_equal_and_counted)
{
    int a = sender(0, "a");

    claim_cgroup("a", SLOT_A);
    f.settings->lease_until = 0;
    assert_int_equal(dscp_sent_by(a), 0);
    assert_int_equal(f.traffic[SLOT_A].tx_bytes, 142);
    assert_int_equal(f.traffic[SLOT_A].default_bytes, 142);
}

FIXTURE_TEST(an_observer_changes_nothing)
{
    int a = sender(0, "a");

    claim_cgroup("a", SLOT_A);
    f.settings->mode = IDENTITY_COUNTS;
    setsockopt(a, IPPROTO_IP, IP_TOS, &(int){ DSCP_CONTROL << 2 },
               sizeof(int));
    assert_int_equal(dscp_sent_by(a), DSCP_CONTROL);
    assert_int_equal(f.traffic[SLOT_A].tx_bytes, 142);
}

FIXTURE_TEST(a_job_has_a_control_class)
{
    int a = sender(0, "a"), b = sender(0, "b");
    int tos = DSCP_CONTROL << 2;
    const long long now = 1000000;

    claim_cgroup("a", SLOT_A);
    claim_cgroup("b", SLOT_B);
    setsockopt(a, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    setsockopt(b, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    assert_int_equal(dscp_sent_by(a), DSCP_CONTROL);
    assert_int_equal(dscp_sent_by(b), DSCP_B); /* It has none. */
    setsockopt(a, IPPROTO_IP, IP_TOS, &(int){ 0 }, sizeof tos);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    identity_set_control_port(f.id, SLOT_A, htons(PORT));
    identity_run(f.id, now);
    assert_int_equal(dscp_sent_by(a), DSCP_CONTROL);
    identity_clear_control_ports(f.id, SLOT_A);
    identity_run(f.id, now + 9); /* Sockets are not disturbed so soon. */
    assert_int_equal(dscp_sent_by(a), DSCP_CONTROL);
    identity_run(f.id, now + 10);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
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

FIXTURE_TEST(a_shim_gets_tags)
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
FIXTURE_TEST(packets_of_a_pod_are_of_its_job)
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
FIXTURE_TEST(equal_addresses_in_a_namespace_move_nothing)
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

static void
make_ipv6(void)
{
    in(0, "ip addr replace fd09::1/64 dev up0 nodad");
    in(f.far, "ip addr replace " FAR6 "/64 dev far0 nodad");
}

FIXTURE_TEST(ipv6_is_marked_and_counted)
{
    static const char data[100];
    int far = open_in(f.far, AF_INET6, SOCK_DGRAM, 0), a, on = 1;

    make_ipv6();
    expect_messages(far);
    setsockopt(far, SOL_IPV6, IPV6_V6ONLY, &on, sizeof on);
    bind_to(far, "::", PORT);
    claim_cgroup("a", SLOT_A);
    a = open_sender((struct from){ .cgroup = "a", .to = FAR6 });
    assert_int_equal(send(a, data, sizeof data, 0), sizeof data);
    assert_int_equal(dscp_received(far), DSCP_A);
    assert_int_equal(f.traffic[SLOT_A].tx_bytes, 162);
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
FIXTURE_TEST(only_the_pods_own_source_is_learned)
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
FIXTURE_TEST(macvlan_needs_no_program_of_its_own)
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
FIXTURE_TEST(an_address_of_a_pod_is_not_the_hosts)
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
FIXTURE_TEST(packets_of_a_pod_behind_netkit_are_of_its_job)
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
FIXTURE_TEST(gro_is_off_until_the_agent_is_removed)
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

/* Makes a namespace within the pod, whose packets the pod routes. */
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
FIXTURE_TEST(packets_without_a_socket_are_of_their_interface)
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

/* The socket of a virtual machine's packets is that of its interface. */
FIXTURE_TEST(a_virtual_machine_is_of_the_cgroup_of_its_tap)
{
    uint8_t mac[6];
    int tap;

    begin_tags(IDENTITY_ORDERS);
    tap = open_tap("a", mac);
    pods_run(f.pods);
    write_frame(tap, mac);
    assert_int_equal(dscp_received(f.receiver), DSCP_A);
}

FIXTURE_TEST(a_namespace_can_be_claimed)
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

/* An accepted socket is its listener's; bytes are those of all segments. */
FIXTURE_TEST(bytes_are_those_on_the_wire)
{
    static char data[1 << 20];
    int listener, far = open_in(f.far, AF_INET, SOCK_STREAM, 0), fd;
    size_t segments = DIV_ROUND_UP(sizeof data, 1448), got = 0;

    enter("a");
    listener = open_in(0, AF_INET, SOCK_STREAM, 0);
    enter("");
    claim_cgroup("a", SLOT_A);
    bind_to(listener, "0.0.0.0", PORT);
    assert_int_equal(listen(listener, 1), 0);
    connect_to(far, "10.9.0.1", PORT);
    fd = keep(accept(listener, NULL, NULL));
    if (!fork()) {
        _exit(write(fd, data, sizeof data) != sizeof data);
    }
    while (got < sizeof data) {
        ssize_t n = read(far, data, sizeof data);

        assert_true(n > 0);
        got += n;
    }
    wait(NULL);
    assert_true(f.traffic[SLOT_A].tx_packets >= segments);
    assert_true(f.traffic[SLOT_A].tx_bytes >= sizeof data + segments * 66);
    assert_true(f.traffic[SLOT_A].tx_bytes
                < 1.05 * (sizeof data + segments * 66));
    assert_true(f.traffic[SLOT_A].rx_bytes
                >= 66 * f.traffic[SLOT_A].rx_packets);
    assert_true(f.traffic[SLOT_A].rx_packets > 0);
}

/* Adds the bytes sent to the far end, by IPv4 and by IPv6. */
static void
take_pair(uint16_t slot, const uint8_t remote[16], uint64_t bytes, void *sums_)
{
    uint64_t *sums = sums_;
    char address[INET6_ADDRSTRLEN];

    inet_ntop(AF_INET6, remote, address, sizeof address);
    sums[0] += strcmp(address, "::ffff:" FAR) ? 0 : bytes;
    sums[1] += strcmp(address, FAR6) ? 0 : bytes;
    assert_int_equal(slot, SLOT_A);
}

FIXTURE_TEST(bytes_are_counted_by_address_while_wanted)
{
    int a = sender(0, "a"), six;
    uint64_t sums[2] = { 0, 0 };

    claim_cgroup("a", SLOT_A);
    dscp_sent_by(a);
    identity_take_pairs(f.id, take_pair, sums);
    assert_int_equal(sums[0], 0);
    f.settings->max_pairs = 100;
    dscp_sent_by(a);
    dscp_sent_by(a);
    make_ipv6();
    six = open_sender((struct from){ .cgroup = "a", .to = FAR6 });
    assert_int_equal(write(six, "", 1), 1);
    identity_take_pairs(f.id, take_pair, sums);
    assert_int_equal(sums[0], 284);
    assert_int_equal(sums[1], 63);
    identity_take_pairs(f.id, take_pair, sums);
    assert_int_equal(sums[0], 284);
}

struct questions_taken {
    int of_this, by_rule;
    uint64_t cgroup;
};

static void
take(const struct identity_question *question, void *taken_)
{
    struct questions_taken *taken = taken_;

    if (question->tgid == (uint32_t) getpid()) {
        taken->by_rule += question->rule == 2;
        taken->of_this += !question->rule;
        taken->cgroup = question->rule ? taken->cgroup : question->cgroup;
    }
}

/* The kernel asks once about a process, not for each of its sockets. */
FIXTURE_TEST(the_kernel_asks_about_a_process_once)
{
    struct questions_taken taken = { 0, 0, 0 };
    struct stat s;
    int a = sender(0, "a"), b = sender(0, "a");

    identity_take_questions(f.id, take, &taken);
    assert_int_equal(taken.of_this, 1);
    assert_int_equal(taken.by_rule, 0);
    assert_int_equal(stat(f.tree, &s), 0); /* Of "f.receiver". */
    assert_int_equal(taken.cgroup, s.st_ino);
    identity_set_ports(f.id, PORT, PORT, 2);
    assert_int_equal(dscp_sent_by(a), 0);
    assert_int_equal(dscp_sent_by(b), 0);
    identity_take_questions(f.id, take, &taken);
    assert_int_equal(taken.of_this, 1);
    assert_int_equal(taken.by_rule, 1);
}

static void
take_copy(const struct identity_question *question, void *copy)
{
    if (question->rule == IDENTITY_MAY_COPY) {
        *(struct identity_copy *) copy =
            *CONTAINER_OF(question, const struct identity_copy, question);
    }
}

/* Only of a socket of another namespace that has been bound before. */
FIXTURE_TEST(the_kernel_asks_about_what_may_be_a_copy)
{
    static const struct {
        const char *source, *to;
        bool away;
    } cases[] = {
        { "10.9.1.1", FAR, false },
        { NULL, FAR, true },
        { "10.9.1.2", FAR, true },
        { "fd09::7", FAR6, true },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        bool six = strchr(cases[i].to, ':');
        struct sockaddr_storage to = address_of(cases[i].to, PORT);
        struct identity_copy copy = { .uid = UINT32_MAX };
        int fd = open_in(cases[i].away ? f.pod : 0, six ? AF_INET6 : AF_INET,
                         SOCK_STREAM, 0);
        char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN];
        int on = 1;
        pid_t pid = fork(); /* The kernel asks about a process once. */

        if (!pid) {
            setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
            if (cases[i].source) {
                bind_to(fd, cases[i].source, 4711);
            }
            ignore(connect(fd, (struct sockaddr *) &to, sizeof to));
            _exit(0);
        }
        waitpid(pid, NULL, 0);
        identity_take_questions(f.id, take_copy, &copy);
        if (!cases[i].away || !cases[i].source) {
            assert_int_equal(copy.uid, UINT32_MAX);
            continue;
        }
        inet_ntop(AF_INET6, copy.local, local, sizeof local);
        inet_ntop(AF_INET6, copy.remote, remote, sizeof remote);
        assert_string_equal(six ? local : local + strlen("::ffff:"),
                            cases[i].source);
        assert_string_equal(six ? remote : remote + strlen("::ffff:"),
                            cases[i].to);
        assert_int_equal(copy.uid, getuid());
        assert_int_equal(copy.question.tgid, pid);
        assert_int_equal(ntohs(copy.ports[0]), 4711);
        assert_int_equal(ntohs(copy.ports[1]), PORT);
    }
}

/* A socket from before the programs has its cgroup at once, and its process
 * when the agent says so. */
FIXTURE_TEST(older_sockets_are_adopted)
{
    int a, b;

    end_identity();
    a = sender(0, "a");
    b = sender(0, "b");
    begin_identity(&f.config, "up0");
    claim_cgroup("a", SLOT_A);
    claim(IDENTITY_PROCESSES, getpid(), SLOT_B, CLAIM_ENVIRONMENT);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_int_equal(dscp_sent_by(b), 0);
    identity_adopt(f.id, getpid());
    assert_int_equal(dscp_sent_by(b), DSCP_B);
}

/* The programs go on without an agent, and the next one finds the sockets. */
FIXTURE_TEST(the_next_agent_goes_on)
{
    int a = sender(0, "a");

    claim_cgroup("a", SLOT_A);
    identity_close(f.id);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_null(identity_open(&f.config, &f.id));
    assert_null(identity_add_uplink(f.id, "up0"));
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_int_equal(identity_traffic(f.id)[SLOT_A].tx_bytes, 284);
}

FIXTURE_TEST(one_agent_has_an_uplink)
{
    struct identity_config other = f.config;
    struct identity *second;
    char *error;

    other.pins = "/sys/fs/bpf/stagecoach-test-second";
    assert_null(identity_open(&other, &second));
    error = identity_add_uplink(second, "up0");
    assert_non_null(error);
    free(error);
    identity_close(second);
    assert_null(identity_detach(other.pins));
}

/* Gives up all capabilities but those that the programs need. */
static void
keep_two_capabilities(void)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3
    };
    struct __user_cap_data_struct data[2] = { { .effective = 0 } };

    data[0].effective = CAP_TO_MASK(CAP_NET_ADMIN);
    data[1].effective = CAP_TO_MASK(CAP_BPF);
    data[0].permitted = data[0].effective;
    data[1].permitted = data[1].effective;
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

FIXTURE_TEST(two_capabilities_are_enough)
{
    struct identity_config other = f.config;
    struct identity *second;
    pid_t pid;
    int status;

    other.pins = "/sys/fs/bpf/stagecoach-test-second";
    pid = fork();
    if (!pid) {
        keep_two_capabilities();
        _exit(identity_open(&other, &second) != NULL || add_pod(second));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_null(identity_detach(other.pins));
    assert_int_equal(status, 0);
}

/* Starts a process of 'uid', in the namespace of a process, with 'n'
 * connections to the far end. */
static pid_t
connector(uid_t uid, pid_t netns, int n)
{
    int ready[2], fds[16];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (!pid) {
        for (int i = 0; i < n; i++) {
            fds[i] = open_in(netns, AF_INET, SOCK_STREAM, 0);
        }
        assert_int_equal(setresuid(uid, uid, uid), 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < n; i++) {
            connect_to(fds[i], FAR, PORT);
        }
        _exit(write(ready[1], "", 1) != 1 || pause());
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

/* Connections of a job do not count, those of pods do. */
FIXTURE_TEST(the_user_with_most_connections_of_no_job_is_found)
{
    int listener = open_in(f.far, AF_INET, SOCK_STREAM, 0);
    struct questions *q;
    struct registry r;
    pid_t pids[3];

    bind_to(listener, "0.0.0.0", PORT);
    assert_int_equal(listen(listener, 64), 0);
    claim_cgroup("a", SLOT_A);
    enter("a");
    pids[0] = connector(12001, 0, 9);
    enter("");
    pids[1] = connector(12002, 0, 3);
    pids[2] = connector(12003, f.pod, 5);
    registry_init(&r);
    q = questions_create(&r);
    assert_int_equal(connections_most(f.id, q, &r.users)->uid, 12002);
    questions_add(q, f.pod, 0); /* It is in that namespace. */
    assert_int_equal(connections_most(f.id, q, &r.users)->uid, 12003);
    questions_destroy(q);
    registry_uninit(&r);
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
}

FIXTURE_TEST(an_uplink_that_is_made_again_has_its_program_at_once)
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

FIXTURE_TEST(what_somebody_removed_comes_back)
{
    int a = sender(0, "a");

    claim_cgroup("a", SLOT_A);
    in(0,
       "rm -f %s/link-stagecoach_out-*;"
       "tc qdisc del dev up0 clsact 2>/dev/null || true",
       f.config.pins);
    /* The kernel ends a link a moment after its last reference. */
    for (int i = 0; i < 100 && dscp_sent_by(a); i++) {
        usleep(10000);
    }
    assert_int_equal(dscp_sent_by(a), 0);
    identity_run(f.id, 100000);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
}
