/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POD_IDENTITY_H
#define POD_IDENTITY_H 1

/* Which job a pod works for.
 *
 *
 * Motivation
 * ==========
 *
 * Those who run training on Kubernetes label its pods already:
 *
 *    job:     katib.kubeflow.org/trial, training.kubeflow.org/job-name,
 *             volcano.sh/job-name, scheduling.k8s.io/group-name,
 *             ray.io/cluster
 *    cojob:   katib.kubeflow.org/experiment, else the namespace
 *
 * What nobody can derive is an annotation of ours, stagecoach.dev/stage:
 * "asha7/2" (or "asha7" alone), which also makes a job of a pod that none of
 * these names: by stagecoach.dev/job, the name of its batch job, or its own.
 * A pod with none of all that is nobody's job.
 *
 * Names of Kubernetes are longer than ours: see pod_name_fit().
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
 * The JSON is the caller's.  No state.  Thread-safe. */

#include <jansson.h>

struct pod {
    const char *name;
    const char *space;          /* Its namespace. */
    const json_t *labels;       /* An object, else there are none. */
    const json_t *annotations;
};

struct pod_identity {
    char cojob[32];
    char job[32];               /* Empty: nobody's. */
    int rung;                   /* -1 if nobody said. */
};

/* Always fills in '*identity'; returns NULL, or a malloc()'d message about an
 * annotation that is not what is allowed and was passed over. */
char *pod_identity_read(const struct pod *, struct pod_identity *identity);

/* Makes a name of ours of 'name': other characters become "-", and of more
 * than 31 stay the first 22, "-", and 8 digits that tell it from others. */
void pod_name_fit(const char *name, char fitted[32]);

#endif /* agent/launch/pod-identity.h */
