/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/clustering.h"

#include <stdlib.h>

#include "base/memory.h"

#define ROOM 1.02               /* Largest number of samples of a worker,
                                 * relative to the mean. */

struct cluster {
    size_t n;
    uint32_t number;
};

/* Part of a cluster that a worker gets. */
struct piece {
    size_t left;                /* Samples that are not assigned yet. */
    uint16_t worker;
    uint32_t next;              /* Next piece of the cluster, 0 if none. */
};

/* Orders clusters by decreasing size. */
static int
compare(const void *a_, const void *b_)
{
    const struct cluster *a = a_, *b = b_;

    if (a->n != b->n) {
        return a->n > b->n ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

static int
find_least(const size_t *loads, int n)
{
    int least = 0;

    for (int i = 1; i < n; i++) {
        least = loads[i] < loads[least] ? i : least;
    }
    return least;
}

/* Assigns the clusters.  'pieces' has space for one per cluster and one per
 * worker; its first element is not used.  'first' is the first piece of each
 * cluster. */
static void
divide(struct clustering *c, const struct cluster *clusters,
       uint32_t n_clusters, size_t n, int n_workers, struct piece *pieces,
       uint32_t *first)
{
    size_t *loads = allocate(n_workers, sizeof *loads);
    size_t room = n * ROOM / n_workers + 1;
    uint32_t n_pieces = 1;

    for (uint32_t i = 0; i < n_clusters; i++) {
        const struct cluster *cluster = &clusters[i];
        size_t left = cluster->n, most = 0;

        c->home[cluster->number] = find_least(loads, n_workers);
        while (left) {
            int worker = find_least(loads, n_workers);
            size_t space = room - loads[worker];
            size_t taken = left < space ? left : space;

            pieces[n_pieces] =
                (struct piece){ taken, worker, first[cluster->number] };
            first[cluster->number] = n_pieces++;
            if (taken > most) {
                most = taken;
                c->home[cluster->number] = worker;
            }
            loads[worker] += taken;
            left -= taken;
        }
    }
    free(loads);
}

struct clustering *
clustering_create(const uint32_t *first, size_t stride, size_t n,
                  uint32_t n_clusters, int n_workers)
{
    struct clustering *c = allocate(1, sizeof *c);
    struct cluster *clusters = allocate(n_clusters, sizeof *clusters);
    struct piece *pieces = allocate(n_clusters + n_workers + 1,
                                    sizeof *pieces);
    uint32_t *piece_of = allocate(n_clusters, sizeof *piece_of);
    const char *sample = (const char *) first;

    c->worker_of_sample = allocate(n, sizeof *c->worker_of_sample);
    c->home = allocate(n_clusters, sizeof *c->home);
    for (uint32_t i = 0; i < n_clusters; i++) {
        clusters[i].number = i;
    }
    for (size_t i = 0; i < n; i++) {
        clusters[*(const uint32_t *) (sample + i * stride)].n++;
    }
    qsort(clusters, n_clusters, sizeof *clusters, compare);
    divide(c, clusters, n_clusters, n, n_workers, pieces, piece_of);
    for (size_t i = 0; i < n; i++) {
        uint32_t *piece = &piece_of[*(const uint32_t *) (sample + i * stride)];

        while (!pieces[*piece].left) {
            *piece = pieces[*piece].next;
        }
        pieces[*piece].left--;
        c->worker_of_sample[i] = pieces[*piece].worker;
    }
    free(clusters);
    free(pieces);
    free(piece_of);
    return c;
}

void
clustering_destroy(struct clustering *c)
{
    if (c) {
        free(c->worker_of_sample);
        free(c->home);
        free(c);
    }
}
