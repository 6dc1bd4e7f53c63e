/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_IDENTITY_H
#define POD_IDENTITY_H 1

/* Jobs of pods.
 *
 * Operators of training on Kubernetes label its pods:
 *
 *    job:     katib.kubeflow.org/trial, training.kubeflow.org/job-name,
 *             volcano.sh/job-name, scheduling.k8s.io/group-name,
 *             ray.io/cluster
 *    cojob:   katib.kubeflow.org/experiment, else the namespace
 *
 * The annotation stagecoach.dev/stage, "asha7/2" (or "asha7" alone), has what
 * cannot be derived.  It also assigns pods without these labels to a job: by
 * stagecoach.dev/job, the name of the batch job, or the name of the pod.  Pods
 * without any of these belong to no job.
 *
 * A kubelet replies to GET /pods with a PodList: {"items": [{"metadata":
 * {"name", "namespace", "uid", "labels", "annotations"}, ...}]}.  Pods of jobs
 * are stored by UID, which cgroups are named after; everything else is
 * dropped.  A container has the GPUs of its limits whose names end with
 * "/gpu", such as nvidia.com/gpu.
 *
 * Names of Kubernetes can be longer than those of jobs: see cgroup_name_fit().
 *
 *    error = pod_identity_read(&pod, &identity);
 *    if (identity.job[0]) {
 *        ...it is identity.cojob/identity.job...
 *    }
 *    ...warn and free(error)...
 *
 *    error = pod_list_read("/pods", text, size, &list);
 *    id = pod_list_find(list, "c3a1f0d2-...");
 *    pod_list_destroy(list);
 *
 * The caller owns the JSON.  A list owns its identities.  No other state. */

#include <jansson.h>
#include <stddef.h>

struct pod {
    const char *name;
    const char *space;          /* Namespace of the pod. */
    const json_t *labels;       /* An object; anything else counts as no
                                 * labels. */
    const json_t *annotations;
};

struct pod_identity {
    char cojob[32];
    char job[32];               /* Empty if the pod belongs to no job. */
    int rung;                   /* -1 if unknown. */
    unsigned int gpus;          /* Of its containers, by pod_list_read(); 0 if
                                 * it has none. */
};

/* Always sets '*identity'.  Returns NULL, or a malloc()'d message about an
 * invalid annotation that was ignored. */
char *pod_identity_read(const struct pod *, struct pod_identity *identity);

/* Read-only outside this module. */
struct pod_list {
    struct pod_list_entry *entries; /* Pods of jobs. */
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

#endif /* agent/launch/pod-identity.h */
