/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/users.h"

#include <stdlib.h>
#include <string.h>

#include "agent/identify/process.h"
#include "agent/launch/launch.h"
#include "hash.h"
#include "util.h"
#include "wire/json-put.h"

#define LATE_MS 60000 /* Users are reported after a refusal. */

void
users_init(struct users *users)
{
    memset(users, 0, sizeof *users);
    hmap_init(&users->all);
    users->questions.size = 16384;
    users->claims.size = 4096;
}

void
users_uninit(struct users *users)
{
    struct user *user;

    HMAP_FOR_EACH_POP(user, node, &users->all)
    {
        free(user);
    }
    hmap_destroy(&users->all);
}

struct user *
users_find(struct users *users, uint64_t uid, pid_t pid)
{
    char path[4096], pod[USERS_POD_SIZE];
    struct user *user;
    uint32_t hash;

    if (pid && users->cgroup_mount && process_cgroup(pid, path, sizeof path)
        && pod_path_find(users->cgroup_mount, path, pod)) {
        uid = 0;
    } else {
        pod[0] = '\0';
    }
    hash = hash_string(pod, uid);
    HMAP_FOR_EACH_WITH_HASH(user, node, hash, &users->all)
    {
        if (user->uid == uid && !strcmp(user->pod, pod)) {
            return user;
        }
    }
    user = xzalloc(sizeof *user);
    user->uid = uid;
    ovs_strlcpy(user->pod, pod, sizeof user->pod);
    ovs_list_init(&user->waiting);
    ovs_list_init(&user->idle);
    hmap_insert(&users->all, &user->node, hash);
    return user;
}

void
users_run(struct users *users, long long now)
{
    struct user *user;

    HMAP_FOR_EACH_SAFE(user, node, &users->all)
    {
        uint64_t n_refused =
            user->n_other + user->questions.n_refused + user->claims.n_refused;

        if (n_refused > user->n_refused) {
            user->refused_at = now;
        } else if (now - user->refused_at > LATE_MS) {
            user->refused_at = 0;
        }
        user->n_refused = n_refused;
        if (!user->questions.n && !user->claims.n && !user->refused_at) {
            hmap_remove(&users->all, &user->node);
            free(user);
        }
    }
}

struct json *
users_to_json(const struct users *users)
{
    struct json *array = json_array_create_empty();
    const struct user *user;

    HMAP_FOR_EACH (user, node, &users->all) {
        struct json *json;

        if (!user->refused_at || array->array.n == USERS_MAX_REPORTED) {
            continue;
        }
        json = json_object_create();
        if (user->pod[0]) {
            json_object_put_string(json, "pod", user->pod);
        } else {
            json_put_integer(json, "uid", user->uid);
        }
        json_put_integer(json, "entries", user->questions.n + user->claims.n);
        json_put_integer(json, "refused", user->n_refused);
        json_array_add(array, json);
    }
    return array;
}
