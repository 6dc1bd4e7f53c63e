/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLUSTERING_H
#define CLUSTERING_H 1

/* Data clustering: samples with the same parameters go to the same worker.
 *
 * Each sample belongs to a cluster, such as a row of a matrix or a relation of
 * a graph.  Workers get whole clusters and localize their parameters once for
 * the whole training.  Clusters are assigned by decreasing size, each to the
 * worker with the fewest samples, so that workers have about equally many.  A
 * cluster that does not fit is divided; its home is the worker with most of
 * it.
 *
 *    c = clustering_create(&samples->row, sizeof *samples, n, n_clusters,
 *                          n_workers);
 *    for (i = 0; i < n; i++) {
 *        if (c->worker_of_sample[i] == worker) ...
 *    }
 *    clustering_destroy(c);
 *
 * Constant after creation, so threads may share it. */

#include <stddef.h>
#include <stdint.h>

struct clustering {
    uint16_t *worker_of_sample;
    uint16_t *home;             /* Home of each cluster. */
};

/* 'first' is the cluster of the first sample; the keys of each following
 * sample are 'stride' bytes further on. */
struct clustering *clustering_create(const uint32_t *first,
                                     size_t stride, size_t n,
                                     uint32_t n_clusters, int n_workers);
void clustering_destroy(struct clustering *);

#endif /* trainer/tasks/clustering.h */
