/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_IDENTITY_H
#define POD_IDENTITY_H 1

/* Job of a pod.
 *
 *
 * Motivation
 * ==========
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
 * Names of Kubernetes can be longer than those of jobs: see cgroup_name_fit().
 *
 *
 * Usage
 * =====
 *
 *    error = pod_identity_read(&pod, &identity);
 *    if (identity.job[0]) {
 *        ...it is identity.cojob/identity.job...
 *    }
 *    ...warn and free(error)...
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller owns the JSON.  No state.  Thread-safe. */

#include <jansson.h>

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
};

/* Always sets '*identity'.  Returns NULL, or a malloc()'d message about an
 * invalid annotation that was ignored. */
char *pod_identity_read(const struct pod *, struct pod_identity *identity);

#endif /* agent/launch/pod-identity.h */
