/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/iteration-traffic.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/fabric.h"
#include "order/order.h"
#include "util.h"

/* The hosts of a job. */
struct ends {
    const struct job *job;
    const struct job_traffic **a;
    size_t n;
};

static struct ends
get_ends(const struct job *job)
{
    struct ends ends = {
        .job = job,
        .a = xcalloc(shash_count(&job->traffic) + 1, sizeof *ends.a),
    };
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &job->traffic) {
        ends.a[ends.n++] = node->data;
    }
    return ends;
}

static size_t
find_end(const struct ends *ends, const struct host *host)
{
    size_t i = 0;

    while (ends->a[i]->host != host) {
        i++;
    }
    return i;
}

/* Adds the traffic between workers and servers to 'f', in models. */
static void
add_servers(const struct ends *ends, double *f)
{
    double n_servers = ends->job->workers[ROLE_SERVER];

    for (size_t i = 0; i < ends->n && n_servers; i++) {
        for (size_t j = 0; j < ends->n; j++) {
            const int *a = ends->a[i]->workers, *b = ends->a[j]->workers;

            f[i * ends->n + j] += (a[ROLE_WORKER] * b[ROLE_SERVER]
                                   + a[ROLE_SERVER] * b[ROLE_WORKER])
                                  / n_servers;
        }
    }
}

/* Adds the traffic around the ring of peers to 'f', in models. */
static void
add_ring(const struct ends *ends, double *f)
{
    const struct job *job = ends->job;
    size_t n = job->n_ring;

    for (size_t k = 0; k < n; k++) {
        size_t i = find_end(ends, job->ring[k]);
        size_t j = find_end(ends, job->ring[(k + 1) % n]);

        f[i * ends->n + j] += 2.0 * (n - 1) / n;
    }
}

/* Returns true if 'f' has traffic from or to host 'i' of 'n'. */
static bool
has_traffic(const double *f, size_t n, size_t i)
{
    for (size_t j = 0; j < n; j++) {
        if (j != i && (f[i * n + j] > 0 || f[j * n + i] > 0)) {
            return true;
        }
    }
    return false;
}

/* Returns f(i, j) of the header, [i * ends->n + j]; the caller frees. */
static double *
get_formula(const struct ends *ends)
{
    size_t n = ends->n;
    double *f = xcalloc(n * n + 1, sizeof *f);
    bool *known = xcalloc(n + 1, sizeof *known);

    add_servers(ends, f);
    add_ring(ends, f);
    for (size_t i = 0; i < n; i++) {
        known[i] = has_traffic(f, n, i);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            f[i * n + j] = (i == j ? 0
                            : known[i] && known[j] ? f[i * n + j] : 1);
        }
    }
    free(known);
    return f;
}

/* Converts f(i, j) in 'w' to w(i, j) of the header. */
static void
weigh_receivers(const struct ends *ends, double *w)
{
    size_t n = ends->n;

    for (size_t j = 0; j < n; j++) {
        double rx = demand_per_iteration(ends->job, ends->a[j], DIR_RX);
        double sum = 0;

        for (size_t k = 0; k < n; k++) {
            sum += w[k * n + j];
        }
        for (size_t k = 0; k < n && sum > 0; k++) {
            w[k * n + j] *= rx / sum;
        }
    }
}

/* Replaces w(i, j) of sender 'i' by what its agent has measured, if that is
 * most of what the host has sent for the job. */
static void
use_measured(const struct ends *ends, size_t i, double *w)
{
    const struct job_traffic *t = ends->a[i];
    double *bytes = xcalloc(ends->n, sizeof *bytes);
    double sum = 0;

    for (size_t j = 0; j < ends->n; j++) {
        const uint64_t *n = shash_find_data(&t->sent_to,
                                            ends->a[j]->host->name);

        bytes[j] = n && j != i ? *n : 0;
        sum += bytes[j];
    }
    if (sum > 0 && 2 * sum >= t->bytes[DIR_TX]) {
        memcpy(&w[i * ends->n], bytes, ends->n * sizeof *bytes);
    }
    free(bytes);
}

size_t
iteration_traffic_pairs(const struct job *job, struct traffic_pair **pairsp)
{
    struct ends ends = get_ends(job);
    size_t n = ends.n, n_pairs = 0;
    struct traffic_pair *pairs = xcalloc(n * n + 1, sizeof *pairs);
    double *w = get_formula(&ends);

    weigh_receivers(&ends, w);
    for (size_t i = 0; i < n; i++) {
        use_measured(&ends, i, w);
    }
    for (size_t i = 0; i < n; i++) {
        double tx = demand_per_iteration(job, ends.a[i], DIR_TX);
        double sum = 0;

        for (size_t j = 0; j < n; j++) {
            sum += w[i * n + j];
        }
        for (size_t j = 0; j < n && sum > 0; j++) {
            double bytes = tx * w[i * n + j] / sum;

            if (bytes > 0) {
                pairs[n_pairs++] = (struct traffic_pair) {
                    .src = ends.a[i]->host, .dst = ends.a[j]->host,
                    .bytes = bytes,
                };
            }
        }
    }
    free(w);
    free(ends.a);
    *pairsp = pairs;
    return n_pairs;
}

