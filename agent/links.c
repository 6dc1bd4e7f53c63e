/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/links.h"

#include <arpa/inet.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/identify/registry.h"
#include "agent/identify/sock-diag.h"
#include "agent/identify/tracker.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "util.h"
#include "wire/json-put.h"

#define SAMPLE_MS 1000
#define FRESH_MS 2000           /* Maximum age of a connection's last ACK,
                                 * in ms.  The TCP statistics of older
                                 * connections are ignored. */
#define ACTIVE_BPS 1000         /* Jobs that send less than this (bit/s) do
                                 * not count as competing for the uplink. */
#define DEFAULT_MIN_SHARE (1.0 / 21)        /* Minimum share of a level, if the
                                 * controller has not set one. */

void
links_sample(struct links *links, const struct registry *registry,
             long long now)
{
    long long ms = now - links->at;
    struct job *job;

    if (ms < SAMPLE_MS) {
        return;
    }
    HMAP_FOR_EACH (job, node, &registry->jobs) {
        uint64_t bytes = job->tx_bytes - job->sampled_tx_bytes;

        job->tx_bps = links->at ? bytes * 8e3 / ms : 0;
        job->sampled_tx_bytes = job->tx_bytes;
    }
    links->at = now;
}

double
links_left(double capacity, double before, double floor, double beside,
           size_t n_beside)
{
    double ours = fmax(capacity - before, capacity * floor);

    return fmax(ours - beside, ours / (n_beside + 1));
}

/* Returns the bandwidth of the uplink that 'job' can still get. */
static double
available_bps(const struct agent *a, const char *job)
{
    uint32_t min_share = a->wanted.all.min_share;
    double floor = (min_share == SHIM_MIN_SHARE_DEFAULT ? DEFAULT_MIN_SHARE
                    : (double) min_share / SHIM_MIN_SHARE_UNIT);
    double before = 0, beside = 0;
    size_t n_beside = 0;
    struct shim_slot own, row;
    const struct job *other;

    wanted_get(&a->wanted, job, &own);
    HMAP_FOR_EACH (other, node, &tracker_registry(a->tracker)->jobs) {
        if (!strcmp(other->name, job) || other->tx_bps < ACTIVE_BPS) {
            continue;
        }
        wanted_get(&a->wanted, other->name, &row);
        if (a->ordered && row.rank < own.rank) {
            before += other->tx_bps;
        } else if (!a->ordered || row.rank == own.rank) {
            beside += other->tx_bps;
            n_beside++;
        }
    }
    return links_left(agent_capacity(a), before, floor, beside, n_beside);
}

/* Path to one remote address. */
struct path_stats {
    size_t n_flows;
    double bps;                 /* Delivery rate, 0 if unknown. */
    uint32_t rtt_us;            /* Minimum round trip time, 0 if unknown. */
};

/* Adds a connection to the path to its remote address. */
static void
measure(const struct sock_diag_connection *c, void *paths_)
{
    struct shash *paths = paths_;
    char address[INET6_ADDRSTRLEN];
    struct path_stats *path;

    inet_ntop(c->family, c->remote, address, sizeof address);
    path = shash_find_data(paths, address);
    if (!path) {
        path = xzalloc(sizeof *path);
        shash_add(paths, address, path);
    }
    path->n_flows++;
    if (c->size < offsetof(struct tcp_info, tcpi_busy_time)
        || c->info.tcpi_last_ack_recv > FRESH_MS) {
        return;
    }
    if (c->info.tcpi_rtt
        && (!path->rtt_us || c->info.tcpi_rtt < path->rtt_us)) {
        path->rtt_us = c->info.tcpi_rtt;
    }
    if (!c->info.tcpi_delivery_rate_app_limited) {
        path->bps = fmax(path->bps, c->info.tcpi_delivery_rate * 8.0);
    }
}

static struct json *
paths_to_json(void)
{
    struct shash paths = SHASH_INITIALIZER(&paths);
    struct json *array = json_array_create_empty();
    const struct shash_node *node;

    sock_diag_dump(LINKS_MAX_FLOWS, measure, &paths);
    SHASH_FOR_EACH (node, &paths) {
        const struct path_stats *path = node->data;
        struct json *json = json_object_create();

        json_object_put_string(json, "remote", node->name);
        json_put_integer(json, "flows", path->n_flows);
        if (path->bps > 0) {
            json_put_integer(json, "bps", path->bps);
        }
        if (path->rtt_us) {
            json_put_integer(json, "rtt_us", path->rtt_us);
        }
        json_array_add(array, json);
    }
    shash_destroy_free_data(&paths);
    return array;
}

struct json *
links_compose(const struct agent *a, const char *job)
{
    const struct job *j = registry_find(tracker_registry(a->tracker), job);
    struct json *json = json_object_create();

    if (agent_capacity(a)) {
        json_put_integer(json, "capacity_bps", agent_capacity(a));
        json_put_integer(json, "left_bps", available_bps(a, job));
    }
    if (j) {
        json_put_integer(json, "tx_bps", j->tx_bps);
    }
    json_object_put(json, "links", paths_to_json());
    return json;
}
