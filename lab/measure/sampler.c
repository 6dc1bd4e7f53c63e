/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/measure/sampler.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "lab/cluster/cluster.h"
#include "lab/cluster/fabric.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/poll-loop.h"
#include "reporting/report.h"
#include "shim/ports/route-socket.h"
#include "timeval.h"
#include "util.h"

/* How long the queues of the fabric's ports are.
 *
 * A sample is the number of bytes that wait at one port, in all its queues.
 * All samples of all ports together are one distribution: a queue that is long
 * at one of ten ports for a tenth of the time is its 99th percentile.
 *
 *    qw = queue_watch_create(fabric_ns);
 *    ...repeatedly: queue_watch_sample(qw)...
 *    p99 = queue_watch_quantile(qw, 0.99);
 *    queue_watch_destroy(qw);
 *
 * Main thread only. */

#define BIN_BYTES 1000
#define N_BINS 4096 /* The last one has all longer queues. */

struct queue_watch {
    struct route_socket *rs;  /* NULL without netlink. */
    uint64_t samples[N_BINS]; /* By backlog, rounded up to BIN_BYTES. */
    uint64_t n;
};

static int
open_socket(void *qw_)
{
    struct queue_watch *qw = qw_;

    return route_socket_open(-1, &qw->rs);
}

static struct queue_watch *
queue_watch_create(const char *ns)
{
    struct queue_watch *qw = xzalloc(sizeof *qw);

    netns_call(ns, open_socket, qw);
    return qw;
}

static void
queue_watch_destroy(struct queue_watch *qw)
{
    if (qw) {
        route_socket_close(qw->rs);
        free(qw);
    }
}

/* Adds a sample if the message is about the HTB of a port.  The backlog of an
 * HTB is the sum of its queues. */
static int
read_message(const struct nlmsghdr *nlh, void *qw_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    struct queue_watch *qw = qw_;
    struct gnet_stats_queue q = { .backlog = 0 };

    if (nlh->nlmsg_type == RTM_NEWQDISC && tc->tcm_parent == TC_H_ROOT
        && TC_H_MAJ(tc->tcm_handle) == 1 << 16) {
        route_attr_copy(
            route_attr_in(route_attr(nlh, TCA_STATS2), TCA_STATS_QUEUE), &q,
            sizeof q);
        qw->samples[MIN(DIV_ROUND_UP(q.backlog, BIN_BYTES), N_BINS - 1)]++;
        qw->n++;
    }
    return MNL_CB_OK;
}

/* Adds a sample of each port. */
static void
queue_watch_sample(struct queue_watch *qw)
{
    if (qw->rs) {
        route_socket_list_tc(qw->rs, RTM_GETQDISC, 0, 0, read_message, qw);
    }
}

static double
queue_watch_quantile(const struct queue_watch *qw, double q)
{
    uint64_t until = ceil(q * qw->n), n = 0;

    for (int i = 0; i < N_BINS; i++) {
        n += qw->samples[i];
        if (n && n >= until) {
            return (double) i * BIN_BYTES;
        }
    }
    return NAN;
}

#define SAMPLE_MS 500
#define QUEUE_MS 50             /* Between two samples of the queues. */

#define ASK_MS 3000 /* Timeout of a call of an agent. */

#define MAX_COUNTERS                                    \
    16384 /* Size limit of /proc/net/netstat, which has \
           * about 6,000 bytes, and of .../snmp. */

static char netstat_file[] = "/proc/thread-self/net/netstat";
static char snmp_file[] = "/proc/thread-self/net/snmp";

/* The kernel's counters of TCP, of each network namespace. */
enum tcp_counter { TIMEOUTS, RETRANSMITTED, SENT, N_TCP_COUNTERS };
static const struct {
    char *file;
    const char *group, *name;
} tcp_counters[] = {
    [TIMEOUTS] = { netstat_file, "TcpExt", "TCPTimeouts" },
    /* Segments, and those that had new data. */
    [RETRANSMITTED] = { snmp_file, "Tcp", "RetransSegs" },
    [SENT] = { netstat_file, "TcpExt", "TCPOrigDataSent" },
};

/* Bytes that a host sent and received through its port of the fabric. */
struct port_bytes {
    uint64_t up, down;
};

struct sampled_host {
    struct port_bytes now, before;  /* At the last two samples. */
    int counters[N_TCP_COUNTERS];   /* Its file with each, negative if not
                                     * readable. */
    uint64_t start[N_TCP_COUNTERS]; /* Their values at the start. */
};

struct sampler {
    const struct plan *plan;
    struct report_policy *policy;
    long long begin_ms;         /* time_msec() of second 0. */
    long long last_ms;          /* Monotonic time of the last sample. */
    long long queues_ms;        /* The same of the queues. */
    struct queue_watch *queues;
    int ports;                  /* /proc/net/dev of the fabric, negative if
                                 * not readable. */
    struct sampled_host *hosts;
    float *use;                 /* Use of each port, 0 to 1; two ports per
                                 * host. */
    uint64_t busy, total;       /* CPU times at the start, in ticks. */
};

