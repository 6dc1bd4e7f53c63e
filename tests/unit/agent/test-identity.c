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
#include "agent/identify/bpf/pods.h"
#include "agent/identify/claim.h"
#include "csum.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/cgroup-path.h"
#include "wire/slot-tag.h"

#define FAR "10.9.0.2"
#define FAR6 "fd09::2"
#define PORT 4700
#define WAIT_S 5

enum { SLOT_A = 5, SLOT_B = 6 };
enum { DSCP_A = 35, DSCP_B = 23, DSCP_CONTROL = 39, DSCP_OTHERS = 7 };

struct fixture {
    struct identity *id;
    struct identity_config config;
    char *tree;     /* A cgroup with the children "a" and "b". */
    pid_t far, pod; /* Processes that hold the namespaces. */
    int home, receiver;
};

static struct fixture fixture;

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

static void OVS_PRINTF_FORMAT(1, 2) run(const char *format, ...)
{
    va_list args;
    char *command;

    va_start(args, format);
    command = xvasprintf(format, args);
    va_end(args);
    assert_int_equal(system(command), 0);
    free(command);
}

static void
make_network(struct fixture *f)
{
    int far = f->far, pod = f->pod;

    run("ip link set lo up; ip link add up0 type veth peer far0 netns %d",
        far);
    run("ip addr add 10.9.0.1/24 dev up0 && ip link set up0 up");
    run("ip link add pod0 type veth peer eth0 netns %d", pod);
    run("ip addr add 10.9.1.1/24 dev pod0 && ip link set pod0 up");
    run("nsenter -t %d -n ip addr add " FAR "/24 dev far0", far);
    run("nsenter -t %d -n ip link set far0 up", far);
    run("nsenter -t %d -n ip route add 10.9.1.0/24 via 10.9.0.1", far);
    run("nsenter -t %d -n ip addr add 10.9.1.2/24 dev eth0", pod);
    run("nsenter -t %d -n ip link set eth0 up", pod);
    run("nsenter -t %d -n ip route add default via 10.9.1.1", pod);
    run("echo 1 > /proc/sys/net/ipv4/ip_forward");
}

static int
set_up_group(void **state OVS_UNUSED)
{
    struct fixture *f = &fixture;
    char *mount = cgroup_mount_from("/proc/mounts");
    int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "try", 4, 4, 1, NULL);

    if (map < 0 || close(map) || !mount || unshare(CLONE_NEWNET)) {
        free(mount);
        return 0; /* Each test is skipped. */
    }
    f->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    f->far = hold_namespace();
    f->pod = hold_namespace();
    make_network(f);
    f->tree = xasprintf("%s/stagecoach-test-%d", mount, (int) getpid());
    run("mkdir -p %s/a %s/b", f->tree, f->tree);
    f->config = (struct identity_config){
        .pins = xasprintf("/sys/fs/bpf/stagecoach-test-%d", (int) getpid()),
        .cgroup = mount,
        .mark_shift = 3,
        .mode = IDENTITY_ORDERS
    };
    return 0;
}

static int
tear_down_group(void **state OVS_UNUSED)
{
    struct fixture *f = &fixture;

    if (f->tree) {
        kill(f->far, SIGKILL);
        kill(f->pod, SIGKILL);
        waitpid(f->far, NULL, 0);
        waitpid(f->pod, NULL, 0);
        free(identity_detach(f->config.pins)); /* A set-up has failed. */
        run("rmdir %s/a %s/b %s", f->tree, f->tree, f->tree);
        free(CONST_CAST(char *, f->config.pins));
        free(CONST_CAST(char *, f->config.cgroup));
        free(f->tree);
    }
    return 0;
}

/* Moves this process into a cgroup of the test, or "" for the tree itself. */
static void
enter(const char *cgroup)
{
    run("echo %d > %s/%s/cgroup.procs", (int) getpid(), fixture.tree, cgroup);
}

static int
open_in(pid_t pid, int family, int type, int protocol)
{
    char *path = xasprintf("/proc/%d/ns/net", (int) pid);
    int away = open(path, O_RDONLY | O_CLOEXEC), fd;

    assert_int_equal(setns(away, CLONE_NEWNET), 0);
    fd = socket(family, type, protocol);
    assert_int_equal(setns(fixture.home, CLONE_NEWNET), 0);
    close(away);
    free(path);
    return fd;
}

static int
socket_in(pid_t pid, int type)
{
    return open_in(pid, AF_INET, type, 0);
}

/* Returns the VLAN tag of the frame, -1 without one, -2 if it is not a
 * datagram to PORT. */
static int
tag_of(struct msghdr *message, const char *frame)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(message);
    const struct tpacket_auxdata *aux = (void *) CMSG_DATA(c);
    bool six = !memcmp(frame + 12, "\x86\xdd", 2);
    uint16_t port;

    memcpy(&port, frame + (six ? 56 : 36), sizeof port);
    return (frame[six ? 20 : 23] != IPPROTO_UDP || port != htons(PORT) ? -2
            : aux->tp_status & TP_STATUS_VLAN_VALID ? aux->tp_vlan_tci
                                                    : -1);
}

static struct sockaddr_in
far_address(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port) };

    inet_pton(AF_INET, FAR, &address.sin_addr);
    return address;
}

static void
set_timeout(int fd)
{
    struct timeval wait = { .tv_sec = WAIT_S };
    int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
}

