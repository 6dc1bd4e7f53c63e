/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs of sockets, by the programs in the kernel, and the life of these. */

#include <config.h>

#include <arpa/inet.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/identify/connections.h"
#include "agent/identify/questions.h"
#include "tests/unit/agent/identity-world.h"
#include "tests/unit/unit-test.h"
#include "util.h"

IDENTITY_TEST(packets_are_of_the_job_of_their_socket)
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

    /* A user's mark counts for no job, and only the policy's marks are
     * removed. */
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
IDENTITY_TEST(a_claim_reaches_running_sockets)
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

/* The queue of the level is the queue of the priority that the uplink has for
 * it. */
IDENTITY_TEST(a_priority_selects_the_queue)
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

IDENTITY_TEST(a_vlan_can_be_an_uplink_and_above_one)
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

IDENTITY_TEST(a_bond_can_be_an_uplink)
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
IDENTITY_TEST(a_claim_has_the_life_of_its_process)
{
    int a = sender(0, "a");

    set_claim(IDENTITY_PROCESSES, getpid(),
              (struct identity_claim){ .ended = 1, .slot = SLOT_A });
    assert_int_equal(dscp_sent_by(a), 0);
    set_claim(IDENTITY_PROCESSES, getpid(),
              (struct identity_claim){ .born = UINT64_MAX, .slot = SLOT_A });
    assert_int_equal(dscp_sent_by(a), 0);
}

IDENTITY_TEST(after_the_lease_all_are_equal_and_counted)
{
    int a = sender(0, "a");

    claim_cgroup("a", SLOT_A);
    f.settings->lease_until = 0;
    assert_int_equal(dscp_sent_by(a), 0);
    assert_int_equal(f.traffic[SLOT_A].tx_bytes, 142);
    assert_int_equal(f.traffic[SLOT_A].default_bytes, 142);
}

IDENTITY_TEST(an_observer_changes_nothing)
{
    int a = sender(0, "a");

    claim_cgroup("a", SLOT_A);
    f.settings->mode = IDENTITY_COUNTS;
    setsockopt(a, IPPROTO_IP, IP_TOS, &(int){ DSCP_CONTROL << 2 },
               sizeof(int));
    assert_int_equal(dscp_sent_by(a), DSCP_CONTROL);
    assert_int_equal(f.traffic[SLOT_A].tx_bytes, 142);
}

IDENTITY_TEST(a_job_has_a_control_class)
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

IDENTITY_TEST(ipv6_is_marked_and_counted)
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

/* An accepted socket is its listener's; bytes are those of all segments. */
IDENTITY_TEST(bytes_are_those_on_the_wire)
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

IDENTITY_TEST(bytes_are_counted_by_address_while_wanted)
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
    int of_this;
    uint64_t cgroup;
};

static void
take(const struct identity_question *question, void *taken_)
{
    struct questions_taken *taken = taken_;

    if (question->tgid == (uint32_t) getpid()) {
        taken->of_this++;
        taken->cgroup = question->cgroup;
    }
}

/* The kernel asks once about a process, not for each of its sockets. */
IDENTITY_TEST(the_kernel_asks_about_a_process_once)
{
    struct questions_taken taken = { 0, 0 };
    struct stat s;
    int a = sender(0, "a"), b = sender(0, "a");

    identity_take_questions(f.id, take, &taken);
    assert_int_equal(taken.of_this, 1);
    assert_int_equal(stat(f.tree, &s), 0); /* Of "f.receiver". */
    assert_int_equal(taken.cgroup, s.st_ino);
    assert_int_equal(dscp_sent_by(a), 0);
    assert_int_equal(dscp_sent_by(b), 0);
    identity_take_questions(f.id, take, &taken);
    assert_int_equal(taken.of_this, 1);
}

static void
take_copy(const struct identity_question *question, void *copy)
{
    if (question->may_copy) {
        *(struct identity_copy *) copy =
            *CONTAINER_OF(question, const struct identity_copy, question);
    }
}

/* Only of a socket of another namespace that has been bound before. */
IDENTITY_TEST(the_kernel_asks_about_what_may_be_a_copy)
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
 * when the agent adopts it. */
IDENTITY_TEST(older_sockets_are_adopted)
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
IDENTITY_TEST(the_next_agent_goes_on)
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

IDENTITY_TEST(one_agent_has_an_uplink)
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

IDENTITY_TEST(two_capabilities_are_enough)
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

IDENTITY_TEST(what_somebody_removed_comes_back)
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
IDENTITY_TEST(the_user_with_most_connections_of_no_job_is_found)
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
