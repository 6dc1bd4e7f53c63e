/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_LIST_H
#define POD_LIST_H 1

/* The pods of this host, as its kubelet lists them.
 *
 *
 * Motivation
 * ==========
 *
 * A kubelet answers GET /pods with a PodList: {"items": [{"metadata": {"name",
 * "namespace", "uid", "labels", "annotations"}, ...}]}.  Who works for a job
 * is kept by UID, which is what cgroups are named by; everything else goes.
 *
 *
 * Usage
 * =====
 *
 *    error = pod_list_read("/pods", text, size, &list);
 *    id = pod_list_find(list, "c3a1f0d2-...");
 *    pod_list_destroy(list);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A list owns its identities.  Not thread-safe. */

#include <stddef.h>

#include "agent/launch/pod-identity.h"

struct pod_list;

/* Returns NULL or a malloc()'d message that begins with 'place', in which case
 * '*listp' is NULL. */
char *pod_list_read(const char *place, const char *text, size_t size,
                    struct pod_list **listp);
void pod_list_destroy(struct pod_list *);

/* How many pods work for a job, and how many have an annotation that is not
 * what is allowed, the first of which 'pod_list_complaint' is about. */
size_t pod_list_n(const struct pod_list *);
size_t pod_list_n_bad(const struct pod_list *);
const char *pod_list_complaint(const struct pod_list *);

/* NULL if pod 'uid' works for no job or is not there. */
const struct pod_identity *pod_list_find(const struct pod_list *,
                                         const char *uid);

#endif /* agent/launch/pod-list.h */
