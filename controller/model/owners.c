/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/owners.h"

#include <inttypes.h>
#include <math.h>
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
        owner->name = shash_add(owners, name, owner)->name;
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
owners_refuse(struct shash *owners, const char *user, uint64_t uid,
              const char *why)
{
    struct owner *owner =
        (shash_count(owners) < OWNERS_MAX ? owners_get(owners, user, uid)
                                          : NULL);

    if (owner) {
        owner->refused++;
        owner->refused_at = time_msec();
        free(owner->refusal);
        owner->refusal = xstrdup(why);
    }
}

const char *
owner_refusal(const struct owner *owner)
{
    return (owner && owner->refusal
                    && time_msec() < owner->refused_at + OWNER_REFUSED_MS
                ? owner->refusal
                : NULL);
}

double
owner_served(const struct owner *owner, double memory_s)
{
    double age = time_msec() / 1000.0 - owner->account.at;

    return memory_s > 0 ? owner->account.total * exp2(-age / memory_s) : 0;
}

static void
forget(struct shash *owners, struct shash_node *node)
{
    struct owner *owner = node->data;

    free(owner->refusal);
    free(owner);
    shash_delete(owners, node);
}

void
owners_forget(struct shash *owners, double memory_s)
{
    double now = time_msec() / 1000.0;
    struct shash_node *node;

    SHASH_FOR_EACH_SAFE(node, owners)
    {
        const struct owner *owner = node->data;

        if (!owner->n_cojobs && owner->stored && !owner_refusal(owner)
            && now > owner->account.at + FORGOTTEN * memory_s) {
            forget(owners, node);
        }
    }
}

void
owners_destroy(struct shash *owners)
{
    struct shash_node *node;

    SHASH_FOR_EACH_SAFE(node, owners)
    {
        forget(owners, node);
    }
    shash_destroy(owners);
}
