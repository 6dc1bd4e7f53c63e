/* SPDX-License-Identifier: Apache-2.0 */

/* Generates and measures traffic for tests.
 *
 *    traffic sink MS PORT...
 *        Accepts TCP connections for MS milliseconds and prints, every 100 ms,
 *        "TIME PORT BYTES" for each port that received data.
 *    traffic sink-each MS PORT...
 *        As sink, but ends as soon as each port has had a connection and all
 *        connections have ended.
 *    traffic source ADDRESS PORT LOCAL-PORT TOS DELAY-MS MS
 *        Sends as much as it can for MS milliseconds, after DELAY-MS.  Prints
 *        "begin TIME" and "end TIME".
 *    traffic bulk ADDRESS PORT MS
 *        Sends as much as it can, with buffers of the kernel's choice.
 *    traffic drip ADDRESS PORT MS INTERVAL-US
 *        Sends 100 bytes over TCP every INTERVAL-US, each in a packet of its
 *        own, for MS milliseconds.
 *    traffic echo MS PORT
 *        Sends UDP datagrams back.
 *    traffic ping ADDRESS PORT N BYTES
 *        Sends N datagrams and prints "rtt US" for each that comes back, and
 *        "lost N" at the end.  Exits 1 if one does not within a second.
 *    traffic beat ADDRESS PORT N INTERVAL-US [TOS]
 *        Sends N small datagrams, one every INTERVAL-US whatever comes back,
 *        and prints "sent N", "received N", "duplicates N" and "gap_us US":
 *        the longest time without a reply between the first and the last
 *        one.
 *    traffic flood ADDRESS PORT N BYTES
 *        Sends N datagrams without waiting for replies.
 *    traffic blast ADDRESS PORT MS BYTES
 *        Sends datagrams as fast as it can, and prints "sent N".
 *    traffic dscp MS IFACE
 *        Prints "PORT DSCP PACKETS" for IPv4 TCP and UDP packets that arrive
 *        on IFACE, by destination port, after MS milliseconds or on SIGTERM.
 *        Exits 1 if a header checksum is wrong.
 *
 * TIME is in milliseconds of CLOCK_MONOTONIC, the same in all namespaces. */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_SOCKETS 64
#define INTERVAL_MS 100
#define LAST_ANSWER_MS 200

static char data[65536];

static int64_t
now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static int64_t
now_ms(void)
{
    return now_us() / 1000;
}

static int
die(const char *what)
{
    fprintf(stderr, "traffic: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* Returns an address of IPv4 or, if it has colons, of IPv6. */
static struct sockaddr_storage
address_of(const char *address, const char *port)
{
    struct sockaddr_storage to = { .ss_family = AF_INET };
    struct sockaddr_in *sin = (struct sockaddr_in *) &to;
    struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *) &to;

    if (strchr(address, ':')) {
        to.ss_family = AF_INET6;
        sin6->sin6_port = htons(atoi(port));
    } else {
        sin->sin_port = htons(atoi(port));
    }
    if (inet_pton(to.ss_family, address, to.ss_family == AF_INET6
                  ? (void *) &sin6->sin6_addr : &sin->sin_addr) != 1) {
        die(address);
    }
    return to;
}

/* A socket of 'type' that is bound to 'port', of 'family'. */
static int
bound_socket(int family, int type, const char *port)
{
    struct sockaddr_storage any = address_of(family == AF_INET6 ? "::"
                                             : "0.0.0.0", port);
    int fd = socket(family, type, 0), one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *) &any, sizeof any)) {
        die(port);
    }
    return fd;
}

/* As bound_socket(), for both versions of IP if the kernel has both. */
static int
server_socket(int type, const char *port)
{
    int fd = socket(AF_INET6, type, 0);

    close(fd);
    return bound_socket(fd < 0 ? AF_INET : AF_INET6, type, port);
}

/* Sockets of the sink; the first 'n_ports' are listening sockets. */
struct sink {
    struct pollfd fds[MAX_SOCKETS];
    int port[MAX_SOCKETS];      /* Index of the socket's port. */
    int n, n_ports;
    uint64_t bytes[MAX_SOCKETS];        /* In this interval, by port. */
    bool connected[MAX_SOCKETS];        /* Ever, by port. */
    int n_open;                 /* Connections. */
};

