/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/drivers/flow-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "byte-order.h"
#include "flow.h"
#include "hash.h"
#include "openvswitch/list.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofp-flow.h"
#include "openvswitch/ofp-group.h"
#include "openvswitch/ofp-match.h"
#include "openvswitch/ofp-monitor.h"
#include "openvswitch/ofpbuf.h"
#include "util.h"

/* A switch reports it when others delete a flow of ours. */
#define FLOW_FLAGS OFPUTIL_FF_SEND_FLOW_REM

struct flow_table *
flow_table_create(void)
{
    struct flow_table *ft = xmalloc(sizeof *ft);

    hmap_init(&ft->flows);
    hmap_init(&ft->groups);
    return ft;
}

static void
of_flow_destroy(struct of_flow *flow)
{
    minimatch_destroy(&flow->match);
    free(flow->ofpacts);
    free(flow);
}

void
flow_table_destroy(struct flow_table *ft)
{
    struct of_group *group;
    struct of_flow *flow;

    if (!ft) {
        return;
    }
    HMAP_FOR_EACH_POP (flow, node, &ft->flows) {
        of_flow_destroy(flow);
    }
    HMAP_FOR_EACH_POP (group, node, &ft->groups) {
        free(group);
    }
    hmap_destroy(&ft->flows);
    hmap_destroy(&ft->groups);
    free(ft);
}

static uint32_t
of_flow_hash(const struct of_flow *flow)
{
    return minimatch_hash(&flow->match,
                          hash_2words(flow->table, flow->priority));
}

/* Returns the flow of 'ft' that has the table, priority and match of 'like',
 * or NULL. */
const struct of_flow *
flow_table_find(const struct flow_table *ft, const struct of_flow *like)
{
    const struct of_flow *flow;

    HMAP_FOR_EACH_WITH_HASH (flow, node, of_flow_hash(like), &ft->flows) {
        if (flow->table == like->table && flow->priority == like->priority
            && minimatch_equal(&flow->match, &like->match)) {
            return flow;
        }
    }
    return NULL;
}

/* Returns a flow that has 'cookie', or NULL. */
const struct of_flow *
flow_table_find_cookie(const struct flow_table *ft, uint64_t cookie)
{
    const struct of_flow *flow;

    HMAP_FOR_EACH (flow, node, &ft->flows) {
        if (flow->cookie == cookie) {
            return flow;
        }
    }
    return NULL;
}

/* Returns true if the flow that 'removed' is about, a flow-removed message, is
 * in 'ft'. */
bool
flow_table_names(const struct flow_table *ft, const struct ofp_header *removed)
{
    struct ofputil_flow_removed fr;
    struct of_flow like;
    bool found;

    if (ofputil_decode_flow_removed(&fr, removed)) {
        return false;
    }
    like.table = fr.table_id;
    like.priority = fr.priority;
    minimatch_init(&like.match, &fr.match);
    found = flow_table_find(ft, &like) != NULL;
    minimatch_destroy(&like.match);
    return found;
}

static struct of_group *
find_group(const struct flow_table *ft, uint32_t id)
{
    struct of_group *group;

    HMAP_FOR_EACH_WITH_HASH (group, node, hash_int(id, 0), &ft->groups) {
        if (group->id == id) {
            return group;
        }
    }
    return NULL;
}

/* Adds the flow of 'match' with the actions 'ofpacts'; one with the same
 * table, priority and match is replaced. */
struct of_flow *
flow_table_add_flow(struct flow_table *ft, uint8_t table, uint16_t priority,
                    uint64_t cookie, struct match *match,
                    const struct ofpbuf *ofpacts)
{
    struct of_flow *flow = xzalloc(sizeof *flow);
    struct of_flow *old;

    /* A dump has this in matches with an Ethernet type. */
    if (match->wc.masks.dl_type) {
        match_set_default_packet_type(match);
    }
    flow->table = table;
    flow->priority = priority;
    flow->cookie = cookie;
    minimatch_init(&flow->match, match);
    old = CONST_CAST(struct of_flow *, flow_table_find(ft, flow));
    if (old) {
        hmap_remove(&ft->flows, &old->node);
        of_flow_destroy(old);
    }
    flow->ofpacts_len = ofpacts->size;
    flow->ofpacts = xmemdup(ofpacts->data, ofpacts->size);
    hmap_insert(&ft->flows, &flow->node, of_flow_hash(flow));
    return flow;
}

static struct of_group *
add_group(struct flow_table *ft, uint32_t id)
{
    struct of_group *group = find_group(ft, id);

    if (!group) {
        group = xzalloc(sizeof *group);
        group->id = id;
        hmap_insert(&ft->groups, &group->node, hash_int(id, 0));
    }
    group->n_ports = 0;
    group->altered = false;
    return group;
}

