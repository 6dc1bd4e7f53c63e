/* SPDX-License-Identifier: Apache-2.0 */

/* Measures, in a lab, the time from the beginning or end of a stage to the
 * first packet with the new DSCP of each host.
 *
 *     fanout-retag INTENT ROUNDS HOSTS IFACE...
 *
 * Cojob "a" has a stage all the time.  In each round cojob "b" has a short
 * stage, which is ordered first: the DSCP of "a" changes on each of HOSTS
 * hosts (h0, h1, ...) when that stage begins, and again when it ends.  IFACEs
 * are the switch's ports of these hosts; packets to TCP port 7001 that arrive
 * there belong to "a".  Prints the milliseconds of each host, one number per
 * line.
 *
 * Uses the kernel's receive timestamps, so that delays of the reader do not
 * count. */

#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "controller/intent/intent-client.h"
#include "openvswitch/vlog.h"
#include "util.h"
#include "wire/announce.h"

#define PORT 7001
#define MAX_PORTS 64
#define TIMEOUT_MS 5000
#define PAUSE_MS 400            /* More than the policy's retag_ms. */
#define ROUND_MS 3000

struct port {
    int fd;
    int dscp;                   /* DSCP of the last packet, -1 before the
                                 * first. */
    int old;                    /* DSCP before the event. */
    int64_t changed;            /* Time of the first packet with a new DSCP,
                                 * ns; 0: not yet. */
};

struct probe {
    struct port ports[MAX_PORTS];
    int n;
    int64_t began;              /* Time of the event, CLOCK_REALTIME in ns. */
};

static int64_t
now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static int
open_port(const char *iface)
{
    struct sockaddr_ll sll = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
        .sll_ifindex = if_nametoindex(iface),
    };
    int fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP)), one = 1;

    if (fd < 0 || !sll.sll_ifindex
        || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one)
        || bind(fd, (struct sockaddr *) &sll, sizeof sll)) {
        ovs_fatal(errno, "%s", iface);
    }
    return fd;
}

/* Returns the DSCP of a packet of "a", or -1 for other packets. */
static int
parse(const uint8_t *data, ssize_t n)
{
    struct tcphdr tcp;
    struct iphdr ip;

    if (n < (ssize_t) (sizeof ip + sizeof tcp)) {
        return -1;
    }
    memcpy(&ip, data, sizeof ip);
    if (ip.protocol != IPPROTO_TCP
        || n < (ssize_t) (ip.ihl * 4 + sizeof tcp)) {
        return -1;
    }
    memcpy(&tcp, data + ip.ihl * 4, sizeof tcp);
    return ntohs(tcp.dest) == PORT ? ip.tos >> 2 : -1;
}

static int64_t
arrival(struct msghdr *msg)
{
    struct cmsghdr *cmsg;
    struct timespec ts;

    for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
        if (cmsg->cmsg_level == SOL_SOCKET
            && cmsg->cmsg_type == SCM_TIMESTAMPNS) {
            memcpy(&ts, CMSG_DATA(cmsg), sizeof ts);
            return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
        }
    }
    return now_ns();
}

/* Reads one packet.  Returns false without a packet. */
static bool
receive(const struct probe *probe, struct port *port)
{
    char control[CMSG_SPACE(sizeof(struct timespec))];
    struct sockaddr_ll from;
    uint8_t data[128];
    struct iovec iov = { data, sizeof data };
    struct msghdr msg = {
        .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov,
        .msg_iovlen = 1, .msg_control = control,
        .msg_controllen = sizeof control,
    };
    ssize_t n = recvmsg(port->fd, &msg, MSG_DONTWAIT);
    int dscp;

    if (n < 0) {
        return false;
    }
    dscp = from.sll_pkttype == PACKET_OUTGOING ? -1 : parse(data, n);
    if (dscp >= 0) {
        int64_t at = arrival(&msg);

        if (dscp != port->old && !port->changed && at > probe->began) {
            port->changed = at;
        }
        port->dscp = dscp;
    }
    return true;
}

static int
count_changed(const struct probe *probe)
{
    int n = 0;

    for (int i = 0; i < probe->n; i++) {
        n += probe->ports[i].changed != 0;
    }
    return n;
}

