/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/flow-set.h"

#include <stdlib.h>
#include <string.h>

#include "agent/actuate/slot-table.h"
#include "agent/identify/flow-table.h"
#include "util.h"

struct set_flow {
    struct hmap_node node;      /* In struct flow_set's 'flows', by 'key'. */
    struct ovs_list changed;    /* In struct flow_set's, empty if not. */
    struct shim_flow_key key;
    char job[64];               /* Whose it is to be, empty if it is to go. */
    uint16_t installed;         /* Slot that the shim has it in, 0 if it does
                                 * not have it. */
};

void
flow_set_init(struct flow_set *fs)
{
    hmap_init(&fs->flows);
    ovs_list_init(&fs->changed);
}

static void
remove_flow(struct flow_set *fs, struct set_flow *flow)
{
    hmap_remove(&fs->flows, &flow->node);
    ovs_list_remove(&flow->changed);
    free(flow);
}

static void
mark(struct flow_set *fs, struct set_flow *flow)
{
    if (ovs_list_is_empty(&flow->changed)) {
        ovs_list_push_back(&fs->changed, &flow->changed);
    }
}

/* Looks at all flows again: the slots of their jobs may be others. */
void
flow_set_recheck(struct flow_set *fs)
{
    struct set_flow *flow;

    HMAP_FOR_EACH (flow, node, &fs->flows) {
        mark(fs, flow);
    }
}

/* True if there may be differences. */
bool
flow_set_is_dirty(const struct flow_set *fs)
{
    return !ovs_list_is_empty(&fs->changed);
}

void
flow_set_uninit(struct flow_set *fs)
{
    struct set_flow *flow;

    HMAP_FOR_EACH_SAFE (flow, node, &fs->flows) {
        remove_flow(fs, flow);
    }
    hmap_destroy(&fs->flows);
}

static struct set_flow *
find(const struct flow_set *fs, const struct shim_flow_key *key)
{
    struct set_flow *flow;

    HMAP_FOR_EACH_WITH_HASH (flow, node, flow_key_hash(key), &fs->flows) {
        if (flow_key_equal(&flow->key, key)) {
            return flow;
        }
    }
    return NULL;
}

static struct set_flow *
find_or_add(struct flow_set *fs, const struct shim_flow_key *key)
{
    struct set_flow *flow = find(fs, key);

    if (!flow) {
        flow = xzalloc(sizeof *flow);
        flow->key = *key;
        ovs_list_init(&flow->changed);
        hmap_insert(&fs->flows, &flow->node, flow_key_hash(key));
    }
    mark(fs, flow);
    return flow;
}

/* Wants the flow with 'key' in the slot of 'job'. */
void
flow_set_want(struct flow_set *fs, const struct shim_flow_key *key,
              const char *job)
{
    struct set_flow *flow = find_or_add(fs, key);

    ovs_strlcpy(flow->job, job, sizeof flow->job);
}

/* Wants no flow with 'key'. */
void
flow_set_unwant(struct flow_set *fs, const struct shim_flow_key *key)
{
    struct set_flow *flow = find(fs, key);

    if (flow) {
        flow->job[0] = '\0';
        mark(fs, flow);
    }
}

/* Notes that the shim does not have the flow with 'key' after all.  Returns
 * false if it is not wanted anyhow. */
bool
flow_set_missed(struct flow_set *fs, const struct shim_flow_key *key)
{
    struct set_flow *flow = find(fs, key);

    if (!flow || !flow->job[0]) {
        return false;
    }
    flow->installed = 0;
    mark(fs, flow);
    return true;
}

/* Takes over the 'n' flows in 'flows' as what the shim has. */
void
flow_set_adopt(struct flow_set *fs, const struct shim_flow *flows, size_t n)
{
    struct set_flow *flow;

    HMAP_FOR_EACH (flow, node, &fs->flows) {
        flow->installed = 0;
        mark(fs, flow);
    }
    flow_set_adopt_more(fs, flows, n);
}

/* The same with more of them. */
void
flow_set_adopt_more(struct flow_set *fs, const struct shim_flow *flows,
                    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        find_or_add(fs, &flows[i].key)->installed = flows[i].slot;
    }
}

/* Stores in '*changes' what has to be sent so that the shim has what is
 * wanted, and from now on takes it that the shim has it.  Returns true if that
 * is anything; not all of it may have had room. */
bool
flow_set_changes(struct flow_set *fs, const struct slot_table *slots,
                 struct flow_changes *changes)
{
    struct set_flow *flow;

    changes->n_add = changes->n_delete = 0;
    LIST_FOR_EACH_SAFE (flow, changed, &fs->changed) {
        uint16_t slot = flow->job[0] ? slot_table_number(slots, flow->job) : 0;

        if (changes->n_add >= FLOW_CHANGES_MAX
            || changes->n_delete >= FLOW_CHANGES_MAX) {
            return true;
        }
        ovs_list_remove(&flow->changed);
        ovs_list_init(&flow->changed);
        if (slot && slot != flow->installed) {
            struct shim_flow *add = &changes->add[changes->n_add++];

            memset(add, 0, sizeof *add);
            add->key = flow->key;
            flow->installed = add->slot = slot;
        } else if (!slot && flow->installed) {
            changes->delete[changes->n_delete++] = flow->key;
            flow->installed = 0;
        }
        if (!flow->job[0]) {
            remove_flow(fs, flow);
        }
    }
    return changes->n_add || changes->n_delete;
}