/* Adds group 'id', that spreads flows over the 'n_ports' 'ports' in their
 * order; what is more than a group may have is left out. */
void
flow_table_add_group(struct flow_table *ft, uint32_t id,
                     const uint32_t *ports, size_t n_ports)
{
    struct of_group *group = add_group(ft, id);

    group->n_ports = MIN(n_ports, FLOW_GROUP_MAX_PORTS);
    memcpy(group->ports, ports, group->n_ports * sizeof *ports);
}

size_t
flow_table_count(const struct flow_table *ft)
{
    return hmap_count(&ft->flows) + hmap_count(&ft->groups);
}

static bool
flows_equal(const struct of_flow *a, const struct of_flow *b)
{
    return (a->cookie == b->cookie && a->altered == b->altered
            && ofpacts_equal(a->ofpacts, a->ofpacts_len,
                             b->ofpacts, b->ofpacts_len));
}

static bool
groups_equal(const struct of_group *a, const struct of_group *b)
{
    return (a->altered == b->altered && a->n_ports == b->n_ports
            && !memcmp(a->ports, b->ports, a->n_ports * sizeof *a->ports));
}

size_t
flow_table_n_applied(const struct flow_table *wanted,
                     const struct flow_table *there)
{
    const struct of_group *group;
    const struct of_flow *flow;
    size_t n = 0;

    HMAP_FOR_EACH (flow, node, &wanted->flows) {
        const struct of_flow *other = flow_table_find(there, flow);

        n += other && flows_equal(flow, other);
    }
    HMAP_FOR_EACH (group, node, &wanted->groups) {
        const struct of_group *other = find_group(there, group->id);

        n += other && groups_equal(group, other);
    }
    return n;
}

bool
flow_table_equal(const struct flow_table *a, const struct flow_table *b)
{
    return (hmap_count(&a->flows) == hmap_count(&b->flows)
            && hmap_count(&a->groups) == hmap_count(&b->groups)
            && flow_table_n_applied(a, b) == flow_table_count(a));
}

/* Requests a dump of our flows. */
struct ofpbuf *
flow_table_request(enum ofp_version version)
{
    struct ofputil_flow_stats_request fsr = {
        .table_id = OFPTT_ALL, .out_port = OFPP_ANY, .out_group = OFPG_ANY,
        .cookie = htonll(FLOW_COOKIE_BASE),
        .cookie_mask = htonll(FLOW_COOKIE_MASK)
    };

    match_init_catchall(&fsr.match);
    return ofputil_encode_flow_stats_request(
        &fsr, ofputil_protocol_from_ofp_version(version));
}

/* Adds our flows in 'reply', a message of a dump.  Returns 0, EPROTO if it is
 * invalid or E2BIG if there are more than FLOW_TABLE_MAX. */
int
flow_table_add_flows(struct flow_table *ft, struct ofpbuf *reply)
{
    struct ofputil_flow_stats fs;
    struct ofpbuf ofpacts;
    int retval;

    ofpbuf_init(&ofpacts, 256);
    while (!(retval = ofputil_decode_flow_stats_reply(&fs, reply, false,
                                                      &ofpacts))) {
        if ((ntohll(fs.cookie) & FLOW_COOKIE_MASK) == FLOW_COOKIE_BASE) {
            struct of_flow *flow = flow_table_add_flow(
                ft, fs.table_id, fs.priority, ntohll(fs.cookie), &fs.match,
                &ofpacts);

            flow->altered =
                fs.idle_timeout || fs.hard_timeout || fs.flags != FLOW_FLAGS;
            flow->packets = fs.packet_count;
            flow->bytes = fs.byte_count;
        }
        if (hmap_count(&ft->flows) > FLOW_TABLE_MAX) {
            break;
        }
    }
    ofpbuf_uninit(&ofpacts);
    return retval == EOF ? 0 : retval ? EPROTO : E2BIG;
}

/* Adds a dumped group.  A group of ours has buckets with one output each; any
 * other is marked as altered. */
static void
add_dumped_group(struct flow_table *ft, const struct ofputil_group_desc *gd)
{
    struct of_group *group = add_group(ft, gd->group_id);
    const struct ofputil_bucket *bucket;

    group->altered = gd->type != OFPGT11_SELECT;
    LIST_FOR_EACH (bucket, list_node, &gd->buckets) {
        const struct ofpact *a = bucket->ofpacts;

        if (group->n_ports == FLOW_GROUP_MAX_PORTS || !bucket->ofpacts_len
            || a->type != OFPACT_OUTPUT || bucket->weight != 1
            || ofpact_next(a) != ofpact_end(a, bucket->ofpacts_len)) {
            group->altered = true;
            break;
        }
        group->ports[group->n_ports++]
            = ofp_to_u16(ofpact_get_OUTPUT(a)->port);
    }
}

