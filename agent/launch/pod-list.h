/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_LIST_H
#define POD_LIST_H 1

/* Pods of this host, as listed by its kubelet.
 *
 *
 * Motivation
 * ==========
 *
 * A kubelet replies to GET /pods with a PodList: {"items": [{"metadata":
 * {"name", "namespace", "uid", "labels", "annotations"}, ...}]}.  Pods of jobs
 * are stored by UID, which cgroups are named after; everything else is
 * dropped.
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

/* Read-only outside this module. */
struct pod_list {
    struct pod_list_entry *entries;     /* Pods of jobs, sorted by UID. */
    size_t n;
    size_t n_bad;               /* Pods with an invalid annotation. */
    char *complaint;            /* Message about the first of these. */
};

/* Returns NULL or a malloc()'d message that begins with 'place'; then '*listp'
 * is NULL. */
char *pod_list_read(const char *place, const char *text, size_t size,
                    struct pod_list **listp);
void pod_list_destroy(struct pod_list *);

/* Returns NULL if pod 'uid' belongs to no job or is not listed. */
const struct pod_identity *pod_list_find(const struct pod_list *,
                                         const char *uid);

#endif /* agent/launch/pod-list.h */