/* Reads for 'ms', or until all ports have changed if 'until_changed'. */
static void
receive_for(struct probe *probe, int ms, bool until_changed)
{
    int64_t deadline = now_ns() + ms * INT64_C(1000000);
    struct pollfd pfds[MAX_PORTS];

    while (now_ns() < deadline
           && !(until_changed && count_changed(probe) == probe->n)) {
        for (int i = 0; i < probe->n; i++) {
            pfds[i] = (struct pollfd) { probe->ports[i].fd, POLLIN, 0 };
        }
        poll(pfds, probe->n, 5);
        for (int i = 0; i < probe->n; i++) {
            while (receive(probe, &probe->ports[i])) {
                continue;
            }
        }
    }
}

static void
write_edit(struct intent_client *ic, struct intent_edit edit)
{
    char *error = intent_client_write(ic, &edit, NULL);

    if (error) {
        ovs_fatal(0, "%s", error);
    }
}

/* Prepares for the next event. */
static void
begin_event(struct probe *probe)
{
    receive_for(probe, PAUSE_MS, false);
    for (int i = 0; i < probe->n; i++) {
        struct port *port = &probe->ports[i];

        if (port->dscp < 0) {
            ovs_fatal(0, "port %d: no packet of the job", i);
        }
        port->old = port->dscp;
        port->changed = 0;
    }
    probe->began = now_ns();
}

/* Waits until all DSCPs change, and prints the delays. */
static void
end_event(struct probe *probe, const char *what)
{
    receive_for(probe, ROUND_MS, true);
    for (int i = 0; i < probe->n; i++) {
        const struct port *port = &probe->ports[i];

        if (!port->changed) {
            ovs_fatal(0, "%s: port %d has still DSCP %d", what, i,
                      port->dscp);
        }
        printf("%.2f\n", (port->changed - probe->began) / 1e6);
    }
    fflush(stdout);
}

/* Announces cojob 'name' with job "j" on all hosts. */
static void
begin_job(struct intent_client *ic, const char *name, int n_hosts)
{
    struct intent_worker *workers = xcalloc(n_hosts, sizeof *workers);
    char (*hosts)[16] = xcalloc(n_hosts, sizeof *hosts);

    for (int i = 0; i < n_hosts; i++) {
        snprintf(hosts[i], sizeof hosts[i], "h%d", i);
        workers[i] = (struct intent_worker) {
            .host = hosts[i], .role = "worker", .index = i,
        };
    }
    write_edit(ic, (struct intent_edit) {
        .kind = INTENT_COJOB_BEGIN, .cojob = name, .weight = 1,
    });
    write_edit(ic, (struct intent_edit) {
        .kind = INTENT_JOB_BEGIN, .cojob = name, .job = "j",
        .workers = workers, .n = n_hosts, .model_bytes = 1000000,
    });
    free(hosts);
    free(workers);
}

int
main(int argc, char *argv[])
{
    static const char *const jobs[] = { "j" };
    struct probe probe = { .n = argc - 4 };
    struct intent_client *ic;

    set_program_name(argv[0]);
    if (probe.n < 1 || probe.n > MAX_PORTS || atoi(argv[2]) < 1) {
        fputs("usage: fanout-retag INTENT ROUNDS HOSTS IFACE...\n", stderr);
        return 2;
    }
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    alarm(150);                 /* Limits the run time. */
    for (int i = 0; i < probe.n; i++) {
        probe.ports[i] = (struct port) { .fd = open_port(argv[4 + i]),
                                         .dscp = -1 };
    }
    ic = intent_client_create(argv[1], TIMEOUT_MS);
    begin_job(ic, "a", atoi(argv[3]));
    begin_job(ic, "b", atoi(argv[3]));
    write_edit(ic, (struct intent_edit){
                       .kind = INTENT_STAGE_BEGIN,
                       .cojob = "a",
                       .rungs = &(struct search_rung){ 10000, 1 },
                       .n_rungs = 1,
                       .jobs = jobs,
                       .n = 1,
                   });
    receive_for(&probe, ROUND_MS, false);
    for (int round = 0; round < atoi(argv[2]); round++) {
        begin_event(&probe);
        write_edit(ic, (struct intent_edit){
                           .kind = INTENT_STAGE_BEGIN,
                           .cojob = "b",
                           .rung = round,
                           .rungs = &(struct search_rung){ 10, 1 },
                           .n_rungs = 1,
                           .jobs = jobs,
                           .n = 1,
                       });
        end_event(&probe, "begin");
        begin_event(&probe);
        write_edit(ic, (struct intent_edit) {
            .kind = INTENT_STAGE_END, .cojob = "b", .rung = round,
        });
        end_event(&probe, "end");
    }
    return 0;
}
