/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_IDENTITY_H
#define POD_IDENTITY_H 1

/* Jobs of pods.
 *
 * Operators of training on Kubernetes label its pods; a table (pod-labels.h)
 * has the labels that name the job, which is what owns all pods that train
 * together, and the cojob, which is else the namespace.  The annotation
 * stagecoach.dev/job, which may be a label, names the job before any other.
 *
 * The annotation stagecoach.dev/stage, "asha7/2" (or "asha7" alone), has what
 * cannot be derived.  It also assigns pods without these labels to a job, with
 * the name of the batch job or of the pod.  Pods without any of these
 * belong to no job.
 *
 * API servers and kubelets send a PodList: {"items": [{"metadata":
 * {"name", "namespace", "uid", "labels", "annotations"}, ...}]}.  Cgroups are
 * named after the UID.  A container has the GPUs of its limits whose names end
 * with
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
 *    error = pod_identity_find(list, "c3a1f0d2-...", &identity);
 *
 * The caller owns the JSON.  No state. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct pod {
    const char *name;
    const char *space;          /* Namespace of the pod. */
    const json_t *labels;       /* An object; anything else counts as no
                                 * labels. */
    const json_t *annotations;
};

struct pod_identity {
    char space[64]; /* Namespace of the pod, which is its user. */
    char cojob[32];
    char job[32];               /* Empty if the pod belongs to no job. */
    int rung;                   /* -1 if unknown. */
    unsigned int gpus; /* Of its containers, by pod_identity_find(); 0 if
                        * it has none. */
};

/* Always sets '*identity'.  Returns NULL, or a malloc()'d message about an
 * invalid annotation that was ignored. */
char *pod_identity_read(const struct pod *, struct pod_identity *identity);

/* The same for the pod 'uid' of 'list', a PodList, with its GPUs.  It belongs
 * to no job if it is not there. */
char *pod_identity_find(const json_t *list, const char *uid,
                        struct pod_identity *identity);

/* Claims 'place', a path of 'kind' "cgroup" or "netns", for the pod's job, or
 * takes the claim back, by the agent in 'rundir'.  Returns 0 or a positive
 * errno value as agent_call(). */
int pod_identity_claim(const struct pod_identity *, bool claims,
                       const char *kind, const char *place, const char *rundir,
                       long long until);

#endif /* agent/launch/pod-identity.h */
