/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-identity.h"

#include <stdlib.h>
#include <string.h>

#include "agent/launch/launch.h"
#include "base/memory.h"
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
    cgroup_name_fit(job ? job : "", identity->job);
    cgroup_name_fit(stage.cojob[0] ? stage.cojob : cojob ? cojob : pod->space,
                 identity->cojob);
    if (!identity->cojob[0]) {
        identity->job[0] = '\0';
    }
    return error;
}

/* Lists. */

/* A pod of a job. */
struct pod_list_entry {
    char uid[37];
    struct pod_identity identity;
};

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

/* Adds the pod 'item' if it belongs to a job.  'list' has space for it. */
static void
add_item(struct pod_list *list, const json_t *item)
{
    const json_t *meta = json_object_get(item, "metadata");
    const char *uid = json_string_value(json_object_get(meta, "uid"));
    const char *name = json_string_value(json_object_get(meta, "name"));
    const char *space = json_string_value(json_object_get(meta, "namespace"));
    struct pod_list_entry *entry = &list->entries[list->n];
    struct pod pod = {
        .name = name,
        .space = space,
        .labels = json_object_get(meta, "labels"),
        .annotations = json_object_get(meta, "annotations"),
    };
    char *error;

    if (!uid || strlen(uid) >= sizeof entry->uid || !name || !space) {
        return;
    }
    error = pod_identity_read(&pod, &entry->identity);
    entry->identity.gpus = count_gpus(json_object_get(item, "spec"));
    if (error) {
        if (!list->n_bad++) {
            list->complaint = message("%.63s/%.253s: %s", space, name, error);
        }
        free(error);
    }
    if (entry->identity.job[0]) {
        strcpy(entry->uid, uid);
        list->n++;
    }
}

char *
pod_list_read(const char *place, const char *text, size_t size,
              struct pod_list **listp)
{
    json_error_t at;
    json_t *json = json_loadb(text, size, 0, &at);
    const json_t *items = json_object_get(json, "items");
    struct pod_list *list;
    const json_t *item;
    size_t i;

    *listp = NULL;
    if (!json) {
        return message("%s:%d:%d: %s, a list of pods is allowed", place,
                       at.line, at.column, make_printable(at.text));
    }
    if (!json_is_array(items)) {
        json_decref(json);
        return message("%s: /items: it is missing or not a list, a list of "
                       "pods is allowed", place);
    }
    list = allocate(1, sizeof *list);
    list->entries = allocate(json_array_size(items) + 1,
                             sizeof *list->entries);
    json_array_foreach (items, i, item) {
        add_item(list, item);
    }
    json_decref(json);
    *listp = list;
    return NULL;
}

void
pod_list_destroy(struct pod_list *list)
{
    if (list) {
        free(list->complaint);
        free(list->entries);
        free(list);
    }
}

const struct pod_identity *
pod_list_find(const struct pod_list *list, const char *uid)
{
    for (size_t i = 0; i < list->n; i++) {
        if (!strcmp(list->entries[i].uid, uid)) {
            return &list->entries[i].identity;
        }
    }
    return NULL;
}
