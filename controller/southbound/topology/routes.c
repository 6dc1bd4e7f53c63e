/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/routes.h"

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/host-names.h"
#include "controller/model/iteration-traffic.h"
#include "policies/policy.h"
#include "util.h"

#define FAR INT16_MAX

struct routes {
    const struct topology *t;
    bool *up;                   /* By link. */
    int16_t *hops;              /* From switch i to j: [i * n_switches + j]. */
    double *load;               /* Seconds of traffic of the explicit paths, by
                                 * link and direction. */
    struct route_path *paths;
    size_t n_paths;
};

static void
measure_from(struct routes *r, int from, int *queue)
{
    int16_t *hops = &r->hops[from * r->t->n_switches];
    size_t head = 0, tail = 0;

    for (size_t i = 0; i < r->t->n_switches; i++) {
        hops[i] = FAR;
    }
    hops[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        int at = queue[head++];

        for (size_t i = 0; i < r->t->n_links; i++) {
            const struct topology_link *link = &r->t->links[i];

            for (int end = 0; r->up[i] && end < 2; end++) {
                int other = link->ends[!end].sw;

                if (link->ends[end].sw == at && hops[other] == FAR) {
                    hops[other] = hops[at] + 1;
                    queue[tail++] = other;
                }
            }
        }
    }
}

static void
measure(struct routes *r)
{
    int *queue = xcalloc(r->t->n_switches, sizeof *queue);

    for (size_t i = 0; i < r->t->n_switches; i++) {
        measure_from(r, i, queue);
    }
    free(queue);
}

struct routes *
routes_create(const struct topology *t)
{
    struct routes *r = xzalloc(sizeof *r);

    r->t = t;
    r->up = xcalloc(t->n_links + 1, sizeof *r->up);
    memset(r->up, true, t->n_links);
    r->hops = xcalloc(t->n_switches * t->n_switches, sizeof *r->hops);
    r->load = xcalloc(2 * t->n_links + 1, sizeof *r->load);
    measure(r);
    return r;
}

void
routes_destroy(struct routes *r)
{
    if (r) {
        free(r->up);
        free(r->hops);
        free(r->load);
        free(r->paths);
        free(r);
    }
}

bool
routes_set_up(struct routes *r, size_t link, bool up)
{
    if (r->up[link] == up) {
        return false;
    }
    r->up[link] = up;
    measure(r);
    return true;
}

size_t
routes_n_down(const struct routes *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->t->n_links; i++) {
        n += !r->up[i];
    }
    return n;
}

static int
hops(const struct routes *r, int from, int to)
{
    return r->hops[from * r->t->n_switches + to];
}

/* Returns the end of 'link' at which a shortest path from 'from' to 'to'
 * enters it, or -1 if no shortest path uses it. */
static int
end_towards(const struct routes *r, size_t link, int from, int to)
{
    const struct topology_link *l = &r->t->links[link];

    for (int end = 0; r->up[link] && end < 2; end++) {
        if (l->ends[end].sw == from && hops(r, from, to) != FAR
            && hops(r, l->ends[!end].sw, to) == hops(r, from, to) - 1) {
            return end;
        }
    }
    return -1;
}

size_t
routes_next(const struct routes *r, int from, int to, uint32_t *ports,
            size_t max)
{
    size_t n = 0;

    for (size_t i = 0; from != to && n < max && i < r->t->n_links; i++) {
        int end = end_towards(r, i, from, to);

        if (end >= 0) {
            ports[n++] = r->t->links[i].ends[end].port;
        }
    }
    return n;
}

void
routes_next_to(const struct routes *r, int to, struct route_next *next)
{
    for (size_t i = 0; i < r->t->n_switches; i++) {
        next[i].n = 0;
    }
    for (size_t i = 0; i < r->t->n_links; i++) {
        const struct topology_link *link = &r->t->links[i];

        for (int end = 0; end < 2; end++) {
            struct route_next *from = &next[link->ends[end].sw];

            if (from->n < ROUTES_MAX_NEXT
                && end_towards(r, i, link->ends[end].sw, to) == end) {
                from->hops[from->n++] =
                    (struct route_hop){ i, link->ends[end] };
            }
        }
    }
}

