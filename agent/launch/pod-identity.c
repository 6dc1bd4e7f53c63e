/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/launch.h"
#include "base/memory.h"
#include "base/name.h"

#define STAGE "stagecoach.dev/stage"
#define JOB "stagecoach.dev/job"

#define MAX_GPUS 1024 /* Of a pod, as agents allow. */

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
    identity->gpus = 0;
    snprintf(identity->space, sizeof identity->space, "%s", pod->space);
    name_fit(job ? job : "", identity->job);
    name_fit(stage.cojob[0] ? stage.cojob
             : cojob        ? cojob
                            : pod->space,
             identity->cojob);
    if (!identity->cojob[0]) {
        identity->job[0] = '\0';
    }
    return error;
}

void
pod_identity_words(const struct pod_identity *id, struct pod_words *options,
                   const char *words[POD_WORDS])
{
    char(*texts)[96] = options->texts;
    size_t n = 0;

    if (id->space[0]) {
        snprintf(texts[n++], sizeof *texts, "namespace=%s", id->space);
    }
    if (id->rung >= 0) {
        snprintf(texts[n++], sizeof *texts, "rung=%d", id->rung);
    }
    if (id->gpus) {
        snprintf(texts[n++], sizeof *texts, "gpus=%u", id->gpus);
    }
    for (size_t i = 0; i < n; i++) {
        words[i] = texts[i];
    }
    options->n = n;
}

/* Returns the GPUs of the containers of 'spec'. */
static unsigned int
count_gpus(const json_t *spec)
{
    const json_t *container, *limit;
    unsigned int n = 0;
    const char *name;
    size_t i;

    json_array_foreach(json_object_get(spec, "containers"), i, container)
    {
        json_t *limits =
            json_object_get(json_object_get(container, "resources"), "limits");

        json_object_foreach(limits, name, limit)
        {
            size_t length = strlen(name);

            if (length > 4 && !strcmp(name + length - 4, "/gpu")) {
                n += (json_is_string(limit)
                          ? strtoul(json_string_value(limit), NULL, 10)
                          : json_integer_value(limit));
            }
        }
    }
    return n < MAX_GPUS ? n : MAX_GPUS;
}

char *
pod_identity_find(const json_t *list, const char *uid,
                  struct pod_identity *identity)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        const json_t *meta = json_object_get(item, "metadata");
        const char *own = get(meta, "uid");
        const struct pod pod = {
            .name = get(meta, "name"),
            .space = get(meta, "namespace"),
            .labels = json_object_get(meta, "labels"),
            .annotations = json_object_get(meta, "annotations"),
        };

        if (own && !strcmp(own, uid) && pod.name && pod.space) {
            char *error = pod_identity_read(&pod, identity), *text;

            identity->gpus = count_gpus(json_object_get(item, "spec"));
            text =
                error ? message("%.63s/%.253s: %s", pod.space, pod.name, error)
                      : NULL;
            free(error);
            return text;
        }
    }
    identity->job[0] = '\0';
    return NULL;
}