/* Demands that are being collected. */
struct demands {
    struct order_demand *a;
    size_t n, allocated;
};

static void
add_demand(struct demands *d, int port, double seconds)
{
    if (seconds > 0) {
        if (d->n >= d->allocated) {
            d->a = x2nrealloc(d->a, &d->allocated, sizeof *d->a);
        }
        d->a[d->n++] =
            (struct order_demand){ .port = port, .seconds = seconds };
    }
}

static void
add_host_ports(struct demands *d, const struct job *job)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            add_demand(d, demand_port(t->host, dir),
                       demand_per_iteration(job, t, dir) * 8
                       / host_capacity(t->host));
        }
    }
}

static bool
is_in_several_leaves(const struct job *job)
{
    const struct shash_node *node;
    int leaf = -1;

    SHASH_FOR_EACH (node, &job->traffic) {
        int other = ((const struct job_traffic *) node->data)->host->leaf;

        if (leaf >= 0 && other >= 0 && other != leaf) {
            return true;
        }
        leaf = MAX(leaf, other);
    }
    return false;
}

/* Bytes from one leaf to another. */
struct leaf_pair {
    int from, to;
    double bytes;
};

static int
compare_leaf_pairs(const void *a_, const void *b_)
{
    const struct leaf_pair *a = a_, *b = b_;

    return a->from != b->from ? (a->from < b->from ? -1 : 1)
           : a->to < b->to ? -1 : a->to > b->to;
}

/* Stores the bytes of one iteration of 'job' between different leaves in
 * '*pairsp', which the caller frees.  Returns the number of pairs. */
static size_t
get_leaf_pairs(const struct job *job, struct leaf_pair **pairsp)
{
    struct traffic_pair *pairs;
    size_t n_pairs = iteration_traffic_pairs(job, &pairs);
    struct leaf_pair *leaves = xcalloc(n_pairs + 1, sizeof *leaves);
    size_t n = 0, n_kept = 0;

    for (size_t i = 0; i < n_pairs; i++) {
        int from = pairs[i].src->leaf, to = pairs[i].dst->leaf;

        if (from >= 0 && to >= 0 && from != to) {
            leaves[n++] = (struct leaf_pair) { from, to, pairs[i].bytes };
        }
    }
    free(pairs);
    qsort(leaves, n, sizeof *leaves, compare_leaf_pairs);
    for (size_t i = 0; i < n; i++) {
        if (n_kept && !compare_leaf_pairs(&leaves[n_kept - 1], &leaves[i])) {
            leaves[n_kept - 1].bytes += leaves[i].bytes;
        } else {
            leaves[n_kept++] = leaves[i];
        }
    }
    *pairsp = leaves;
    return n_kept;
}

static void
add_links(struct demands *d, const struct cluster *c, const struct job *job)
{
    struct leaf_pair *leaves;
    size_t n = get_leaf_pairs(job, &leaves);

    for (size_t i = 0; i < n; i++) {
        const struct fabric_pair *pair = fabric_get_pair(
            c->fabric, leaves[i].from, leaves[i].to);

        for (size_t k = 0; k < pair->n; k++) {
            add_demand(d, demand_link_port(c, pair->crossings[k].port),
                       leaves[i].bytes * 8
                       * pair->crossings[k].seconds_per_bit);
        }
    }
    free(leaves);
}

static int
compare_ports(const void *a_, const void *b_)
{
    const struct order_demand *a = a_, *b = b_;

    return a->port < b->port ? -1 : a->port > b->port;
}

/* Adds up the demands of each port, which are neighbours. */
static void
merge_ports(struct demands *d)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n; i++) {
        if (n && d->a[n - 1].port == d->a[i].port) {
            d->a[n - 1].seconds += d->a[i].seconds;
        } else {
            d->a[n++] = d->a[i];
        }
    }
    d->n = n;
}

size_t
iteration_traffic_demand(const struct cluster *c, const struct job *job,
                         struct order_demand **demandsp)
{
    struct demands d = { .allocated = 2 * shash_count(&job->traffic) + 1 };

    d.a = xcalloc(d.allocated, sizeof *d.a);
    add_host_ports(&d, job);
    if (c->fabric && is_in_several_leaves(job)) {
        add_links(&d, c, job);
    }
    qsort(d.a, d.n, sizeof *d.a, compare_ports);
    merge_ports(&d);
    *demandsp = d.a;
    return d.n;
}
