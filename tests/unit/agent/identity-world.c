/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "tests/unit/agent/identity-world.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/identify/bpf/interfaces.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/cgroup-path.h"

#define WAIT_S 5

struct fixture f;

pid_t
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

void
in(pid_t netns, const char *format, ...)
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

void
make_uplink(void)
{
    in(0,
       "ip link add up0 type veth peer far0 address " FAR_MAC " netns %d;"
       "ip addr add 10.9.0.1/24 dev up0; ip link set up0 up;"
       "ip neigh add " FAR " lladdr " FAR_MAC " dev up0",
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

void
enter(const char *cgroup)
{
    in(0, "echo %d >%s/%s/cgroup.procs", (int) getpid(), f.tree, cgroup);
}

int
keep(int fd)
{
    assert_true(fd >= 0 && f.n_fds < ARRAY_SIZE(f.fds));
    f.fds[f.n_fds++] = fd;
    return fd;
}

int
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

struct sockaddr_storage
address_of(const char *text, int port)
{
    struct sockaddr_storage address = { .ss_family = AF_INET };
    struct sockaddr_in *four = (void *) &address;
    struct sockaddr_in6 *six = (void *) &address;

    four->sin_port = htons(port); /* At the place of the port of IPv6. */
    if (strchr(text, ':')) {
        address.ss_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    } else {
        assert_int_equal(inet_pton(AF_INET, text, &four->sin_addr), 1);
    }
    return address;
}

void
bind_to(int fd, const char *text, int port)
{
    struct sockaddr_storage address = address_of(text, port);

    assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof address),
                     0);
}

void
connect_to(int fd, const char *text, int port)
{
    struct sockaddr_storage address = address_of(text, port);

    assert_int_equal(connect(fd, (struct sockaddr *) &address, sizeof address),
                     0);
}

void
expect_messages(int fd)
{
    struct timeval wait = { .tv_sec = WAIT_S };
    int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
    setsockopt(fd, SOL_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
    setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on);
}

ssize_t
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

void
begin_identity(const struct identity_config *config, const char *uplink)
{
    assert_null(identity_open(config, &f.id));
    assert_null(identity_add_uplink(f.id, uplink));
    set_rows();
}

void
end_identity(void)
{
    identity_close(f.id);
    assert_null(identity_detach(f.config.pins));
}

int
set_up(void **state OVS_UNUSED)
{
    begin_identity(&f.config, "up0");
    enter("");
    f.receiver = open_in(f.far, AF_INET, SOCK_DGRAM, 0);
    expect_messages(f.receiver);
    bind_to(f.receiver, "0.0.0.0", PORT);
    return 0;
}

int
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

int
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

int
sender(pid_t netns, const char *cgroup)
{
    return open_sender((struct from){ .netns = netns, .cgroup = cgroup });
}

int
dscp_received(int fd)
{
    struct cmsghdr *c;
    char data[100];

    assert_int_equal(receive(fd, data, sizeof data, &c), sizeof data);
    return (c->cmsg_type == IPV6_TCLASS ? *(int *) CMSG_DATA(c)
                                        : *(uint8_t *) CMSG_DATA(c))
           >> 2;
}

int
dscp_sent_by(int fd)
{
    static const char data[100];

    assert_int_equal(send(fd, data, sizeof data, 0), sizeof data);
    return dscp_received(f.receiver);
}

void
set_claim(enum identity_map map, uint64_t key, struct identity_claim c)
{
    size_t set;

    assert_int_equal(identity_set_claims(f.id, map, &key, &c, 1, &set), 0);
    identity_raise_epoch(f.id);
}

void
claim(enum identity_map map, uint64_t key, uint32_t slot,
      enum claim_source source)
{
    set_claim(map, key,
              (struct identity_claim){ .slot = slot, .source = source });
}

int
add_pod(struct identity *id)
{
    return identity_add_pod(id, if_nametoindex("pod0"), IDENTITY_VETH, 0, -1);
}

void
claim_cgroup(const char *name, uint32_t slot)
{
    char *path = xasprintf("%s/%s", f.tree, name);
    struct stat s;

    assert_int_equal(stat(path, &s), 0);
    claim(IDENTITY_CGROUPS, s.st_ino, slot, CLAIM_CGROUP);
    free(path);
}

bool
has_kind(const char *make)
{
    char *command = xasprintf("%s 2>/dev/null", make);
    bool has = !system(command);

    free(command);
    return has;
}

void
make_ipv6(void)
{
    in(0, "ip addr replace fd09::1/64 dev up0 nodad");
    in(f.far, "ip addr replace " FAR6 "/64 dev far0 nodad");
}