static void
sink_read(struct sink *s, int i)
{
    ssize_t n;

    if (i < s->n_ports) {
        int fd = accept4(s->fds[i].fd, NULL, NULL, SOCK_NONBLOCK);

        if (fd >= 0 && s->n < MAX_SOCKETS) {
            s->fds[s->n] = (struct pollfd) { .fd = fd, .events = POLLIN };
            s->port[s->n++] = i;
            s->connected[i] = true;
            s->n_open++;
        }
        return;
    }
    while ((n = read(s->fds[i].fd, data, sizeof data)) > 0) {
        s->bytes[s->port[i]] += n;
    }
    if (!n || errno != EAGAIN) {
        close(s->fds[i].fd);
        s->fds[i].fd = -1;
        s->n_open--;
    }
}

static bool
sink_is_over(const struct sink *s)
{
    for (int i = 0; i < s->n_ports; i++) {
        if (!s->connected[i]) {
            return false;
        }
    }
    return !s->n_open;
}

static int
run_sink(int argc, char *argv[], bool each)
{
    bool over = false;
    int64_t end = now_ms() + atoi(argv[0]);
    int64_t next = now_ms() + INTERVAL_MS;
    struct sink s = { .n = 0 };

    for (int i = 1; i < argc; i++) {
        int fd = server_socket(SOCK_STREAM, argv[i]);

        if (listen(fd, 8)) {
            die("listen");
        }
        s.fds[s.n++] = (struct pollfd) { .fd = fd, .events = POLLIN };
    }
    s.n_ports = s.n;
    while (!over && now_ms() < end) {
        int64_t left = next - now_ms();

        poll(s.fds, s.n, left > 0 ? left : 0);
        for (int i = 0; i < s.n; i++) {
            if (s.fds[i].fd >= 0 && s.fds[i].revents) {
                sink_read(&s, i);
            }
        }
        over = each && sink_is_over(&s);
        if (!over && now_ms() < next) {
            continue;
        }
        for (int i = 0; i < s.n_ports; i++) {
            if (s.bytes[i]) {
                printf("%"PRId64" %s %"PRIu64"\n", now_ms(), argv[i + 1],
                       s.bytes[i]);
                s.bytes[i] = 0;
            }
        }
        fflush(stdout);
        next += INTERVAL_MS;
    }
    return EXIT_SUCCESS;
}

static int
sink(int argc, char *argv[])
{
    return run_sink(argc, argv, false);
}

static int
sink_each(int argc, char *argv[])
{
    return run_sink(argc, argv, true);
}

/* Connects 'fd' to 'to' and sends as much as it can until 'end'. */
static void
send_until(int fd, const struct sockaddr_storage *to, int64_t end)
{
    struct timeval limit = { .tv_usec = 100000 };

    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    while (connect(fd, (const struct sockaddr *) to, sizeof *to)) {
        if ((errno != EINPROGRESS && errno != EALREADY) || now_ms() > end) {
            die("connect");
        }
        usleep(10000);
    }
    printf("begin %"PRId64"\n", now_ms());
    while (now_ms() < end) {
        if (send(fd, data, sizeof data, MSG_NOSIGNAL) < 0
            && errno != EAGAIN) {
            die("send");
        }
    }
    printf("end %"PRId64"\n", now_ms());
}

static int
source(int argc, char *argv[])
{
    struct sockaddr_storage to = address_of(argv[0], argv[1]);
    int fd = bound_socket(to.ss_family, SOCK_STREAM, argv[2]);
    int tos = atoi(argv[3]), size = 1 << 20;

    usleep(atoi(argv[4]) * 1000);
    setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    send_until(fd, &to, now_ms() + atoi(argv[5]));
    return EXIT_SUCCESS;
}

static int
bulk(int argc, char *argv[])
{
    struct sockaddr_storage to = address_of(argv[0], argv[1]);

    send_until(socket(to.ss_family, SOCK_STREAM, 0), &to,
               now_ms() + atoi(argv[2]));
    return EXIT_SUCCESS;
}

