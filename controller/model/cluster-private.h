/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLUSTER_PRIVATE_H
#define CLUSTER_PRIVATE_H 1

/* A cluster, for its own files: cluster-intent.c has what comes with the
 * intent, cluster.c hosts, traffic and questions about stages. */

#include "controller/model/cluster.h"

void cluster_intent_uninit(struct cluster *);

#endif /* controller/model/cluster-private.h */
