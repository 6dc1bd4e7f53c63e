/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLUSTERING_H
#define CLUSTERING_H 1

/* Data clustering: samples that need the same parameters, at one worker.
 *
 *
 * Motivation
 * ==========
 *
 * Each sample belongs to a cluster: a row of a matrix, a relation of a graph.
 * Workers get whole clusters, and localize their parameters once, for all of
 * the training.  The large ones are dealt first, each to who has least, so
 * that workers have about as many samples.  A cluster of more samples than fit
 * is divided, and at home with who has most of it.
 *
 *
 * Usage
 * =====
 *
 *    c = clustering_create(cluster_of_sample, n, n_clusters, n_workers);
 *    for (i = 0; i < n; i++) {
 *        if (c->worker_of_sample[i] == worker) ...
 *    }
 *    clustering_destroy(c);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Not changed once made, so threads may share it. */

#include <stddef.h>
#include <stdint.h>

struct clustering {
    uint16_t *worker_of_sample;
    uint16_t *home;             /* The worker of each cluster. */
};

struct clustering *clustering_create(const uint32_t *cluster_of_sample,
                                     size_t n, uint32_t n_clusters,
                                     int n_workers);
void clustering_destroy(struct clustering *);

#endif /* trainer/tasks/clustering.h */