static int
drip(int argc, char *argv[])
{
    struct sockaddr_storage to = address_of(argv[0], argv[1]);
    int fd = socket(to.ss_family, SOCK_STREAM, 0), one = 1;
    int64_t end = now_ms() + atoi(argv[2]);

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *) &to, sizeof to)) {
        die("connect");
    }
    while (now_ms() < end) {
        if (send(fd, data, 100, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
            && errno != EAGAIN) {
            die("send");
        }
        usleep(atoi(argv[3]));
    }
    return EXIT_SUCCESS;
}

static int
echo(int argc, char *argv[])
{
    int64_t end = now_ms() + atoi(argv[0]);
    struct pollfd pfd = { .events = POLLIN };
    struct sockaddr_storage from;
    socklen_t size = sizeof from;

    pfd.fd = server_socket(SOCK_DGRAM, argv[1]);
    while (now_ms() < end) {
        ssize_t n;

        if (poll(&pfd, 1, INTERVAL_MS) > 0) {
            n = recvfrom(pfd.fd, data, sizeof data, 0,
                         (struct sockaddr *) &from, &size);
            if (n >= 0) {
                sendto(pfd.fd, data, n, 0, (struct sockaddr *) &from, size);
            }
        }
    }
    return EXIT_SUCCESS;
}

