/* SPDX-License-Identifier: Apache-2.0 */

/* Samples a queue of the kernel.
 *
 *    queue-sample IFACE HANDLE MS US [MBIT]
 *        Reads the backlog of the qdisc with major number HANDLE
 *        (hexadecimal) of IFACE every US microseconds, for MS milliseconds,
 *        and prints
 *            samples N p50 BYTES p99 BYTES max BYTES sent BYTES us TIME
 *        where "sent" are the bytes that left it in TIME microseconds.  If
 *        MBIT, its rate in Mbit/s, is given,
 *            unserved BYTES
 *        follow: the most that it did not send at this rate while its queue
 *        was longer than LONG_QUEUE.  This measures how long the machine, not
 *        the senders, stopped the queue. */

#include <errno.h>
#include <inttypes.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_SAMPLES 200000
#define LONG_QUEUE 16384        /* Bytes. */

struct sample {
    int64_t begun, ended;       /* Times around the measurement. */
    uint32_t backlog;
    uint64_t sent;
};

static int64_t
now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static int
die(const char *what)
{
    fprintf(stderr, "queue-sample: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static void
read_stats(const struct rtattr *stats, struct sample *s)
{
    const struct rtattr *a = RTA_DATA(stats);
    int left = RTA_PAYLOAD(stats);

    for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == TCA_STATS_QUEUE) {
            struct gnet_stats_queue q;

            memcpy(&q, RTA_DATA(a), sizeof q);
            s->backlog = q.backlog;
        } else if (a->rta_type == TCA_STATS_BASIC) {
            struct gnet_stats_basic b;

            memcpy(&b, RTA_DATA(a), sizeof b);
            s->sent = b.bytes;
        }
    }
}

/* Reads one message.  Returns true if it was about the qdisc 'handle' of
 * 'ifindex'. */
static bool
read_message(const struct nlmsghdr *h, int ifindex, uint32_t handle,
             struct sample *s)
{
    const struct tcmsg *tc = NLMSG_DATA(h);
    const struct rtattr *a = TCA_RTA(tc);
    int left = h->nlmsg_len - NLMSG_LENGTH(sizeof *tc);

    if (h->nlmsg_type != RTM_NEWQDISC || tc->tcm_ifindex != ifindex
        || TC_H_MAJ(tc->tcm_handle) != handle) {
        return false;
    }
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == TCA_STATS2) {
            read_stats(a, s);
        }
    }
    return true;
}

static bool
read_sample(int fd, int ifindex, uint32_t handle, struct sample *s)
{
    struct {
        struct nlmsghdr h;
        struct tcmsg tc;
    } request = {
        .h = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_GETQDISC,
               .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex },
    };
    static char buffer[32768];
    bool found = false;

    s->begun = now_us();
    if (send(fd, &request, sizeof request, 0) < 0) {
        die("send");
    }
    for (;;) {
        ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        struct nlmsghdr *h = (struct nlmsghdr *) buffer;

        if (n <= 0) {
            die("recv");
        }
        for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
            if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) {
                s->ended = now_us();
                return found;
            }
            found |= read_message(h, ifindex, handle, s);
        }
    }
}

/* Returns the bytes that a queue which sends 'mbit' Mbit/s did not send from
 * 'from', its last sample before it became long, to 's'.  The times are chosen
 * so that it is not more than that if this program stopped in between. */
static int64_t
unserved(const struct sample *from, const struct sample *s, int mbit)
{
    return (s->begun - from->ended) * mbit / 8 - (int64_t) (s->sent
                                                           - from->sent);
}

static int
by_size(const void *a_, const void *b_)
{
    const uint32_t *a = a_, *b = b_;

    return *a < *b ? -1 : *a > *b;
}

int
main(int argc, char *argv[])
{
    static uint32_t backlogs[MAX_SAMPLES];
    struct sample first = { 0 }, s = { 0 }, from;
    int64_t begin = now_us(), end, us, most = 0;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), n = 0, ifindex;
    int mbit = argc == 6 ? atoi(argv[5]) : 0;
    uint32_t handle;

    if (argc != 5 && argc != 6) {
        fputs("usage: see the top of tests/lab/queue-sample.c\n", stderr);
        return 2;
    }
    ifindex = if_nametoindex(argv[1]);
    handle = strtoul(argv[2], NULL, 16) << 16;
    us = atoi(argv[4]);
    if (!ifindex || !read_sample(fd, ifindex, handle, &first)) {
        die(argv[1]);
    }
    from = first;
    end = begin + atoi(argv[3]) * INT64_C(1000);
    while (now_us() < end && n < MAX_SAMPLES) {
        read_sample(fd, ifindex, handle, &s);
        backlogs[n++] = s.backlog;
        if (s.backlog <= LONG_QUEUE) {
            from = s;
        } else if (unserved(&from, &s, mbit) > most) {
            most = unserved(&from, &s, mbit);
        }
        usleep(us);
    }
    qsort(backlogs, n, sizeof *backlogs, by_size);
    printf("samples %d p50 %"PRIu32" p99 %"PRIu32" max %"PRIu32
           " sent %"PRIu64" us %"PRId64, n, backlogs[n / 2],
           backlogs[n * 99 / 100], backlogs[n - 1], s.sent - first.sent,
           now_us() - begin);
    if (mbit) {
        printf(" unserved %"PRId64, most);
    }
    putchar('\n');
    return EXIT_SUCCESS;
}
