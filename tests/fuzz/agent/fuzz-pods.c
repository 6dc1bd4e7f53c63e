/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the list of a node's pods, as stagecoach-pods reads it. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/pod-identity.h"
#include "base/name.h"
#include "tests/fuzz/must.h"

/* Checks that the agent accepts what it is called with. */
static void
check_identity(const struct pod_identity *id)
{
    must(name_is_valid(id->job));
    must(name_is_valid(id->cojob));
    must(id->rung >= -1 && id->rung <= 1000);
}

/* Looks up the pods of 'list'. */
static void
check_list(const json_t *list)
{
    const json_t *item;
    struct pod_identity id;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        const json_t *meta = json_object_get(item, "metadata");
        const char *uid = json_string_value(json_object_get(meta, "uid"));
        char *error = uid ? pod_identity_find(list, uid, &id) : NULL;

        must(!error || !strchr(error, '\n'));
        free(error);
        if (uid && id.job[0]) {
            check_identity(&id);
        }
    }
    must(!pod_identity_find(list, "", &id) && !id.job[0]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_bytes(data, size);
    json_t *json = json_loadb(text, size, 0, NULL);

    check_list(json);
    json_decref(json);
    free(text);
    return 0;
}
