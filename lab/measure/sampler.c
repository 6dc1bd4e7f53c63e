/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/measure/sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reporting/report.h"
#include "lab/cluster/cgroup-tree.h"
#include "lab/cluster/fabric.h"
#include "lab/cluster/plan.h"
#include "lab/measure/shim-stats.h"
#include "lab/measure/tcp-counters.h"
#include "openvswitch/poll-loop.h"
#include "timeval.h"
#include "util.h"

#define SAMPLE_MS 500

struct sampler {
    const struct plan *plan;
    struct report_policy *policy;
    long long epoch_ms;
    long long last_ms;          /* Monotonic time of the last sample. */
    int fd;                     /* Argument of fabric_counters_read(), negative
                                 * if unavailable. */
    struct fabric_counters *now, *before;
    float *use;                 /* Use of each port, 0 to 1; two ports per
                                 * host. */
    uint64_t busy, total;       /* CPU times at the start, in ticks. */
    struct shim_watch *shims;
    struct tcp_counters *tcp;
};

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
    for (size_t i = 0; i < n; i++) {
        free(names[i]);
    }
    free(names);
}

struct sampler *
sampler_create(const struct plan *plan, struct report_policy *policy,
               long long epoch_ms)
{
    struct sampler *s = xzalloc(sizeof *s);

    s->plan = plan;
    s->policy = policy;
    s->epoch_ms = epoch_ms;
    s->now = xcalloc(plan->n_hosts, sizeof *s->now);
    s->before = xcalloc(plan->n_hosts, sizeof *s->before);
    s->use = xcalloc(2 * plan->n_hosts, sizeof *s->use);
    s->fd = fabric_counters_open(plan);
    s->shims = shim_watch_create(plan);
    s->tcp = tcp_counters_create(plan);
    s->last_ms = time_msec();
    name_ports(plan, policy);
    if (s->fd >= 0) {
        fabric_counters_read(plan, s->fd, s->now);
    }
    read_processors(&s->busy, &s->total);
    return s;
}

void
sampler_destroy(struct sampler *s)
{
    if (s) {
        if (s->fd >= 0) {
            close(s->fd);
        }
        shim_watch_destroy(s->shims);
        tcp_counters_destroy(s->tcp);
        free(s->now);
        free(s->before);
        free(s->use);
        free(s);
    }
}

bool
sampler_run(struct sampler *s)
{
    long long ms = time_msec();
    double capacity;            /* Bytes since the last sample. */

    if (ms < s->last_ms + SAMPLE_MS || s->fd < 0) {
        return false;
    }
    capacity = s->plan->rate_bps / 8.0 * (ms - s->last_ms) / 1000;
    memcpy(s->before, s->now, s->plan->n_hosts * sizeof *s->now);
    fabric_counters_read(s->plan, s->fd, s->now);
    for (int i = 0; i < s->plan->n_hosts; i++) {
        s->use[2 * i] = (s->now[i].up_bytes - s->before[i].up_bytes)
                        / capacity;
        s->use[2 * i + 1] = (s->now[i].down_bytes - s->before[i].down_bytes)
                            / capacity;
    }
    report_links(s->policy, (time_wall_msec() - s->epoch_ms) / 1000.0,
                 s->use);
    shim_watch_run(s->shims);
    s->last_ms = ms;
    return true;
}

void
sampler_wait(struct sampler *s)
{
    poll_timer_wait_until(s->last_ms + SAMPLE_MS);
}

uint64_t
sampler_moved(const struct sampler *s, int host)
{
    return (s->now[host].up_bytes - s->before[host].up_bytes)
           + (s->now[host].down_bytes - s->before[host].down_bytes);
}

double
sampler_cpu(const struct sampler *s)
{
    uint64_t busy, total;

    read_processors(&busy, &total);
    return total > s->total
           ? (double) (busy - s->busy) / (total - s->total) : NAN;
}

static double
tree_seconds(const struct plan *plan, const char *part)
{
    char *path = xasprintf("%s/%s", plan->cgroup, part);
    double seconds = cgroup_tree_cpu_us(path) / 1e6;

    free(path);
    return seconds;
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
    uint64_t ip, untagged, dropped;

    shim_watch_run(s->shims);
    shim_watch_totals(s->shims, &ip, &untagged, &dropped);
    if (ip) {
        s->policy->coverage = 1 - (double) untagged / ip;
    }
    s->policy->cpu_busy = sampler_cpu(s);
    s->policy->cpu_daemons_s = tree_seconds(s->plan, "daemons");
    s->policy->cpu_jobs_s = tree_seconds(s->plan, "hosts");
    s->policy->tcp_timeouts = tcp_counters_timeouts(s->tcp);
    finish_fabric(s);
}
