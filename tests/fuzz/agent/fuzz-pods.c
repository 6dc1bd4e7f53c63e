/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the list of pods of a kubelet, as stagecoach-pods reads it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/pod-identity.h"
#include "tests/fuzz/must.h"
#include "wire/cgroup-path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that the agent accepts what it is called with. */
static void
check_identity(const struct pod_identity *id)
{
    must(cgroup_name_is_valid(id->job));
    must(cgroup_name_is_valid(id->cojob));
    must(id->rung >= -1 && id->rung <= 1000);
}

/* Checks that the pods of jobs, and no others, are found by their UIDs. */
static void
check_list(const struct pod_list *list, const json_t *items)
{
    const json_t *item;
    size_t i, n = 0;

    must(!list->n_bad == !list->complaint);
    must(list->n_bad <= json_array_size(items));
    must(!list->complaint || !strchr(list->complaint, '\n'));
    json_array_foreach (items, i, item) {
        const json_t *meta = json_object_get(item, "metadata");
        const char *uid = json_string_value(json_object_get(meta, "uid"));
        const struct pod_identity *id = uid ? pod_list_find(list, uid) : NULL;

        if (id) {
            check_identity(id);
            n++;
        }
    }
    must(n >= list->n);
    must(!pod_list_find(list, "no UID has thirty-seven or more letters"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_bytes(data, size);
    json_t *json = json_loadb(text, size, 0, NULL);
    struct pod_list *list;
    char *error = pod_list_read("/pods", text, size, &list);

    must(!error == !!list);
    if (list) {
        check_list(list, json_object_get(json, "items"));
    } else {
        must(json_is_array(json_object_get(json, "items")) == 0);
        must_be_message(error, "/pods:");
    }
    free(error);
    pod_list_destroy(list);
    json_decref(json);
    free(text);
    return 0;
}
