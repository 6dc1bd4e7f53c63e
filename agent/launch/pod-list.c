/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-list.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* A pod of a job. */
struct pod_list_entry {
    char uid[37];
    struct pod_identity identity;
};

static int
compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct pod_list_entry *) a)->uid,
                  ((const struct pod_list_entry *) b)->uid);
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
                       at.line, at.column, at.text);
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
    qsort(list->entries, list->n, sizeof *list->entries, compare_entries);
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
    const struct pod_list_entry *entry;
    struct pod_list_entry key;

    if (strlen(uid) >= sizeof key.uid) {
        return NULL;
    }
    strcpy(key.uid, uid);
    entry = bsearch(&key, list->entries, list->n, sizeof key,
                    compare_entries);
    return entry ? &entry->identity : NULL;
}