static void
set_rows(struct identity *id)
{
    struct identity_settings *s = identity_settings(id);
    struct identity_row *rows = identity_rows(id);
    struct timespec now;

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

static int
set_up(void **state)
{
    struct fixture *f = &fixture;
    struct sockaddr_in any = { .sin_family = AF_INET,
                               .sin_port = htons(PORT) };

    *state = f;
    if (!f->tree) {
        return 0; /* Without root or BPF. */
    }
    assert_null(identity_open(&f->config, &f->id));
    assert_null(identity_add_uplink(f->id, "up0"));
    set_rows(f->id);
    enter("");
    f->receiver = socket_in(f->far, SOCK_DGRAM);
    set_timeout(f->receiver);
    assert_int_equal(bind(f->receiver, (struct sockaddr *) &any, sizeof any),
                     0);
    return 0;
}

static int
tear_down(void **state OVS_UNUSED)
{
    struct fixture *f = &fixture;

    if (f->id) {
        char *error;

        run("echo %d > %s/cgroup.procs", (int) getpid(), f->config.cgroup);
        close(f->receiver);
        identity_close(f->id);
        error = identity_detach(f->config.pins);
        assert_null(error);
        assert_int_equal(access(f->config.pins, F_OK), -1);
    }
    return 0;
}

static struct fixture *
get(void **state)
{
    struct fixture *f = *state;

    if (!f->id) {
        skip();
    }
    return f;
}

/* Makes a socket as a process of 'cgroup', connected to the far end. */
static int
sender(pid_t netns, const char *cgroup)
{
    struct sockaddr_in to = far_address(PORT);
    int fd;

    enter(cgroup);
    fd = netns ? socket_in(netns, SOCK_DGRAM) : socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    enter("");
    return fd;
}

static int
sender_to(const char *cgroup, const char *address)
{
    struct sockaddr_in to = far_address(PORT);
    int fd;

    enter(cgroup);
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, address, &to.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    enter("");
    return fd;
}

static int
dscp_of(struct msghdr *message)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(message);

    assert_non_null(c);
    assert_int_equal(c->cmsg_type, IP_TOS);
    return *(uint8_t *) CMSG_DATA(c) >> 2;
}

/* Returns the DSCP of the datagram of 100 bytes that arrives next. */
static int
dscp_received(void)
{
    char data[100] = "", room[64];
    struct iovec iov = { data, sizeof data };
    struct msghdr message = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = room,
                              .msg_controllen = sizeof room };

    assert_int_equal(recvmsg(fixture.receiver, &message, 0), sizeof data);
    return dscp_of(&message);
}

/* Sends such a datagram. */
static int
dscp_sent_by(int fd)
{
    static const char data[100];

    assert_int_equal(send(fd, data, sizeof data, 0), sizeof data);
    return dscp_received();
}

static void
set_claim(struct identity *id, enum identity_map map, uint64_t key,
          struct identity_claim c)
{
    size_t set;

    assert_int_equal(identity_set_claims(id, map, &key, &c, 1, &set), 0);
    identity_raise_epoch(id);
}

static void
claim(struct identity *id, enum identity_map map, uint64_t key, uint32_t slot,
      enum claim_source source)
{
    set_claim(id, map, key,
              (struct identity_claim){ .slot = slot, .source = source });
}

static int
add_pod(struct identity *id)
{
    return identity_add_pod(id, if_nametoindex("pod0"), IDENTITY_VETH, 0, -1);
}

static void
claim_cgroup(struct identity *id, const char *name, uint32_t slot)
{
    char *path = xasprintf("%s/%s", fixture.tree, name);
    struct stat s;

    assert_int_equal(stat(path, &s), 0);
    claim(id, IDENTITY_CGROUPS, s.st_ino, slot, CLAIM_CGROUP);
    free(path);
}