static int
ping(int argc, char *argv[])
{
    struct sockaddr_storage to = address_of(argv[0], argv[1]);
    int fd = socket(to.ss_family, SOCK_DGRAM, 0), n = atoi(argv[2]), lost = 0;
    size_t size = atoi(argv[3]);
    struct timeval limit = { .tv_sec = 1 };

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (size > sizeof data
        || connect(fd, (struct sockaddr *) &to, sizeof to)) {
        die("connect");
    }
    for (int i = 0; i < n; i++) {
        int64_t began = now_us();
        ssize_t got = send(fd, data, size, 0);

        got = got < 0 ? got : recv(fd, data, sizeof data, 0);
        if (got < 0) {
            lost++;
        } else {
            printf("rtt %"PRId64"\n", now_us() - began);
        }
        usleep(20000);
    }
    printf("lost %d\n", lost);
    return lost ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Replies to a beat. */
struct answers {
    uint8_t *seen;              /* Per number. */
    uint32_t n;                 /* Numbers sent. */
    uint64_t received, duplicates;
    int64_t last, gap;          /* Microseconds. */
};

static void
take_answers(struct answers *a, int fd)
{
    uint32_t number;

    while (recv(fd, &number, sizeof number, MSG_DONTWAIT) == sizeof number) {
        int64_t now = now_us();

        if (number >= a->n) {
            continue;
        }
        if (a->last && now - a->last > a->gap) {
            a->gap = now - a->last;
        }
        a->last = now;
        a->received += !a->seen[number];
        a->duplicates += a->seen[number];
        a->seen[number] = 1;
    }
}

static int
beat(int argc, char *argv[])
{
    struct sockaddr_storage to = address_of(argv[0], argv[1]);
    struct answers a = { .n = atoi(argv[2]) };
    struct pollfd pfd = { .events = POLLIN };
    int64_t interval = atoi(argv[3]), next = now_us();
    int tos = argc > 4 ? atoi(argv[4]) : 0;

    a.seen = calloc(a.n, 1);
    pfd.fd = socket(to.ss_family, SOCK_DGRAM, 0);
    if (!a.seen || connect(pfd.fd, (struct sockaddr *) &to, sizeof to)
        || (tos && setsockopt(pfd.fd, IPPROTO_IP, IP_TOS, &tos,
                              sizeof tos))) {
        die("connect");
    }
    for (uint32_t i = 0; i < a.n; ) {
        int64_t left = next - now_us();
        struct timespec ts = { 0, (left > 0 ? left : 0) * 1000 };

        if (left <= 0) {
            send(pfd.fd, &i, sizeof i, MSG_DONTWAIT);
            i++;
            next += interval;
        }
        ppoll(&pfd, 1, &ts, NULL);
        take_answers(&a, pfd.fd);
    }
    while (poll(&pfd, 1, LAST_ANSWER_MS) > 0) {
        take_answers(&a, pfd.fd);
    }
    printf("sent %"PRIu32"\nreceived %"PRIu64"\nduplicates %"PRIu64"\n"
           "gap_us %"PRId64"\n", a.n, a.received, a.duplicates, a.gap);
    free(a.seen);
    return a.received ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
flood(int argc, char *argv[])
{
    struct sockaddr_storage to = address_of(argv[0], argv[1]);
    int fd = socket(to.ss_family, SOCK_DGRAM, 0), n = atoi(argv[2]);
    size_t size = atoi(argv[3]);

    if (size > sizeof data
        || connect(fd, (struct sockaddr *) &to, sizeof to)) {
        die("connect");
    }
    for (int i = 0; i < n; i++) {
        send(fd, data, size, 0);
        usleep(1000);
    }
    return EXIT_SUCCESS;
}

static int
blast(int argc, char *argv[])
{
    struct sockaddr_storage to = address_of(argv[0], argv[1]);
    int fd = socket(to.ss_family, SOCK_DGRAM, 0);
    long long end = now_ms() + atoi(argv[2]);
    size_t size = atoi(argv[3]), n = 0;

    if (size > sizeof data
        || connect(fd, (struct sockaddr *) &to, sizeof to)) {
        die("connect");
    }
    for (size_t i = 0; i % 64 || now_ms() < end; i++) {
        n += send(fd, data, size, 0) >= 0;
    }
    printf("sent %zu\n", n);
    return EXIT_SUCCESS;
}

/* Counts by destination port and DSCP. */
static uint64_t seen[65536][64];

static bool
checksum_is_right(const uint8_t *ip, int size)
{
    uint32_t sum = 0;

    for (int i = 0; i < size; i += 2) {
        sum += ip[i] << 8 | ip[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

/* Returns 1 if the header checksum is wrong. */
static int
see(const uint8_t *frame, ssize_t n)
{
    const uint8_t *ip = frame + ETH_HLEN;
    int header = (ip[0] & 0xf) * 4, port;

    if (n < ETH_HLEN + 20 || frame[12] != 8 || frame[13]
        || n < ETH_HLEN + header + 4 || (ip[9] != 6 && ip[9] != 17)) {
        return 0;
    }
    port = ip[header + 2] << 8 | ip[header + 3];
    seen[port][ip[1] >> 2]++;
    return !checksum_is_right(ip, header);
}

static volatile sig_atomic_t stopped;

static void
on_sigterm(int signo)
{
    stopped = true;
}

static int
dscp(int argc, char *argv[])
{
    int64_t end = now_ms() + atoi(argv[0]);
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll sll = { .sll_family = AF_PACKET,
                               .sll_protocol = htons(ETH_P_ALL) };
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    int buffer = 1 << 25;       /* A slow machine must not miss any. */
    uint64_t n_wrong = 0;
    socklen_t size;

    signal(SIGTERM, on_sigterm);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    sll.sll_ifindex = if_nametoindex(argv[1]);
    if (fd < 0 || bind(fd, (struct sockaddr *) &sll, sizeof sll)) {
        die(argv[1]);
    }
    while (!stopped && now_ms() < end) {
        ssize_t n;

        if (poll(&pfd, 1, INTERVAL_MS) <= 0) {
            continue;
        }
        size = sizeof sll;
        n = recvfrom(fd, data, sizeof data, 0, (struct sockaddr *) &sll,
                     &size);
        if (sll.sll_pkttype != PACKET_OUTGOING) {
            n_wrong += see((const uint8_t *) data, n);
        }
    }
    for (int port = 0; port < 65536; port++) {
        for (int i = 0; i < 64; i++) {
            if (seen[port][i]) {
                printf("%d %d %"PRIu64"\n", port, i, seen[port][i]);
            }
        }
    }
    return n_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
main(int argc, char *argv[])
{
    static const struct {
        const char *name;
        int min_args;
        int (*run)(int argc, char *argv[]);
    } modes[] = {
        { "sink", 2, sink },     { "sink-each", 2, sink_each },
        { "source", 6, source }, { "bulk", 3, bulk },
        { "drip", 4, drip },     { "echo", 2, echo },
        { "ping", 4, ping },     { "beat", 4, beat },
        { "flood", 4, flood },   { "blast", 4, blast },
        { "dscp", 2, dscp },
    };

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (argc - 2 >= modes[i].min_args && !strcmp(argv[1], modes[i].name)) {
            return modes[i].run(argc - 2, argv + 2);
        }
    }
    fputs("usage: see the top of tests/lab/traffic.c\n", stderr);
    return 2;
}
