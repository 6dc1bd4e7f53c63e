/* SPDX-License-Identifier: Apache-2.0 */

/* A link between two interfaces that is slow in one direction, and marks
 * congestion there, as a switch with ECN does.
 *
 *    ce-link A B MBIT MARK LIMIT
 *        Passes frames that arrive at A on to B at MBIT Mbit/s, through a
 *        queue of LIMIT bytes, and those that arrive at B on to A at once.  If
 *        more than MARK bytes are queued, marks ECN-capable frames (CE).
 *        Prints, when SIGTERM ends it,
 *            passed N  able N  marked N  dropped N
 *        where "able" are those of A that could be marked. */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define MAX_FRAME 10000
#define SLOTS 4096

struct frame {
    size_t length;
    uint8_t data[MAX_FRAME];
};

static struct frame queue[SLOTS];
static unsigned int head, tail;         /* Of the queue; they wrap around. */
static size_t waiting;                  /* Bytes in it. */
static uint64_t passed, able, marked, dropped;
static volatile sig_atomic_t over;

static void
end(int signal)
{
    over = 1;
}

static int64_t
now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static int
open_port(const char *name)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
    int one = 1, buffer = 4 << 20;
    struct sockaddr_ll sll = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = if_nametoindex(name),
    };

    if (fd < 0 || !sll.sll_ifindex
        || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one,
                      sizeof one)
        || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer)
        || setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer)
        || bind(fd, (struct sockaddr *) &sll, sizeof sll)) {
        fprintf(stderr, "ce-link: %s: %s\n", name, strerror(errno));
        exit(EXIT_FAILURE);
    }
    return fd;
}

/* Counts an ECN-capable IP packet, and marks it if 'must'. */
static void
mark(uint8_t *ip, bool must)
{
    bool v6 = ip[0] >> 4 == 6;
    uint8_t ecn = v6 ? ip[1] >> 4 & 3 : ip[1] & 3;

    able += ecn != 0;
    if (!ecn || !must) {
        return;
    }
    marked++;
    if (v6) {
        ip[1] |= 3 << 4;
    } else {
        uint32_t sum = (uint16_t) ~(ip[10] << 8 | ip[11]);

        /* RFC 1624: subtracts the old word and adds the new one. */
        sum += (uint16_t) ~(ip[0] << 8 | ip[1]);
        ip[1] |= 3;
        sum += ip[0] << 8 | ip[1];
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        ip[10] = ~sum >> 8;
        ip[11] = ~sum;
    }
}

/* Queues the frames that have arrived at 'fd'. */
static void
take(int fd, size_t mark_bytes, size_t limit)
{
    for (;;) {
        struct frame *f = &queue[tail % SLOTS];
        ssize_t n = recv(fd, f->data, sizeof f->data, 0);
        uint16_t type;

        if (n < ETH_HLEN + 20) {
            if (n < 0) {
                return;
            }
            continue;
        }
        if (waiting + n > limit || tail - head == SLOTS - 1) {
            dropped++;
            continue;
        }
        type = f->data[12] << 8 | f->data[13];
        if (type == ETH_P_IP || type == ETH_P_IPV6) {
            mark(f->data + ETH_HLEN, waiting > mark_bytes);
        }
        f->length = n;
        waiting += n;
        tail++;
    }
}

static void
pass(int from, int to)
{
    static uint8_t data[MAX_FRAME];
    ssize_t n;

    while ((n = recv(from, data, sizeof data, 0)) > 0) {
        if (send(to, data, n, 0) != n) {
            dropped++;
        }
    }
}

int
main(int argc, char *argv[])
{
    struct sigaction action = { .sa_handler = end };
    int64_t free_at = 0;
    struct pollfd fds[2];
    double ns;

    if (argc != 6) {
        fputs("usage: ce-link A B MBIT MARK LIMIT\n", stderr);
        return EXIT_FAILURE;
    }
    sigaction(SIGTERM, &action, NULL);
    for (int i = 0; i < 2; i++) {
        fds[i] = (struct pollfd) {
            .fd = open_port(argv[1 + i]), .events = POLLIN,
        };
    }
    ns = 8000 / atof(argv[3]);          /* To send a byte. */
    while (!over) {
        int64_t now = now_ns();
        struct timespec ts = { 0, 100000000 };

        take(fds[0].fd, atol(argv[4]), atol(argv[5]));
        pass(fds[1].fd, fds[0].fd);
        /* Compensates up to a millisecond of delay of this thread. */
        free_at = free_at < now - 1000000 ? now - 1000000 : free_at;
        while (head != tail && free_at <= now) {
            const struct frame *f = &queue[head++ % SLOTS];

            free_at += f->length * ns;
            waiting -= f->length;
            passed++;
            if (send(fds[1].fd, f->data, f->length, 0) < 0) {
                dropped++;
            }
        }
        if (head != tail) {
            ts.tv_nsec = free_at > now ? free_at - now : 0;
        }
        ppoll(fds, 2, &ts, NULL);
    }
    printf("passed %"PRIu64"  able %"PRIu64"  marked %"PRIu64
           "  dropped %"PRIu64"\n", passed, able, marked, dropped);
    return EXIT_SUCCESS;
}