/* Adds our groups in 'reply', a message of a dump of group descriptions.
 * Returns as flow_table_add_flows(). */
int
flow_table_add_groups(struct flow_table *ft, struct ofpbuf *reply)
{
    const struct ofp_header *oh = reply->data;
    enum ofp_version version = oh->version;

    while (hmap_count(&ft->groups) <= FLOW_TABLE_MAX) {
        struct ofputil_group_desc gd;
        int retval = ofputil_decode_group_desc_reply(&gd, reply, version);

        if (retval) {
            return retval == EOF ? 0 : EPROTO;
        }
        if ((gd.group_id & 0xffff0000) == FLOW_GROUP_BASE) {
            add_dumped_group(ft, &gd);
        }
        ofputil_uninit_group_desc(&gd);
    }
    return E2BIG;
}

static struct ofpbuf *
encode_flow(const struct of_flow *flow, bool add,
            enum ofputil_protocol protocol)
{
    struct ofputil_flow_mod fm = {
        .match = flow->match, .priority = flow->priority,
        .command = add ? OFPFC_ADD : OFPFC_DELETE_STRICT,
        .new_cookie = add ? htonll(flow->cookie) : 0,
        .cookie = add ? 0 : htonll(FLOW_COOKIE_BASE),
        .cookie_mask = add ? 0 : htonll(FLOW_COOKIE_MASK),
        .buffer_id = UINT32_MAX, .out_port = OFPP_ANY, .out_group = OFPG_ANY,
        .table_id = flow->table, .flags = add ? FLOW_FLAGS : 0,
        .ofpacts = add ? flow->ofpacts : NULL,
        .ofpacts_len = add ? flow->ofpacts_len : 0
    };

    return ofputil_encode_flow_mod(&fm, protocol);
}

static struct ofpbuf *
encode_group(const struct of_group *group, uint16_t command,
             enum ofputil_protocol protocol)
{
    struct ofputil_bucket buckets[FLOW_GROUP_MAX_PORTS];
    struct ofpact_output outputs[FLOW_GROUP_MAX_PORTS];
    struct ofputil_group_mod gm = {
        .command = command, .type = OFPGT11_SELECT, .group_id = group->id,
        .command_bucket_id = OFPG15_BUCKET_ALL
    };

    ovs_list_init(&gm.buckets);
    for (size_t i = 0; command != OFPGC11_DELETE && i < group->n_ports; i++) {
        struct ofputil_bucket *bucket = &buckets[i];

        *bucket = (struct ofputil_bucket){ .weight = 1,
                                           .watch_port = OFPP_ANY,
                                           .watch_group = OFPG_ANY,
                                           .bucket_id = i,
                                           .ofpacts = &outputs[i].ofpact,
                                           .ofpacts_len = sizeof outputs[i] };
        ofpact_init_OUTPUT(&outputs[i]);
        outputs[i].port = u16_to_ofp(group->ports[i]);
        ovs_list_push_back(&gm.buckets, &bucket->list_node);
    }
    return ofputil_encode_group_mod(
        ofputil_protocol_to_ofp_version(protocol), &gm, NULL, -1);
}

static void
push(struct ovs_list *messages, struct ofpbuf *message, size_t *n)
{
    ovs_list_push_back(messages, &message->list_node);
    ++*n;
}

/* Appends messages that change 'there' into 'wanted' to 'messages', at most
 * 'max', in the order in which a switch must execute them: new flows are added
 * before old ones are deleted, and groups are deleted last, because a switch
 * deletes a group's flows with it.  Returns their number. */
size_t
flow_table_diff(const struct flow_table *wanted,
                const struct flow_table *there, enum ofputil_protocol protocol,
                size_t max, struct ovs_list *messages)
{
    const struct of_group *group;
    const struct of_flow *flow;
    size_t n = 0;

    HMAP_FOR_EACH (group, node, &wanted->groups) {
        const struct of_group *other = find_group(there, group->id);

        if (n < max && (!other || !groups_equal(group, other))) {
            push(messages, encode_group(group, other ? OFPGC11_MODIFY
                                        : OFPGC11_ADD, protocol), &n);
        }
    }
    HMAP_FOR_EACH (flow, node, &wanted->flows) {
        const struct of_flow *other = flow_table_find(there, flow);

        if (n < max && (!other || !flows_equal(flow, other))) {
            push(messages, encode_flow(flow, true, protocol), &n);
        }
    }
    HMAP_FOR_EACH (flow, node, &there->flows) {
        if (n < max && !flow_table_find(wanted, flow)) {
            push(messages, encode_flow(flow, false, protocol), &n);
        }
    }
    HMAP_FOR_EACH (group, node, &there->groups) {
        if (n < max && !find_group(wanted, group->id)) {
            push(messages, encode_group(group, OFPGC11_DELETE, protocol), &n);
        }
    }
    return n;
}
