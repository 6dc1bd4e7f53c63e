/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/owners.h"

#include <inttypes.h>
#include <stdlib.h>

#include "openvswitch/shash.h"
#include "timeval.h"
#include "util.h"

/* Half-lives after which nothing counts. */
#define FORGOTTEN 20

struct owner *
owners_find(struct shash *owners, const char *name)
{
    struct owner *owner = shash_find_data(owners, name);

    if (!owner) {
        owner = xzalloc(sizeof *owner);
        owner->stored = true;
        shash_add(owners, name, owner);
    }
    return owner;
}

struct owner *
owners_get(struct shash *owners, const char *user, uint64_t uid)
{
    char *name = (uid             ? xasprintf("%" PRIu64, uid)
                  : user && *user ? xasprintf("@%s", user)
                                  : NULL);
    struct owner *owner = name ? owners_find(owners, name) : NULL;

    free(name);
    return owner;
}

void
owners_add(struct owner *owner, double work, double memory_s)
{
    if (owner && work > 0 && memory_s > 0) {
        account_add(&owner->account, work, time_msec() / 1000.0, memory_s);
        owner->stored = false;
        owner->written = false;
    }
}

void
owners_forget(struct shash *owners, double memory_s)
{
    double now = time_msec() / 1000.0;
    struct shash_node *node;

    SHASH_FOR_EACH_SAFE(node, owners)
    {
        const struct owner *owner = node->data;

        if (!owner->n_cojobs && owner->stored
            && now > owner->account.at + FORGOTTEN * memory_s) {
            free(node->data);
            shash_delete(owners, node);
        }
    }
}
