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
 * API servers and kubelets send a PodList: {"items": [{"metadata":
 * {"name", "namespace", "uid", "labels", "annotations"}, ...}]}.  Cgroups are
 * named after the UID.  A container has the GPUs of its limits whose names end
 * with
 * "/gpu", such as nvidia.com/gpu.
 *
 * Names of Kubernetes can be longer than those of jobs: see name_fit().
 *
 *    error = pod_identity_read(&pod, &identity);
 *    if (identity.job[0]) {
 *        ...it is identity.cojob/identity.job...
 *    }
 *    ...warn and free(error)...
 *
 *    error = pod_identity_find(list, "c3a1f0d2-...", &identity);
 *
 * The caller owns the JSON.  No state. */

#include <jansson.h>
#include <stddef.h>

#include "base/name.h"

struct pod {
    const char *name;
    const char *space;          /* Namespace of the pod. */
    const json_t *labels;       /* An object; anything else counts as no
                                 * labels. */
    const json_t *annotations;
};

struct pod_identity {
    char space[64]; /* Namespace of the pod, which is its user. */
    char cojob[NAME_SIZE];
    char job[NAME_SIZE];        /* Empty if the pod belongs to no job. */
    int rung;                   /* -1 if unknown. */
    unsigned int gpus; /* Of its containers, by pod_identity_find(); 0 if
                        * it has none. */
};

/* Always sets '*identity'.  Returns NULL, or a malloc()'d message about an
 * invalid annotation that was ignored. */
char *pod_identity_read(const struct pod *, struct pod_identity *identity);

/* Options of the agent's command "agent/claim" for a pod. */
#define POD_WORDS 3
struct pod_words {
    char texts[POD_WORDS][96];
    size_t n;
};

/* Stores the options in '*options', and in 'words', which point there. */
void pod_identity_words(const struct pod_identity *, struct pod_words *options,
                        const char *words[POD_WORDS]);

/* The same for the pod 'uid' of 'list', a PodList, with its GPUs.  It belongs
 * to no job if it is not there. */
char *pod_identity_find(const json_t *list, const char *uid,
                        struct pod_identity *identity);

#endif /* agent/launch/pod-identity.h */