/* The file keeps reporting the namespace in which it was opened. */
static int
open_file(void *name)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Reads at most 'size' bytes from the start of 'fd', which generates the
 * contents again, into 'text', which must have space for a null byte too.
 * Returns their number. */
static size_t
read_again(int fd, char *text, size_t size)
{
    size_t used = 0;
    ssize_t n;

    lseek(fd, 0, SEEK_SET);
    while (used < size && (n = read(fd, text + used, size - used)) > 0) {
        used += n;
    }
    text[used] = '\0';
    return used;
}

static void
read_ports(struct sampler *s)
{
    size_t size = 1024 + 256 * (s->plan->n_hosts + 4);
    char *text = xmalloc(size + 1);
    char *save = NULL;

    read_again(s->ports, text, size);
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        unsigned long long rx, tx;
        int port;

        if (sscanf(line, " p%d: %llu %*u %*u %*u %*u %*u %*u %*u %llu",
                   &port, &rx, &tx) == 3
            && port >= 0 && port < s->plan->n_hosts) {
            s->hosts[port].now = (struct port_bytes) { rx, tx };
        }
    }
    free(text);
}

/* Returns the line after 'line', or NULL. */
static const char *
next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end && end[1] ? end + 1 : NULL;
}

bool
sampler_find_counter(const char *text, const char *group, const char *name,
                     uint64_t *value)
{
    size_t n_group = strlen(group), n_name = strlen(name);
    const char *p, *v;

    for (const char *names = text; names; names = next_line(names)) {
        const char *values = next_line(names);

        if (!values || strncmp(names, group, n_group) || names[n_group] != ':'
            || strncmp(values, names, n_group + 1)) {
            continue;
        }
        p = names + n_group + 1;
        v = values + n_group + 1;
        while (*p == ' ' && *v == ' ') {
            size_t length = strcspn(++p, " \n");

            v++;
            if (length == n_name && !strncmp(p, name, length)) {
                char *end;

                errno = 0;
                *value = strtoull(v, &end, 10);
                return end > v && !errno;
            }
            p += length;
            v += strcspn(v, " \n");
        }
    }
    return false;
}

static bool
read_tcp(const struct sampled_host *host, enum tcp_counter i, uint64_t *value)
{
    char text[MAX_COUNTERS + 1];

    if (host->counters[i] < 0) {
        return false;
    }
    read_again(host->counters[i], text, MAX_COUNTERS);
    return sampler_find_counter(text, tcp_counters[i].group,
                                tcp_counters[i].name, value);
}

/* Returns by how much a counter of all hosts has grown since the start, NAN if
 * it is unknown. */
static double
count_tcp(const struct sampler *s, enum tcp_counter i)
{
    double sum = 0;

    for (int h = 0; h < s->plan->n_hosts; h++) {
        uint64_t now;

        if (!read_tcp(&s->hosts[h], i, &now)) {
            return NAN;
        }
        sum += now - s->hosts[h].start[i];
    }
    return sum;
}

static void
finish_tcp(const struct sampler *s)
{
    double again = count_tcp(s, RETRANSMITTED);

    s->policy->tcp_timeouts = count_tcp(s, TIMEOUTS);
    s->policy->retransmitted_share = again / (again + count_tcp(s, SENT));
}

/* Reads the CPU times of all CPUs, in ticks, from /proc/stat. */
static void
read_processors(uint64_t *busy, uint64_t *total)
{
    unsigned long long t[8] = { 0 };
    FILE *stream = fopen("/proc/stat", "re");

    *busy = *total = 0;
    if (stream) {
        if (fscanf(stream, "cpu %llu %llu %llu %llu %llu %llu %llu %llu",
                   &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6],
                   &t[7]) == 8) {
            for (int i = 0; i < 8; i++) {
                *total += t[i];
            }
            *busy = *total - t[3] - t[4];       /* Idle, waiting for I/O. */
        }
        fclose(stream);
    }
}

/* Names the ports: "h0 up" is the direction from host h0. */
static void
name_ports(const struct plan *plan, struct report_policy *policy)
{
    size_t n = 2 * plan->n_hosts;
    char **names = xcalloc(n, sizeof *names);

    for (int i = 0; i < plan->n_hosts; i++) {
        names[2 * i] = xasprintf("h%d up", i);
        names[2 * i + 1] = xasprintf("h%d down", i);
    }
    report_set_ports(policy, (const char *const *) names, n);
    free_strings(names, n);
}

