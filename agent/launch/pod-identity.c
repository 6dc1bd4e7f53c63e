/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-identity.h"

#include <string.h>

#include "wire/cgroup-path.h"
#include "agent/launch/launch.h"

#define STAGE "stagecoach.dev/stage"
#define JOB "stagecoach.dev/job"

/* Returns the value of 'key', NULL if it is missing, empty or not a string. */
static const char *
get(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value && value[0] ? value : NULL;
}

/* Returns the first of 'keys', up to NULL, that 'pod' has as a label or as an
 * annotation. */
static const char *
find(const struct pod *pod, const char *const keys[])
{
    for (; *keys; keys++) {
        const char *value = get(pod->labels, *keys);

        value = value ? value : get(pod->annotations, *keys);
        if (value) {
            return value;
        }
    }
    return NULL;
}

char *
pod_identity_read(const struct pod *pod, struct pod_identity *identity)
{
    static const char *const job_keys[] = {
        JOB, "katib.kubeflow.org/trial", "training.kubeflow.org/job-name",
        "volcano.sh/job-name", "scheduling.k8s.io/group-name",
        "ray.io/cluster", NULL,
    };
    static const char *const batch_keys[] = {
        "batch.kubernetes.io/job-name", "job-name", NULL,
    };
    static const char *const cojob_keys[] = {
        "katib.kubeflow.org/experiment", NULL,
    };
    const char *text = get(pod->annotations, STAGE);
    struct stage_name stage = { "", -1 };
    const char *job = find(pod, job_keys);
    const char *cojob = find(pod, cojob_keys);
    char *error = NULL;

    if (text) {
        error = stage_name_parse(STAGE, text, '/', &stage);
        if (!job && !error) {
            job = find(pod, batch_keys);
            job = job ? job : pod->name;
        }
    }
    identity->rung = stage.rung;
    cgroup_name_fit(job ? job : "", identity->job);
    cgroup_name_fit(stage.cojob[0] ? stage.cojob : cojob ? cojob : pod->space,
                 identity->cojob);
    if (!identity->cojob[0]) {
        identity->job[0] = '\0';
    }
    return error;
}