static void
add_load(struct routes *r, const struct route_path *path)
{
    for (size_t i = 0; i < path->n_hops; i++) {
        const struct topology_link *link = &r->t->links[path->hops[i].link];
        bool end = link->ends[1].sw == path->hops[i].out.sw;

        r->load[2 * path->hops[i].link + end]
            += path->demand.bits / link->capacity;
    }
}

/* Returns true if 'path' is still a shortest path and all its links are up. */
static bool
path_works(const struct routes *r, const struct route_path *path)
{
    int to = r->t->hosts[path->demand.dst].at.sw;
    int at = r->t->hosts[path->demand.src].at.sw;

    for (size_t i = 0; i < path->n_hops; i++) {
        int link = path->hops[i].link;
        int end = end_towards(r, link, at, to);

        if (end < 0) {
            return false;
        }
        at = r->t->links[link].ends[!end].sw;
    }
    return at == to;
}

/* Returns the link of switch 'at' on a shortest path to 'to' that has the
 * least load with additional 'bits', or -1 without a path. */
static int
choose_link(const struct routes *r, int at, int to, double bits, int *endp)
{
    double best_load = 0;
    int best = -1;

    for (size_t i = 0; i < r->t->n_links; i++) {
        int end = end_towards(r, i, at, to);
        double load;

        if (end < 0) {
            continue;
        }
        load = r->load[2 * i + end] + bits / r->t->links[i].capacity;
        if (best < 0 || load < best_load) {
            best = i;
            best_load = load;
            *endp = end;
        }
    }
    return best;
}

/* Finds a path for the demand of 'path'.  Returns false without a path, or if
 * both hosts are at the same switch. */
static bool
find_path(const struct routes *r, struct route_path *path)
{
    int to = r->t->hosts[path->demand.dst].at.sw;
    int at = r->t->hosts[path->demand.src].at.sw;

    path->n_hops = 0;
    while (at != to && path->n_hops < ROUTES_MAX_HOPS) {
        int end = 0;
        int link = choose_link(r, at, to, path->demand.bits, &end);

        if (link < 0) {
            return false;
        }
        path->hops[path->n_hops].link = link;
        path->hops[path->n_hops++].out = r->t->links[link].ends[end];
        at = r->t->links[link].ends[!end].sw;
    }
    return at == to && path->n_hops;
}

static const struct route_path *
find_old(const struct route_path *paths, size_t n,
         const struct route_demand *demand)
{
    for (size_t i = 0; i < n; i++) {
        const struct route_demand *d = &paths[i].demand;

        if (d->src == demand->src && d->dst == demand->dst
            && d->dscp == demand->dscp) {
            return &paths[i];
        }
    }
    return NULL;
}

/* Chooses a path for each of 'demands', which differ in hosts or DSCP.
 * Working paths are kept; then the others choose the least loaded path, in
 * order. */
void
routes_place(struct routes *r, const struct route_demand *demands, size_t n)
{
    struct route_path *old = r->paths;
    size_t n_old = r->n_paths;
    bool *kept;

    n = MIN(n, ROUTES_MAX_PATHS);
    kept = xcalloc(n + 1, sizeof *kept);
    r->paths = xcalloc(n + 1, sizeof *r->paths);
    memset(r->load, 0, 2 * r->t->n_links * sizeof *r->load);
    for (size_t i = 0; i < n; i++) {
        const struct route_path *before = find_old(old, n_old, &demands[i]);

        if (before && path_works(r, before)) {
            kept[i] = true;
            r->paths[i] = *before;
            r->paths[i].demand = demands[i];
            add_load(r, &r->paths[i]);
        }
    }
    r->n_paths = 0;
    for (size_t i = 0; i < n; i++) {
        struct route_path path = r->paths[i];

        path.demand = demands[i];
        if (!kept[i]) {
            if (!find_path(r, &path)) {
                continue;
            }
            add_load(r, &path);
        }
        r->paths[r->n_paths++] = path;
    }
    free(kept);
    free(old);
}