struct sampler *
sampler_create(const struct plan *plan, struct report_policy *policy,
               long long begin_ms)
{
    static char dev[] = "/proc/thread-self/net/dev";
    struct sampler *s = xzalloc(sizeof *s);

    s->plan = plan;
    s->policy = policy;
    s->begin_ms = begin_ms;
    s->hosts = xcalloc(plan->n_hosts, sizeof *s->hosts);
    s->use = xcalloc(2 * plan->n_hosts, sizeof *s->use);
    s->ports = netns_call(plan->fabric_ns, open_file, dev);
    for (int i = 0; i < plan->n_hosts; i++) {
        struct sampled_host *host = &s->hosts[i];

        for (int j = 0; j < N_TCP_COUNTERS; j++) {
            host->counters[j] =
                netns_call(plan->hosts[i].ns, open_file, tcp_counters[j].file);
            read_tcp(host, j, &host->start[j]);
        }
    }
    s->queues = queue_watch_create(plan->fabric_ns);
    s->last_ms = s->queues_ms = time_msec();
    name_ports(plan, policy);
    if (s->ports >= 0) {
        read_ports(s);
    }
    read_processors(&s->busy, &s->total);
    return s;
}

void
sampler_destroy(struct sampler *s)
{
    if (s) {
        for (int i = 0; i < s->plan->n_hosts; i++) {
            for (int j = 0; j < N_TCP_COUNTERS; j++) {
                if (s->hosts[i].counters[j] >= 0) {
                    close(s->hosts[i].counters[j]);
                }
            }
        }
        if (s->ports >= 0) {
            close(s->ports);
        }
        queue_watch_destroy(s->queues);
        free(s->hosts);
        free(s->use);
        free(s);
    }
}

bool
sampler_run(struct sampler *s)
{
    long long ms = time_msec();
    double capacity;            /* Bytes since the last sample. */

    if (ms >= s->queues_ms + QUEUE_MS) {
        queue_watch_sample(s->queues);
        s->queues_ms = ms;
    }
    if (ms < s->last_ms + SAMPLE_MS || s->ports < 0) {
        return false;
    }
    capacity = s->plan->rate_bps / 8.0 * (ms - s->last_ms) / 1000;
    for (int i = 0; i < s->plan->n_hosts; i++) {
        s->hosts[i].before = s->hosts[i].now;
    }
    read_ports(s);
    for (int i = 0; i < s->plan->n_hosts; i++) {
        const struct sampled_host *host = &s->hosts[i];

        s->use[2 * i] = (host->now.up - host->before.up) / capacity;
        s->use[2 * i + 1] = (host->now.down - host->before.down) / capacity;
    }
    report_links(s->policy, (ms - s->begin_ms) / 1000.0, s->use);
    s->last_ms = ms;
    return true;
}

void
sampler_wait(struct sampler *s)
{
    poll_timer_wait_until(MIN(s->last_ms + SAMPLE_MS,
                              s->queues_ms + QUEUE_MS));
}

uint64_t
sampler_moved(const struct sampler *s, int host)
{
    const struct sampled_host *h = &s->hosts[host];

    return h->now.up - h->before.up + h->now.down - h->before.down;
}

/* Returns the mean CPU load since the first sample, 0 to 1, NAN before it. */
static double
cpu_load(const struct sampler *s)
{
    uint64_t busy, total;

    read_processors(&busy, &total);
    return total > s->total
           ? (double) (busy - s->busy) / (total - s->total) : NAN;
}

/* Stores the share of the hosts' IP bytes that was sent in the class of a job.
 * Agents count since they started.  One that does not reply does not count. */
static void
finish_agents(struct sampler *s)
{
    double ip = 0, untagged = 0;

    for (int i = 0; i < s->plan->n_hosts; i++) {
        cJSON *status = cluster_ask_agent(s->plan, i, "agent/status", ASK_MS);

        if (status) {
            ip +=
                cJSON_GetNumberValue(cJSON_GetObjectItem(status, "ip_bytes"));
            untagged += cJSON_GetNumberValue(
                cJSON_GetObjectItem(status, "default_bytes"));
        }
        cJSON_Delete(status);
    }
    if (ip > 0) {
        s->policy->coverage = 1 - untagged / ip;
    }
}

/* Level 0 is ARP, level 7 is unclassified traffic. */
static void
finish_fabric(struct sampler *s)
{
    uint64_t bytes[8];
    char *error = fabric_level_bytes(s->plan, bytes);
    double tagged = 0;

    for (int level = 1; !error && level < 7; level++) {
        tagged += bytes[level];
    }
    if (!error && tagged + bytes[7] > 0) {
        s->policy->coverage_fabric = tagged / (tagged + bytes[7]);
    }
    free(error);
}

void
sampler_finish(struct sampler *s)
{
    finish_agents(s);
    s->policy->cpu_busy = cpu_load(s);
    finish_tcp(s);
    s->policy->queue_p99_bytes = queue_watch_quantile(s->queues, 0.99);
    finish_fabric(s);
}
