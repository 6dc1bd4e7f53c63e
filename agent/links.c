/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/links.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/tcp.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "agent/actuate/actuator.h"
#include "agent/host-rows.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/registry.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "packets.h"
#include "shim/ports/route-socket.h"
#include "util.h"
#include "wire/json-put.h"

#define STATE_ESTABLISHED 1 /* The kernel's include/net/tcp_states.h. */
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
available_bps(const struct links_facts *facts, const char *job)
{
    uint32_t min_share = facts->wanted->all.min_share;
    double floor = (min_share == SHIM_MIN_SHARE_DEFAULT ? DEFAULT_MIN_SHARE
                    : (double) min_share / SHIM_MIN_SHARE_UNIT);
    double before = 0, beside = 0;
    size_t n_beside = 0;
    struct shim_slot own, row;
    const struct job *other;

    wanted_get(facts->wanted, job, &own);
    HMAP_FOR_EACH (other, node, &facts->registry->jobs) {
        if (!strcmp(other->name, job) || other->tx_bps < ACTIVE_BPS) {
            continue;
        }
        wanted_get(facts->wanted, other->name, &row);
        if (facts->ordered && row.rank < own.rank) {
            before += other->tx_bps;
        } else if (!facts->ordered || row.rank == own.rank) {
            beside += other->tx_bps;
            n_beside++;
        }
    }
    return links_left(facts->capacity_bps, before, floor, beside, n_beside);
}

/* Path to one remote address. */
struct path_stats {
    size_t n_flows;
    double bps;                 /* Delivery rate, 0 if unknown. */
    uint32_t rtt_us;            /* Minimum round trip time, 0 if unknown. */
};

struct paths {
    struct shash by_remote; /* Contains struct path_stats. */
    size_t left;            /* Connections that may still be read. */
};

/* Adds a connection to the path. */
static void
measure(struct path_stats *path, const struct nlattr *attr)
{
    struct tcp_info info = { .tcpi_rtt = 0 };
    size_t size = MIN(sizeof info, mnl_attr_get_payload_len(attr));

    memcpy(&info, mnl_attr_get_payload(attr), size);
    path->n_flows++;
    if (size < offsetof(struct tcp_info, tcpi_busy_time)
        || info.tcpi_last_ack_recv > FRESH_MS) {
        return;
    }
    if (info.tcpi_rtt && (!path->rtt_us || info.tcpi_rtt < path->rtt_us)) {
        path->rtt_us = info.tcpi_rtt;
    }
    if (!info.tcpi_delivery_rate_app_limited) {
        path->bps = fmax(path->bps, info.tcpi_delivery_rate * 8.0);
    }
}

/* Stores the remote address of a connection; of an IPv4 connection of an IPv6
 * socket, the one of IPv4.  Returns false if it does not leave the host. */
static bool
get_remote(const struct inet_diag_msg *msg, char remote[INET6_ADDRSTRLEN])
{
    const uint8_t *address = (const uint8_t *) msg->id.idiag_dst;
    int family = msg->idiag_family;

    if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(address)) {
        family = AF_INET;
        address += 12;
    }
    inet_ntop(family, address, remote, INET6_ADDRSTRLEN);
    return family == AF_INET ? address[0] != 127
                             : !IN6_IS_ADDR_LOOPBACK(address);
}

static int
see_connection(const struct nlmsghdr *nlh, void *paths_)
{
    const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
    char remote[INET6_ADDRSTRLEN];
    struct paths *paths = paths_;
    const struct nlattr *attr;

    if (!paths->left) {
        return MNL_CB_STOP;
    } else if (!get_remote(msg, remote)) {
        return MNL_CB_OK;
    }
    mnl_attr_for_each(attr, nlh, sizeof *msg)
    {
        if (mnl_attr_get_type(attr) == INET_DIAG_INFO) {
            struct path_stats *path =
                shash_find_data(&paths->by_remote, remote);

            if (!path) {
                path = xzalloc(sizeof *path);
                shash_add(&paths->by_remote, remote, path);
            }
            measure(path, attr);
            paths->left--;
        }
    }
    return MNL_CB_OK;
}

