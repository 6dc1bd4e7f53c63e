/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/launch.h"
#include "agent/launch/pod-labels.h"
#include "base/memory.h"
#include "wire/agent-call.h"
#include "wire/cgroup-path.h"

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

char *
pod_identity_read(const struct pod *pod, struct pod_identity *identity)
{
    const char *text = get(pod->annotations, STAGE);
    struct stage_name stage = { "", -1 };
    const char *own = get(pod->labels, JOB);
    const char *job = own ? own : get(pod->annotations, JOB);
    const char *cojob =
        pod_labels_find("search", pod->labels, pod->annotations, false);
    char *error = text ? stage_name_parse(STAGE, text, '/', &stage) : NULL;
    bool annotated = text && !error;

    job =
        job ? job
            : pod_labels_find("job", pod->labels, pod->annotations, annotated);
    job = !job && annotated ? pod->name : job;
    identity->rung = stage.rung;
    identity->gpus = 0;
    snprintf(identity->space, sizeof identity->space, "%s", pod->space);
    cgroup_name_fit(job ? job : "", identity->job);
    cgroup_name_fit(stage.cojob[0] ? stage.cojob : cojob ? cojob : pod->space,
                 identity->cojob);
    if (!identity->cojob[0]) {
        identity->job[0] = '\0';
    }
    return error;
}

int
pod_identity_claim(const struct pod_identity *id, bool claims,
                   const char *kind, const char *place, const char *rundir,
                   long long until)
{
    const char *words[9] = { claims ? "agent/claim" : "agent/unclaim",
                             "launcher",
                             id->cojob,
                             id->job,
                             kind,
                             place };
    char space[80], rung[24], gpus[24];
    size_t n = 6;

    if (claims && id->space[0]) {
        snprintf(space, sizeof space, "namespace=%s", id->space);
        words[n++] = space;
    }
    if (claims && id->rung >= 0) {
        snprintf(rung, sizeof rung, "rung=%d", id->rung);
        words[n++] = rung;
    }
    if (claims && id->gpus) {
        snprintf(gpus, sizeof gpus, "gpus=%u", id->gpus);
        words[n++] = gpus;
    }
    return agent_call(rundir, until, words, n, NULL);
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