static void
packets_are_of_the_job_of_their_socket(void **state)
{
    struct fixture *f = get(state);
    struct identity_traffic *t = identity_traffic(f->id);
    int a = sender(0, "a"), b = sender(0, "b"), none = sender(0, "");
    int tos = DSCP_A << 2;

    claim_cgroup(f->id, "a", SLOT_A);
    claim_cgroup(f->id, "b", SLOT_B);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_int_equal(dscp_sent_by(b), DSCP_B);
    assert_int_equal(dscp_sent_by(b), DSCP_B);
    assert_int_equal(dscp_sent_by(none), 0);
    assert_int_equal(t[SLOT_A].tx_bytes, 142);
    assert_int_equal(t[SLOT_B].tx_bytes, 284);
    assert_int_equal(t[SLOT_B].tx_packets, 2);
    assert_int_equal(t[SLOT_B].default_bytes, 0);
    assert_int_equal(t[0].default_bytes, t[0].tx_bytes);

    /* A user's mark counts for nobody, and only the policy's are removed. */
    setsockopt(a, IPPROTO_IP, IP_TOS, &(int){ DSCP_B << 2 }, sizeof tos);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    setsockopt(none, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    assert_int_equal(dscp_sent_by(none), 0);
    setsockopt(none, IPPROTO_IP, IP_TOS, &(int){ DSCP_OTHERS << 2 },
               sizeof tos);
    assert_int_equal(dscp_sent_by(none), DSCP_OTHERS);
    close(a);
    close(b);
    close(none);
}

/* A claim of a process reaches sockets that it has already, and decides
 * against one of lower precedence. */
static void
a_claim_reaches_running_sockets(void **state)
{
    struct fixture *f = get(state);
    int a = sender(0, "a");

    assert_int_equal(dscp_sent_by(a), 0);
    claim(f->id, IDENTITY_PROCESSES, getpid(), SLOT_B, CLAIM_ENVIRONMENT);
    assert_int_equal(dscp_sent_by(a), DSCP_B);
    claim_cgroup(f->id, "a", SLOT_A);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    claim(f->id, IDENTITY_PROCESSES, getpid(), SLOT_B, CLAIM_REGISTRATION);
    assert_int_equal(dscp_sent_by(a), DSCP_B);
    assert_int_equal(
        identity_remove_claim(f->id, IDENTITY_PROCESSES, getpid()), 0);
    identity_raise_epoch(f->id);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    close(a);
}

/* The queue of the level is that of the priority that the uplink has for it.
 */
static void
a_priority_selects_the_queue(void **state)
{
    static const uint32_t classes[IDENTITY_ORDER_LEVELS] = {
        [1] = 0x90001, [2] = 0x90002
    };
    struct fixture *f = get(state);
    int a = sender(0, "a"), on = 6;

    run("tc qdisc add dev up0 root handle 9: htb default 3");
    for (int i = 1; i < 4; i++) {
        run("tc class add dev up0 parent 9: classid 9:%d htb rate 1gbit "
            "quantum 1514",
            i);
    }
    identity_rows(f->id)[SLOT_A].level = 2;
    claim_cgroup(f->id, "a", SLOT_A);
    identity_set_priorities(f->id, if_nametoindex("up0"), classes);
    setsockopt(a, SOL_SOCKET, SO_PRIORITY, &on, sizeof on);
    dscp_sent_by(a);
    run("tc -s class show dev up0 classid 9:2 | grep -q 'Sent 142 bytes'");
    identity_set_priorities(f->id, if_nametoindex("up0"), NULL);
    dscp_sent_by(a);
    run("tc -s class show dev up0 classid 9:2 | grep -q 'Sent 142 bytes'");
    run("tc qdisc del dev up0 root");
    close(a);
}

/* Makes 'iface' the only uplink, and claims cgroup "a". */
static void
change_uplink(struct fixture *f, const char *iface)
{
    identity_close(f->id);
    assert_null(identity_detach(f->config.pins));
    assert_null(identity_open(&f->config, &f->id));
    assert_null(identity_add_uplink(f->id, iface));
    set_rows(f->id);
    claim_cgroup(f->id, "a", SLOT_A);
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

static void
a_vlan_can_be_an_uplink_and_above_one(void **state)
{
    struct fixture *f = get(state);
    int far = f->far, a;

    if (!has_kind("ip link add link up0 name up0.5 type vlan id 5")) {
        skip();
    }
    run("ip addr add 10.9.5.1/24 dev up0.5 && ip link set up0.5 up");
    run("nsenter -t %d -n ip link add link far0 name far0.5 type vlan id 5",
        far);
    run("nsenter -t %d -n ip addr add 10.9.5.2/24 dev far0.5", far);
    run("nsenter -t %d -n ip link set far0.5 up", far);
    claim_cgroup(f->id, "a", SLOT_A);
    a = sender_to("a", "10.9.5.2");
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    change_uplink(f, "up0.5");
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    close(a);
    run("ip link del up0.5; nsenter -t %d -n ip link del far0.5", far);
}

static void
a_bond_can_be_an_uplink(void **state)
{
    struct fixture *f = get(state);
    int far = f->far, a;

    if (!has_kind("ip link add bond0 type bond mode active-backup")) {
        skip();
    }
    run("ip link add b0 type veth peer far1 netns %d", far);
    run("ip link set b0 master bond0 && ip link set bond0 up");
    run("ip addr add 10.9.6.1/24 dev bond0");
    run("nsenter -t %d -n ip addr add 10.9.6.2/24 dev far1", far);
    run("nsenter -t %d -n ip link set far1 up", far);
    change_uplink(f, "bond0");
    a = sender_to("a", "10.9.6.2");
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    close(a);
    run("ip link del b0; ip link del bond0");
}

/* An id that is used again is another process. */
static void
a_claim_has_the_life_of_its_process(void **state)
{
    struct fixture *f = get(state);
    int a = sender(0, "a");

    set_claim(f->id, IDENTITY_PROCESSES, getpid(),
              (struct identity_claim){ .ended = 1, .slot = SLOT_A });
    assert_int_equal(dscp_sent_by(a), 0);
    set_claim(f->id, IDENTITY_PROCESSES, getpid(),
              (struct identity_claim){ .born = UINT64_MAX, .slot = SLOT_A });
    assert_int_equal(dscp_sent_by(a), 0);
    close(a);
}

static void
after_the_lease_all_are_equal_and_counted(void **state)
{
    struct fixture *f = get(state);
    struct identity_traffic *t = identity_traffic(f->id);
    int a = sender(0, "a");

    claim_cgroup(f->id, "a", SLOT_A);
    identity_settings(f->id)->lease_until = 0;
    assert_int_equal(dscp_sent_by(a), 0);
    assert_int_equal(t[SLOT_A].tx_bytes, 142);
    assert_int_equal(t[SLOT_A].default_bytes, 142);
    close(a);
}

static void
an_observer_changes_nothing(void **state)
{
    struct fixture *f = get(state);
    struct identity_traffic *t = identity_traffic(f->id);
    int a = sender(0, "a");

    claim_cgroup(f->id, "a", SLOT_A);
    identity_settings(f->id)->mode = IDENTITY_COUNTS;
    setsockopt(a, IPPROTO_IP, IP_TOS, &(int){ DSCP_CONTROL << 2 },
               sizeof(int));
    assert_int_equal(dscp_sent_by(a), DSCP_CONTROL);
    assert_int_equal(t[SLOT_A].tx_bytes, 142);
    close(a);
}

static void
a_job_has_a_control_class(void **state)
{
    struct fixture *f = get(state);
    int a = sender(0, "a"), b = sender(0, "b");
    int tos = DSCP_CONTROL << 2;
    const long long now = 1000000;

    claim_cgroup(f->id, "a", SLOT_A);
    claim_cgroup(f->id, "b", SLOT_B);
    setsockopt(a, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    setsockopt(b, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    assert_int_equal(dscp_sent_by(a), DSCP_CONTROL);
    assert_int_equal(dscp_sent_by(b), DSCP_B); /* It has none. */
    setsockopt(a, IPPROTO_IP, IP_TOS, &(int){ 0 }, sizeof tos);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    identity_set_control_port(f->id, SLOT_A, htons(PORT));
    identity_run(f->id, now);
    assert_int_equal(dscp_sent_by(a), DSCP_CONTROL);
    identity_clear_control_ports(f->id, SLOT_A);
    identity_run(f->id, now + 9); /* Sockets are not disturbed so soon. */
    assert_int_equal(dscp_sent_by(a), DSCP_CONTROL);
    identity_run(f->id, now + 10);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    close(a);
    close(b);
}

/* Returns the VLAN tag with which the bytes arrive at the far end that 'fd'
 * sends, -1 without one. */
static int
tag_of_sent(int fd, const void *bytes, size_t size)
{
    int packets = open_in(fixture.far, AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)),
        tag = -2, on = 1;
    char data[256], room[128];

    set_timeout(packets);
    setsockopt(packets, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on);
    assert_int_equal(write(fd, bytes, size), size);
    while (tag == -2) {
        struct iovec iov = { data, sizeof data };
        struct msghdr message = { .msg_iov = &iov,
                                  .msg_iovlen = 1,
                                  .msg_control = room,
                                  .msg_controllen = sizeof room };

        assert_true(recvmsg(packets, &message, 0) > 0);
        tag = tag_of(&message, data);
    }
    close(packets);
    return tag;
}

static int
tag_sent_by(int fd)
{
    return tag_of_sent(fd, "", 1);
}

static void
a_shim_gets_tags(void **state)
{
    struct fixture *f = get(state);
    int a = sender(0, "a"), none = sender(0, "");
    int tos = DSCP_CONTROL << 2;

    claim_cgroup(f->id, "a", SLOT_A);
    identity_settings(f->id)->mode = IDENTITY_TAGS;
    assert_int_equal(tag_sent_by(a), SLOT_A);
    assert_int_equal(tag_sent_by(none), 0);
    setsockopt(a, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    assert_int_equal(tag_sent_by(a), SLOT_A | SLOT_TAG_CONTROL);
    close(a);
    close(none);
}

/* The pod's packets are routed to the uplink; the mark that the pod's root
 * sets itself does not count. */
static void
packets_of_a_pod_are_of_its_job(void **state)
{
    struct fixture *f = get(state);
    int a = sender(f->pod, "a"), none = sender(f->pod, "");
    int mark = (SLOT_A << 1 | 1) << 3;

    claim_cgroup(f->id, "a", SLOT_A);
    assert_int_equal(dscp_sent_by(a), 0); /* No program at "pod0". */
    assert_int_equal(add_pod(f->id), 0);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_int_equal(setsockopt(none, SOL_SOCKET, SO_MARK, &mark, sizeof mark),
                     0);
    assert_int_equal(dscp_sent_by(none), 0);
    identity_settings(f->id)->mark_shift = IDENTITY_NO_MARK;
    assert_int_equal(dscp_sent_by(a), 0);
    close(a);
    close(none);
}

/* A user's namespace can have the addresses and ports of a connection of
 * another job, but not its socket. */
static void
equal_addresses_in_a_namespace_move_nothing(void **state)
{
    struct fixture *f = get(state);
    struct identity_traffic *t = identity_traffic(f->id);
    struct sockaddr_in name, to = far_address(PORT);
    socklen_t size = sizeof name;
    int a = sender(0, "a"), attacker;

    run("nsenter -t %d -n ip addr add 10.9.0.1/32 dev lo", (int) f->pod);
    assert_int_equal(add_pod(f->id), 0);
    claim_cgroup(f->id, "a", SLOT_A);
    claim_cgroup(f->id, "b", SLOT_B);
    assert_int_equal(getsockname(a, (struct sockaddr *) &name, &size), 0);
    enter("b");
    attacker = socket_in(f->pod, SOCK_DGRAM);
    enter("");
    assert_int_equal(bind(attacker, (struct sockaddr *) &name, size), 0);
    assert_int_equal(connect(attacker, (struct sockaddr *) &to, sizeof to), 0);
    for (int i = 0; i < 5; i++) {
        send(attacker, "", 1, 0);
        assert_int_equal(dscp_sent_by(a), DSCP_A);
    }
    assert_int_equal(t[SLOT_A].tx_bytes, 5 * 142);
    run("nsenter -t %d -n ip addr del 10.9.0.1/32 dev lo", (int) f->pod);
    close(attacker);
    close(a);
}

static void
make_ipv6(const struct fixture *f)
{
    run("ip addr replace fd09::1/64 dev up0 nodad");
    run("nsenter -t %d -n ip addr replace " FAR6 "/64 dev far0 nodad",
        (int) f->far);
}

static void
ipv6_is_marked_and_counted(void **state)
{
    struct fixture *f = get(state);
    struct identity_traffic *t = identity_traffic(f->id);
    struct sockaddr_in6 to = { .sin6_family = AF_INET6,
                               .sin6_port = htons(PORT) };
    int far = open_in(f->far, AF_INET6, SOCK_DGRAM, 0), a, on = 1;
    struct timeval wait = { .tv_sec = WAIT_S };
    char data[100], room[64];
    struct iovec iov = { data, sizeof data };
    struct msghdr message = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = room,
                              .msg_controllen = sizeof room };
    struct cmsghdr *c;

    make_ipv6(f);
    setsockopt(far, SOL_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
    setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(far, SOL_IPV6, IPV6_V6ONLY, &on, sizeof on);
    assert_int_equal(bind(far, (struct sockaddr *) &to, sizeof to), 0);
    inet_pton(AF_INET6, FAR6, &to.sin6_addr);
    enter("a");
    a = socket(AF_INET6, SOCK_DGRAM, 0);
    enter("");
    claim_cgroup(f->id, "a", SLOT_A);
    assert_int_equal(
        sendto(a, data, sizeof data, 0, (struct sockaddr *) &to, sizeof to),
        sizeof data);
    assert_int_equal(recvmsg(far, &message, 0), sizeof data);
    c = CMSG_FIRSTHDR(&message);
    assert_non_null(c);
    assert_int_equal(c->cmsg_type, IPV6_TCLASS);
    assert_int_equal(*(int *) CMSG_DATA(c) >> 2, DSCP_A);
    assert_int_equal(t[SLOT_A].tx_bytes, 162);
    close(a);
    close(far);
}

static int
sender_from(pid_t netns, const char *cgroup, const char *source,
            const char *iface)
{
    struct sockaddr_in from = { .sin_family = AF_INET },
                       to = far_address(PORT);
    int fd;

    enter(cgroup);
    fd = socket_in(netns, SOCK_DGRAM);
    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, iface, strlen(iface));
    inet_pton(AF_INET, source, &from.sin_addr);
    assert_int_equal(bind(fd, (struct sockaddr *) &from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    enter("");
    return fd;
}

static int
raw_sender(pid_t netns, const char *cgroup)
{
    struct sockaddr_in to = far_address(0);
    int fd;

    enter(cgroup);
    fd = open_in(netns, AF_INET, SOCK_RAW, IPPROTO_UDP);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    enter("");
    return fd;
}

/* Claims cgroup "a", and looks at the interfaces of pods. */
static struct pods *
begin_tags(struct fixture *f, enum identity_mode mode)
{
    struct pods *pods;

    claim_cgroup(f->id, "a", SLOT_A);
    identity_settings(f->id)->mode = mode;
    assert_null(pods_create(f->id, &pods));
    run("for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$f; done");
    return pods;
}

/* A shim learns where received packets belong from packets that a pod sends
 * with its own address, and from no others. */
static void
only_the_pods_own_source_is_learned(void **state)
{
    const uint16_t header[4] = { 0, htons(PORT), htons(sizeof header), 0 };
    struct fixture *f = get(state);
    struct pods *pods = begin_tags(f, IDENTITY_TAGS);
    int own, another, raw, host;

    run("nsenter -t %d -n ip addr add 10.9.0.77/32 dev lo", (int) f->pod);
    own = sender(f->pod, "a");
    another = sender_from(f->pod, "a", "10.9.0.77", "");
    raw = raw_sender(f->pod, "a");
    host = raw_sender(getpid(), "a");
    assert_int_equal(tag_sent_by(own), SLOT_A);
    assert_int_equal(tag_sent_by(another), SLOT_A | SLOT_TAG_NO_LEARN);
    assert_int_equal(tag_of_sent(raw, header, sizeof header),
                     SLOT_A | SLOT_TAG_NO_LEARN);
    assert_int_equal(tag_of_sent(host, header, sizeof header),
                     SLOT_A | SLOT_TAG_NO_LEARN);

    /* Behind a bridge, the route leads to that. */
    run("ip link add br0 type bridge && ip link set br0 up");
    run("ip addr del 10.9.1.1/24 dev pod0 && ip link set pod0 master br0");
    run("ip addr add 10.9.1.1/24 dev br0");
    run("nsenter -t %d -n ip neigh flush dev eth0", (int) f->pod);
    pods_run(pods);
    assert_int_equal(tag_sent_by(own), SLOT_A);
    assert_int_equal(tag_sent_by(another), SLOT_A | SLOT_TAG_NO_LEARN);
    run("ip link del br0 && ip addr add 10.9.1.1/24 dev pod0");
    run("nsenter -t %d -n ip addr del 10.9.0.77/32 dev lo", (int) f->pod);
    run("nsenter -t %d -n ip neigh flush dev eth0", (int) f->pod);
    close(own);
    close(another);
    close(raw);
    close(host);
    pods_destroy(pods);
}

/* Packets of macvlan have their socket at the uplink.  Answers to an address
 * that is the host's too do not come back. */
static void
macvlan_needs_no_program_of_its_own(void **state)
{
    struct fixture *f = get(state);
    struct pods *pods = begin_tags(f, IDENTITY_TAGS);
    int own, hosts, pod = f->pod;

    run("ip link add mv0 link up0 type macvlan mode bridge && "
        "ip link set mv0 netns %d",
        pod);
    run("nsenter -t %d -n ip addr add 10.9.0.5/24 dev mv0", pod);
    run("nsenter -t %d -n ip addr add 10.9.0.1/32 dev mv0", pod);
    run("nsenter -t %d -n ip link set mv0 up", pod);
    run("mac=$(nsenter -t %d -n ip -br link show far0 | awk '{ print $3 }') && "
        "nsenter -t %d -n ip neigh add " FAR " lladdr $mac dev mv0",
        (int) f->far, pod);
    own = sender_from(pod, "a", "10.9.0.5", "mv0");
    hosts = sender_from(pod, "a", "10.9.0.1", "mv0");
    assert_int_equal(tag_sent_by(own), SLOT_A);
    assert_int_equal(tag_sent_by(hosts), SLOT_A | SLOT_TAG_NO_LEARN);
    run("nsenter -t %d -n ip link del mv0", pod);
    close(own);
    close(hosts);
    pods_destroy(pods);
}

static int
sender_of_ipv6(const char *cgroup, const char *source)
{
    struct sockaddr_in6 from = { .sin6_family = AF_INET6 };
    struct sockaddr_in6 to = { .sin6_family = AF_INET6,
                               .sin6_port = htons(PORT) };
    int fd, on = 1;

    inet_pton(AF_INET6, source, &from.sin6_addr);
    inet_pton(AF_INET6, FAR6, &to.sin6_addr);
    enter(cgroup);
    fd = socket(AF_INET6, SOCK_DGRAM, 0);
    setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
    assert_int_equal(bind(fd, (struct sockaddr *) &from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    enter("");
    return fd;
}

/* Any user can bind a socket of IPv6 to an address of a pod. */
static void
an_address_of_a_pod_is_not_the_hosts(void **state)
{
    struct fixture *f = get(state);
    struct pods *pods = begin_tags(f, IDENTITY_TAGS);
    int own, pods_own;

    make_ipv6(f);
    run("ip addr replace fd09:1::1/64 dev pod0 nodad");
    run("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding");
    run("mac=$(nsenter -t %d -n ip -br link show far0 | awk '{ print $3 }') && "
        "ip neigh replace " FAR6 " lladdr $mac dev up0",
        (int) f->far);
    own = sender_of_ipv6("a", "fd09::1");
    pods_own = sender_of_ipv6("a", "fd09:1::9");
    assert_int_equal(tag_sent_by(own), SLOT_A);
    assert_int_equal(tag_sent_by(pods_own), SLOT_A | SLOT_TAG_NO_LEARN);
    close(own);
    close(pods_own);
    pods_destroy(pods);
}

/* netkit has a hook of its own, in the pod's direction. */
static void
packets_of_a_pod_behind_netkit_are_of_its_job(void **state)
{
    struct fixture *f = get(state);
    struct pods *pods;
    int a, pod = f->pod;

    if (!has_kind("ip link add host0 type netkit")) {
        skip();
    }
    pods = begin_tags(f, IDENTITY_ORDERS);
    run("ip link set nk0 netns %d", pod);
    run("ip addr add 10.9.7.1/24 dev host0 && ip link set host0 up");
    run("nsenter -t %d -n ip addr add 10.9.7.2/24 dev nk0", pod);
    run("nsenter -t %d -n ip link set nk0 up", pod);
    run("nsenter -t %d -n ip route add " FAR " via 10.9.7.1 dev nk0", pod);
    run("nsenter -t %d -n ip route add 10.9.7.0/24 via 10.9.0.1",
        (int) f->far);
    pods_run(pods);
    a = sender_from(pod, "a", "10.9.7.2", "nk0");
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    identity_settings(f->id)->mode = IDENTITY_TAGS;
    assert_int_equal(tag_sent_by(a), SLOT_A);
    close(a);
    run("ip link del host0");
    run("nsenter -t %d -n ip route del 10.9.7.0/24", (int) f->far);
    pods_destroy(pods);
}

/* With GRO at the host's end, packets of a pod without TSO lose their
 * socket. */
static void
gro_is_off_until_the_agent_is_removed(void **state)
{
    static const char off[] = "ethtool -k pod0 | "
                              "grep -q '^generic-receive-offload: off'";
    struct fixture *f = get(state);
    struct identity_config observe = f->config;
    struct pods *pods;

    run("ethtool -K pod0 gro on");
    pods = begin_tags(f, IDENTITY_ORDERS);
    run(off);
    run("ethtool -K pod0 gro on");
    pods_run(pods);
    run(off);
    pods_destroy(pods);
    identity_close(f->id);
    assert_null(identity_detach(f->config.pins));
    run("! %s", off);

    observe.mode = IDENTITY_COUNTS;
    assert_null(identity_open(&observe, &f->id));
    pods = begin_tags(f, IDENTITY_COUNTS);
    run("! %s", off);
    run("ethtool -K pod0 gro off");
    pods_destroy(pods);
}

/* Makes a namespace within the pod, whose packets the pod routes. */
static pid_t
make_inner(const struct fixture *f)
{
    pid_t inner = hold_namespace();
    int pod = f->pod;

    run("nsenter -t %d -n ip link add in0 type veth peer eth0 netns %d", pod,
        inner);
    run("nsenter -t %d -n ip addr add 10.9.2.1/24 dev in0", pod);
    run("nsenter -t %d -n ip link set in0 up", pod);
    run("nsenter -t %d -n sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'", pod);
    run("nsenter -t %d -n ip addr add 10.9.2.2/24 dev eth0", inner);
    run("nsenter -t %d -n ip link set eth0 up", inner);
    run("nsenter -t %d -n ip route add default via 10.9.2.1", inner);
    run("ip route add 10.9.2.0/24 via 10.9.1.2");
    run("nsenter -t %d -n ip route add 10.9.2.0/24 via 10.9.0.1",
        (int) f->far);
    return inner;
}

static void
remove_inner(const struct fixture *f, pid_t inner)
{
    kill(inner, SIGKILL);
    waitpid(inner, NULL, 0);
    run("nsenter -t %d -n ip link del in0 2>/dev/null || true", (int) f->pod);
    run("ip route del 10.9.2.0/24");
    run("nsenter -t %d -n ip route del 10.9.2.0/24", (int) f->far);
}

/* A pod within the pod has lost its socket at the host's end. */
static void
packets_without_a_socket_are_of_their_interface(void **state)
{
    struct fixture *f = get(state);
    struct pods *pods = begin_tags(f, IDENTITY_ORDERS);
    char *path = xasprintf("/proc/%d/ns/net", (int) f->pod);
    pid_t inner = make_inner(f);
    int fd = sender(inner, "a");
    uint64_t cookie;

    assert_int_equal(dscp_sent_by(fd), 0);
    assert_int_equal(identity_add_netns(f->id, path, &cookie), 0);
    claim(f->id, IDENTITY_NAMESPACES, cookie, SLOT_B, CLAIM_LAUNCHER);
    assert_int_equal(dscp_sent_by(fd), DSCP_B);
    identity_settings(f->id)->mark_shift = IDENTITY_NO_MARK;
    assert_int_equal(dscp_sent_by(fd), DSCP_B);
    identity_settings(f->id)->mode = IDENTITY_TAGS;
    assert_int_equal(tag_sent_by(fd), SLOT_B);
    identity_settings(f->id)->mark_shift = f->config.mark_shift;
    assert_int_equal(tag_sent_by(fd), SLOT_B);
    close(fd);
    remove_inner(f, inner);
    free(path);
    pods_destroy(pods);
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
    fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    enter("");
    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
    run("ip addr add 10.9.3.1/24 dev tap0 && ip link set tap0 up");
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
static void
a_virtual_machine_is_of_the_cgroup_of_its_tap(void **state)
{
    struct fixture *f = get(state);
    struct pods *pods = begin_tags(f, IDENTITY_ORDERS);
    uint8_t mac[6];
    int tap = open_tap("a", mac);

    pods_run(pods);
    write_frame(tap, mac);
    assert_int_equal(dscp_received(), DSCP_A);
    close(tap);
    pods_destroy(pods);
}

static void
a_namespace_can_be_claimed(void **state)
{
    struct fixture *f = get(state);
    int pod = sender(f->pod, "");
    char *path = xasprintf("/proc/%d/ns/net", (int) f->pod);
    uint64_t cookie;

    assert_int_equal(add_pod(f->id), 0);
    assert_int_equal(identity_add_netns(f->id, path, &cookie), 0);
    claim(f->id, IDENTITY_NAMESPACES, cookie, SLOT_A, CLAIM_LAUNCHER);
    assert_int_equal(dscp_sent_by(pod), DSCP_A);
    assert_int_equal(identity_add_netns(f->id, "/proc/self/ns/none", &cookie),
                     ENOENT);
    free(path);
    close(pod);
}

/* An accepted socket is its listener's; bytes are those of all segments. */
static void
bytes_are_those_on_the_wire(void **state)
{
    static char data[1 << 20];
    struct fixture *f = get(state);
    struct identity_traffic *t = identity_traffic(f->id);
    struct sockaddr_in here = { .sin_family = AF_INET,
                                .sin_port = htons(PORT) };
    int listener, far = socket_in(f->far, SOCK_STREAM), fd;
    size_t segments = DIV_ROUND_UP(sizeof data, 1448), got = 0;

    enter("a");
    listener = socket(AF_INET, SOCK_STREAM, 0);
    enter("");
    claim_cgroup(f->id, "a", SLOT_A);
    assert_int_equal(bind(listener, (struct sockaddr *) &here, sizeof here),
                     0);
    assert_int_equal(listen(listener, 1), 0);
    inet_pton(AF_INET, "10.9.0.1", &here.sin_addr);
    assert_int_equal(connect(far, (struct sockaddr *) &here, sizeof here), 0);
    fd = accept(listener, NULL, NULL);
    if (!fork()) {
        _exit(write(fd, data, sizeof data) != sizeof data);
    }
    while (got < sizeof data) {
        ssize_t n = read(far, data, sizeof data);

        assert_true(n > 0);
        got += n;
    }
    wait(NULL);
    assert_true(t[SLOT_A].tx_packets >= segments);
    assert_true(t[SLOT_A].tx_bytes >= sizeof data + segments * 66);
    assert_true(t[SLOT_A].tx_bytes < 1.05 * (sizeof data + segments * 66));
    assert_true(t[SLOT_A].rx_bytes >= 66 * t[SLOT_A].rx_packets);
    assert_true(t[SLOT_A].rx_packets > 0);
    close(fd);
    close(far);
    close(listener);
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

static void
bytes_are_counted_by_address_while_wanted(void **state)
{
    struct fixture *f = get(state);
    int a = sender(0, "a"), six;
    uint64_t sums[2] = { 0, 0 };

    claim_cgroup(f->id, "a", SLOT_A);
    dscp_sent_by(a);
    identity_take_pairs(f->id, take_pair, sums);
    assert_int_equal(sums[0], 0);
    identity_settings(f->id)->max_pairs = 100;
    dscp_sent_by(a);
    dscp_sent_by(a);
    make_ipv6(f);
    six = sender_of_ipv6("a", "::");
    assert_int_equal(write(six, "", 1), 1);
    identity_take_pairs(f->id, take_pair, sums);
    assert_int_equal(sums[0], 284);
    assert_int_equal(sums[1], 63);
    identity_take_pairs(f->id, take_pair, sums);
    assert_int_equal(sums[0], 284);
    close(a);
    close(six);
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
static void
the_kernel_asks_about_a_process_once(void **state)
{
    struct fixture *f = get(state);
    struct questions_taken taken = { 0, 0, 0 };
    struct stat s;
    int a = sender(0, "a"), b = sender(0, "a");

    identity_take_questions(f->id, take, &taken);
    assert_int_equal(taken.of_this, 1);
    assert_int_equal(taken.by_rule, 0);
    assert_int_equal(stat(f->tree, &s), 0); /* Of "f->receiver". */
    assert_int_equal(taken.cgroup, s.st_ino);
    identity_set_ports(f->id, PORT, PORT, 2);
    assert_int_equal(dscp_sent_by(a), 0);
    assert_int_equal(dscp_sent_by(b), 0);
    identity_take_questions(f->id, take, &taken);
    assert_int_equal(taken.of_this, 1);
    assert_int_equal(taken.by_rule, 1);
    close(a);
    close(b);
}

/* A socket from before the programs has its cgroup at once, and its process
 * when the agent says so. */
static void
older_sockets_are_adopted(void **state)
{
    struct fixture *f = get(state);
    int a, b;

    identity_close(f->id);
    assert_null(identity_detach(f->config.pins));
    a = sender(0, "a");
    b = sender(0, "b");
    assert_null(identity_open(&f->config, &f->id));
    assert_null(identity_add_uplink(f->id, "up0"));
    set_rows(f->id);
    claim_cgroup(f->id, "a", SLOT_A);
    claim(f->id, IDENTITY_PROCESSES, getpid(), SLOT_B, CLAIM_ENVIRONMENT);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_int_equal(dscp_sent_by(b), 0);
    identity_adopt(f->id, getpid());
    assert_int_equal(dscp_sent_by(b), DSCP_B);
    close(a);
    close(b);
}

/* The programs go on without an agent, and the next one finds the sockets. */
static void
the_next_agent_goes_on(void **state)
{
    struct fixture *f = get(state);
    int a = sender(0, "a");

    claim_cgroup(f->id, "a", SLOT_A);
    identity_close(f->id);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_null(identity_open(&f->config, &f->id));
    assert_null(identity_add_uplink(f->id, "up0"));
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    assert_int_equal(identity_traffic(f->id)[SLOT_A].tx_bytes, 284);
    close(a);
}

static void
one_agent_has_an_uplink(void **state)
{
    struct fixture *f = get(state);
    struct identity_config other = f->config;
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

static void
two_capabilities_are_enough(void **state)
{
    struct fixture *f = get(state);
    struct identity_config other = f->config;
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

static void
an_uplink_that_is_made_again_has_its_program_at_once(void **state)
{
    struct fixture *f = get(state);
    struct pods *pods = begin_tags(f, IDENTITY_ORDERS);
    int a = sender(0, "a");

    identity_run(f->id, 100000);
    run("ip link del up0");
    run("ip link add up0 type veth peer far0 netns %d", (int) f->far);
    run("ip addr add 10.9.0.1/24 dev up0 && ip link set up0 up");
    run("nsenter -t %d -n ip addr add " FAR "/24 dev far0", (int) f->far);
    run("nsenter -t %d -n ip link set far0 up", (int) f->far);
    run("nsenter -t %d -n ip route add 10.9.1.0/24 via 10.9.0.1",
        (int) f->far);
    pods_run(pods);
    identity_run(f->id, 100001);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    close(a);
    pods_destroy(pods);
}

static void
what_somebody_removed_comes_back(void **state)
{
    struct fixture *f = get(state);
    int a = sender(0, "a");

    claim_cgroup(f->id, "a", SLOT_A);
    run("rm -f %s/link-stagecoach_out-*", f->config.pins);
    run("tc qdisc del dev up0 clsact 2>/dev/null || true");
    /* The kernel ends a link a moment after its last reference. */
    for (int i = 0; i < 100 && dscp_sent_by(a); i++) {
        usleep(10000);
    }
    assert_int_equal(dscp_sent_by(a), 0);
    identity_run(f->id, 100000);
    assert_int_equal(dscp_sent_by(a), DSCP_A);
    close(a);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(packets_are_of_the_job_of_their_socket),
        TEST(a_claim_reaches_running_sockets),
        TEST(a_claim_has_the_life_of_its_process),
        TEST(a_priority_selects_the_queue),
        TEST(a_vlan_can_be_an_uplink_and_above_one),
        TEST(a_bond_can_be_an_uplink),
        TEST(after_the_lease_all_are_equal_and_counted),
        TEST(an_observer_changes_nothing),
        TEST(a_job_has_a_control_class),
        TEST(a_shim_gets_tags),
        TEST(packets_of_a_pod_are_of_its_job),
        TEST(equal_addresses_in_a_namespace_move_nothing),
        TEST(only_the_pods_own_source_is_learned),
        TEST(macvlan_needs_no_program_of_its_own),
        TEST(an_address_of_a_pod_is_not_the_hosts),
        TEST(packets_of_a_pod_behind_netkit_are_of_its_job),
        TEST(gro_is_off_until_the_agent_is_removed),
        TEST(packets_without_a_socket_are_of_their_interface),
        TEST(a_virtual_machine_is_of_the_cgroup_of_its_tap),
        TEST(ipv6_is_marked_and_counted),
        TEST(a_namespace_can_be_claimed),
        TEST(bytes_are_those_on_the_wire),
        TEST(bytes_are_counted_by_address_while_wanted),
        TEST(the_kernel_asks_about_a_process_once),
        TEST(older_sockets_are_adopted),
        TEST(the_next_agent_goes_on),
        TEST(one_agent_has_an_uplink),
        TEST(two_capabilities_are_enough),
        TEST(an_uplink_that_is_made_again_has_its_program_at_once),
        TEST(what_somebody_removed_comes_back),
    };

    return cmocka_run_group_tests_name("identity", tests, set_up_group,
                                       tear_down_group);
}