/* Reads the TCP connections of this network namespace, a microsecond each. */
static void
read_paths(struct paths *paths)
{
    struct route_socket *rs;

    if (!route_socket_open_diag(-1, &rs)) {
        route_socket_list_tcp(rs, 1 << STATE_ESTABLISHED, INET_DIAG_INFO, -1,
                              see_connection, paths);
        route_socket_close(rs);
    }
}

static struct json *
paths_to_json(void)
{
    struct paths paths = {
        .by_remote = SHASH_INITIALIZER(&paths.by_remote),
        .left = LINKS_MAX_FLOWS,
    };
    struct json *array = json_array_create_empty();
    const struct shash_node *node;

    read_paths(&paths);
    SHASH_FOR_EACH (node, &paths.by_remote) {
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
    shash_destroy_free_data(&paths.by_remote);
    return array;
}

struct json *
links_compose(const struct links_facts *facts, const char *job)
{
    const struct job *j = registry_find(facts->registry, job);
    struct json *json = json_object_create();

    if (facts->capacity_bps) {
        json_put_integer(json, "capacity_bps", facts->capacity_bps);
        json_put_integer(json, "left_bps", available_bps(facts, job));
    }
    if (j) {
        json_put_integer(json, "tx_bps", j->tx_bps);
    }
    json_object_put(json, "links", paths_to_json());
    return json;
}

/* Bytes by remote address. */

void
pairs_add(struct job *job, const uint8_t address[16], uint64_t bytes)
{
    size_t i = 0;

    while (i < job->n_remotes
           && memcmp(job->remotes[i].address, address, 16)) {
        i++;
    }
    if (i == PAIRS_MAX_REMOTES) {
        return;
    } else if (i == job->n_remotes) {
        job->remotes =
            xrealloc(job->remotes, ++job->n_remotes * sizeof *job->remotes);
        job->remotes[i] = (struct pairs_remote){ .bytes = 0 };
        memcpy(job->remotes[i].address, address, 16);
    }
    job->remotes[i].bytes += bytes;
}

/* Jobs by the number of their slots. */
struct slot_jobs {
    struct job *jobs[SHIM_MAX_SLOTS];
};

static void
take_pair(uint16_t slot, const uint8_t remote[16], uint64_t bytes, void *jobs_)
{
    const struct slot_jobs *jobs = jobs_;

    if (slot < SHIM_MAX_SLOTS && jobs->jobs[slot]) {
        pairs_add(jobs->jobs[slot], remote, bytes);
    }
}

bool
pairs_sample(struct pairs *pairs, const struct registry *registry,
             struct identity *identity, const struct actuator *actuator,
             long long now)
{
    struct slot_jobs jobs = { .jobs = { NULL } };
    struct job *job;

    identity_settings(identity)->max_pairs =
        pairs->wanted ? IDENTITY_PAIRS / MAX(hmap_count(&registry->jobs), 1)
                      : 0;
    if (!pairs->wanted || now < pairs->at + SAMPLE_MS) {
        return false;
    }
    pairs->at = now;
    HMAP_FOR_EACH (job, node, &registry->jobs) {
        jobs.jobs[actuator_slot(actuator, job->name)] = job;
    }
    jobs.jobs[0] = NULL;
    identity_take_pairs(identity, take_pair, &jobs);
    return true;
}

struct json *
pairs_to_json(const struct job *job)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < job->n_remotes; i++) {
        struct json *json = json_object_create();
        const struct in6_addr *remote = (void *) job->remotes[i].address;
        char address[INET6_ADDRSTRLEN];

        ipv6_string_mapped(address, remote);
        json_object_put_string(json, "remote", address);
        json_put_integer(json, "bytes", job->remotes[i].bytes);
        json_array_add(array, json);
    }
    return array;
}