const struct route_path *
routes_paths(const struct routes *r, size_t *np)
{
    *np = r->n_paths;
    return r->paths;
}

struct demands {
    struct route_demand *a;     /* Of ROUTES_MAX_PATHS elements. */
    size_t n;
};

static int
compare_ranks(const void *a_, const void *b_)
{
    const struct job *const *a = a_;
    const struct job *const *b = b_;

    return (*a)->rank < (*b)->rank ? -1 : (*a)->rank > (*b)->rank;
}

/* Returns the jobs that have a level and remaining iterations, by rank. */
static struct job **
ordered_jobs(const struct cluster *c, size_t *np)
{
    struct job **jobs = xcalloc(shash_count(&c->jobs) + 1, sizeof *jobs);
    const struct shash_node *node;
    size_t n = 0;

    SHASH_FOR_EACH (node, &c->jobs) {
        struct job *job = node->data;

        if (job->live && job->level >= 0 && job->stage
            && stage_is_running(job->stage)
            && demand_remaining_iterations(job->stage, job) > 0) {
            jobs[n++] = job;
        }
    }
    qsort(jobs, n, sizeof *jobs, compare_ranks);
    *np = n;
    return jobs;
}

/* Returns the index in 't' of each host of 'c', by its index there, -1 if 't'
 * does not have it; the caller frees. */
static int *
find_hosts(const struct cluster *c, const struct topology *t)
{
    int *hosts = xcalloc(c->n_hosts + 1, sizeof *hosts);
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;
        const char *name = host_short_name(host);
        int index = topology_find_host(t, host->name);

        hosts[host->index] =
            index < 0 && name ? topology_find_host(t, name) : index;
    }
    return hosts;
}

static void
add_demand(struct demands *d, const struct topology *t, int src, int dst,
           uint8_t dscp, double bits)
{
    int64_t capacity = MIN(t->hosts[src].capacity, t->hosts[dst].capacity);

    if (t->hosts[src].at.sw == t->hosts[dst].at.sw) {
        return;
    }
    for (size_t i = 0; i < d->n; i++) {
        if (d->a[i].src == src && d->a[i].dst == dst && d->a[i].dscp == dscp) {
            d->a[i].bits += bits;
            return;
        }
    }
    if (bits < ELEPHANT_SECONDS * capacity || d->n >= ROUTES_MAX_PATHS) {
        return;
    }
    d->a[d->n++] = (struct route_demand) {
        .src = src, .dst = dst, .dscp = dscp, .bits = bits,
    };
}

static void
add_job(struct demands *d, const struct topology *t, const int *hosts,
        const struct job *job, uint8_t dscp)
{
    double bits = 8.0 * demand_remaining_iterations(job->stage, job);
    struct traffic_pair *pairs;
    size_t n = iteration_traffic_pairs(job, &pairs);

    for (size_t i = 0; i < n; i++) {
        int src = hosts[pairs[i].src->index];
        int dst = hosts[pairs[i].dst->index];

        if (src >= 0 && dst >= 0) {
            add_demand(d, t, src, dst, dscp, bits * pairs[i].bytes);
        }
    }
    free(pairs);
}

size_t
routes_find_elephants(const struct cluster *c, const struct topology *t,
                      const struct policy *policy,
                      struct route_demand **demandsp)
{
    struct demands d = { .a = xcalloc(ROUTES_MAX_PATHS, sizeof *d.a) };
    size_t n;
    struct job **jobs = ordered_jobs(c, &n);
    int *hosts = find_hosts(c, t);

    for (size_t i = 0; i < n; i++) {
        int level = MIN(jobs[i]->level, policy->n_levels - 1);

        add_job(&d, t, hosts, jobs[i], policy->dscp[level]);
    }
    free(hosts);
    free(jobs);
    *demandsp = d.a;
    return d.n;
}
