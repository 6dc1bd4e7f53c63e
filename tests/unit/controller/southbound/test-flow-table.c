/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <errno.h>

#include "byte-order.h"
#include "controller/southbound/drivers/flow-table.h"
#include "flow.h"
#include "openvswitch/list.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofp-flow.h"
#include "openvswitch/ofp-group.h"
#include "openvswitch/ofp-monitor.h"
#include "openvswitch/ofp-msgs.h"
#include "openvswitch/ofpbuf.h"
#include "packets.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static void
add(struct flow_table *ft, uint32_t ip, uint64_t cookie, uint16_t port)
{
    struct ofpbuf ofpacts;
    struct match match;

    match_init_catchall(&match);
    match_set_dl_type(&match, htons(ETH_TYPE_IP));
    match_set_nw_dst(&match, htonl(ip));
    ofpbuf_init(&ofpacts, 64);
    ofpact_put_OUTPUT(&ofpacts)->port = u16_to_ofp(port);
    flow_table_add_flow(ft, 1, 100, cookie, &match, &ofpacts);
    ofpbuf_uninit(&ofpacts);
}

/* Returns the only reply in 'replies', as received from a connection. */
static struct ofpbuf *
received(struct ovs_list *replies)
{
    struct ofpbuf *reply = ofpbuf_from_list(ovs_list_pop_front(replies));
    struct ofpbuf *copy;

    assert_true(ovs_list_is_empty(replies));
    ofpmsg_update_length(reply);
    copy = ofpbuf_clone_data(reply->data, reply->size);
    ofpbuf_delete(reply);
    return copy;
}

/* Returns the reply to a dump of a switch with the flows of 'ft'. */
static struct ofpbuf *
dump_of(const struct flow_table *ft, uint16_t idle_timeout)
{
    struct ofpbuf *request = flow_table_request(OFP13_VERSION);
    const struct of_flow *flow;
    struct ovs_list replies;

    ofpmp_init(&replies, request->data);
    HMAP_FOR_EACH (flow, node, &ft->flows) {
        struct ofputil_flow_stats fs = {
            .cookie = htonll(flow->cookie),
            .table_id = flow->table,
            .priority = flow->priority,
            .idle_timeout = idle_timeout,
            .flags = OFPUTIL_FF_SEND_FLOW_REM,
            .packet_count = 7,
            .byte_count = 700,
            .ofpacts = flow->ofpacts,
            .ofpacts_len = flow->ofpacts_len,
        };

        minimatch_expand(&flow->match, &fs.match);
        ofputil_append_flow_stats_reply(&fs, &replies, NULL);
    }
    ofpbuf_delete(request);
    return received(&replies);
}

/* Returns a letter per message that changes 'there' into 'wanted': 'a'dd and
 * 'd'elete flows, 'A'dd, 'M'odify and 'D'elete groups. */
static char *
changes(const struct flow_table *wanted, const struct flow_table *there,
        size_t max)
{
    struct ovs_list messages = OVS_LIST_INITIALIZER(&messages);
    size_t n = flow_table_diff(wanted, there, OFPUTIL_P_OF13_OXM, max,
                               &messages);
    char *s = xzalloc(n + 1);
    struct ofpbuf *msg;
    size_t i = 0;

    LIST_FOR_EACH_POP (msg, list_node, &messages) {
        enum ofptype type;

        ofpmsg_update_length(msg);
        assert_int_equal(ofptype_decode(&type, msg->data), 0);
        if (type == OFPTYPE_FLOW_MOD) {
            struct ofputil_flow_mod fm;
            struct ofpbuf ofpacts;

            ofpbuf_init(&ofpacts, 64);
            assert_int_equal(ofputil_decode_flow_mod(
                                 &fm, msg->data, OFPUTIL_P_OF13_OXM, NULL,
                                 NULL, &ofpacts, u16_to_ofp(0xff00), 255), 0);
            s[i++] = fm.command == OFPFC_ADD ? 'a' : 'd';
            assert_int_equal(fm.flags, fm.command == OFPFC_ADD
                                           ? OFPUTIL_FF_SEND_FLOW_REM
                                           : 0);
            minimatch_destroy(&fm.match);
            ofpbuf_uninit(&ofpacts);
        } else {
            struct ofputil_group_mod gm;

            assert_int_equal(type, OFPTYPE_GROUP_MOD);
            assert_int_equal(ofputil_decode_group_mod(msg->data, &gm), 0);
            s[i++] = (gm.command == OFPGC11_ADD ? 'A'
                      : gm.command == OFPGC11_MODIFY ? 'M' : 'D');
            ofputil_uninit_group_mod(&gm);
        }
        ofpbuf_delete(msg);
    }
    assert_int_equal(i, n);
    return s;
}

static void
assert_changes(const struct flow_table *wanted,
               const struct flow_table *there, size_t max, const char *want)
{
    assert_is(changes(wanted, there, max), want);
}

UNIT_TEST(equal_tables_need_no_messages)
{
    struct flow_table *wanted = flow_table_create();
    struct flow_table *there = flow_table_create();
    struct ofpbuf *reply;

    for (int i = 0; i < 50; i++) {
        add(wanted, 0x0a000000 + i, FLOW_COOKIE(FLOW_ROUTE, i), i + 1);
    }
    reply = dump_of(wanted, 0);
    assert_int_equal(flow_table_add_flows(there, reply), 0);
    ofpbuf_delete(reply);
    assert_int_equal(flow_table_count(there), 50);
    assert_changes(wanted, there, 100, "");
    assert_int_equal(flow_table_n_applied(wanted, there), 50);
    assert_true(flow_table_equal(wanted, there));
    flow_table_destroy(wanted);
    flow_table_destroy(there);
}

UNIT_TEST(only_differences_are_sent)
{
    static const uint32_t ports[] = { 10, 11 };
    struct flow_table *wanted = flow_table_create();
    struct flow_table *there = flow_table_create();
    struct flow_table *copy = flow_table_create();

    add(wanted, 1, FLOW_COOKIE(FLOW_ROUTE, 1), 1);
    add(there, 2, FLOW_COOKIE(FLOW_ROUTE, 2), 2);
    flow_table_add_group(wanted, FLOW_GROUP(1), ports, 2);
    flow_table_add_group(there, FLOW_GROUP(2), ports, 2);
    assert_changes(wanted, there, 100, "AadD");
    assert_changes(wanted, there, 2, "Aa");
    assert_int_equal(flow_table_n_applied(wanted, there), 0);

    add(copy, 1, FLOW_COOKIE(FLOW_ROUTE, 1), 1);
    flow_table_add_group(copy, FLOW_GROUP(1), ports, 2);
    assert_true(flow_table_equal(wanted, copy));
    add(copy, 1, FLOW_COOKIE(FLOW_ROUTE, 1), 9);
    assert_changes(wanted, copy, 100, "a");
    add(copy, 1, FLOW_COOKIE(FLOW_NEXT, 1), 1);
    assert_changes(wanted, copy, 100, "a");
    add(copy, 1, FLOW_COOKIE(FLOW_ROUTE, 1), 1);
    flow_table_add_group(copy, FLOW_GROUP(1), ports, 1);
    assert_changes(wanted, copy, 100, "M");
    assert_int_equal(flow_table_n_applied(wanted, copy), 1);
    flow_table_destroy(copy);
    flow_table_destroy(wanted);
    flow_table_destroy(there);
}

UNIT_TEST(a_changed_timeout_is_repaired_and_foreign_flows_stay)
{
    struct flow_table *wanted = flow_table_create();
    struct flow_table *others = flow_table_create();
    struct flow_table *there = flow_table_create();
    struct ofpbuf *reply;

    add(wanted, 1, FLOW_COOKIE(FLOW_ROUTE, 1), 1);
    reply = dump_of(wanted, 60);
    assert_int_equal(flow_table_add_flows(there, reply), 0);
    ofpbuf_delete(reply);
    assert_changes(wanted, there, 100, "a");

    add(others, 3, 0x1234, 1);
    reply = dump_of(others, 0);
    assert_int_equal(flow_table_add_flows(there, reply), 0);
    ofpbuf_delete(reply);
    assert_int_equal(flow_table_count(there), 1);
    flow_table_destroy(wanted);
    flow_table_destroy(others);
    flow_table_destroy(there);
}

UNIT_TEST(dumped_groups_are_compared)
{
    static const uint32_t ports[] = { 10, 11, 12 };
    struct ofpbuf *request = ofputil_encode_group_desc_request(OFP13_VERSION,
                                                               OFPG_ALL);
    struct flow_table *wanted = flow_table_create();
    struct flow_table *there = flow_table_create();
    struct ofputil_group_desc gd = { .type = OFPGT11_SELECT };
    struct ofputil_bucket buckets[3];
    struct ofpact_output outputs[3];
    struct ovs_list replies;
    struct ofpbuf *reply;

    ovs_list_init(&gd.buckets);
    for (int i = 0; i < 3; i++) {
        ofpact_init_OUTPUT(&outputs[i]);
        outputs[i].port = u16_to_ofp(ports[i]);
        buckets[i] = (struct ofputil_bucket) {
            .weight = 1, .watch_port = OFPP_ANY, .watch_group = OFPG_ANY,
            .bucket_id = i, .ofpacts = &outputs[i].ofpact,
            .ofpacts_len = sizeof outputs[i],
        };
        ovs_list_push_back(&gd.buckets, &buckets[i].list_node);
    }
    ofpmp_init(&replies, request->data);
    gd.group_id = FLOW_GROUP(5);
    ofputil_append_group_desc_reply(&gd, &gd.buckets, &replies);
    gd.group_id = 5;
    ofputil_append_group_desc_reply(&gd, &gd.buckets, &replies);
    gd.group_id = FLOW_GROUP(6);
    gd.type = OFPGT11_ALL;
    ofputil_append_group_desc_reply(&gd, &gd.buckets, &replies);
    reply = received(&replies);
    assert_int_equal(flow_table_add_groups(there, reply), 0);
    ofpbuf_delete(reply);
    assert_int_equal(flow_table_count(there), 2);

    flow_table_add_group(wanted, FLOW_GROUP(5), ports, 3);
    flow_table_add_group(wanted, FLOW_GROUP(6), ports, 3);
    assert_int_equal(flow_table_n_applied(wanted, there), 1);
    assert_changes(wanted, there, 100, "M");
    ofpbuf_delete(request);
    flow_table_destroy(wanted);
    flow_table_destroy(there);
}

static bool
names(const struct flow_table *ft, const struct flow_table *removed,
      int priority)
{
    const struct of_flow *flow =
        CONTAINER_OF(hmap_first(&removed->flows), struct of_flow, node);
    struct ofputil_flow_removed fr = {
        .cookie = htonll(flow->cookie),
        .priority = priority,
        .reason = OFPRR_DELETE,
        .table_id = flow->table,
    };
    struct ofpbuf *msg;
    bool found;

    minimatch_expand(&flow->match, &fr.match);
    msg = ofputil_encode_flow_removed(&fr, OFPUTIL_P_OF13_OXM);
    ofpmsg_update_length(msg);
    found = flow_table_names(ft, msg->data);
    ofpbuf_delete(msg);
    return found;
}

UNIT_TEST(a_removed_flow_is_found_by_its_match_and_priority)
{
    struct flow_table *wanted = flow_table_create();
    struct flow_table *removed = flow_table_create();

    add(wanted, 1, FLOW_COOKIE(FLOW_ROUTE, 1), 1);
    add(wanted, 2, FLOW_COOKIE(FLOW_ROUTE, 2), 1);
    add(removed, 2, FLOW_COOKIE(FLOW_ROUTE, 2), 1);
    assert_true(names(wanted, removed, 100));
    assert_false(names(wanted, removed, 101));
    flow_table_destroy(removed);
    removed = flow_table_create();
    add(removed, 3, FLOW_COOKIE(FLOW_ROUTE, 2), 1);
    assert_false(names(wanted, removed, 100));
    flow_table_destroy(removed);
    flow_table_destroy(wanted);
}

UNIT_TEST(a_truncated_dump_is_refused)
{
    struct flow_table *wanted = flow_table_create();
    struct ofpbuf *whole;

    for (int i = 0; i < 3; i++) {
        add(wanted, i + 1, FLOW_COOKIE(FLOW_ROUTE, i), 1);
    }
    whole = dump_of(wanted, 0);
    for (size_t size = sizeof(struct ofp_header) + 9; size < whole->size;
         size++) {
        struct flow_table *there = flow_table_create();
        struct ofpbuf *part = ofpbuf_clone_data(whole->data, size);
        size_t n;
        int error;

        ofpmsg_update_length(part);
        error = flow_table_add_flows(there, part);
        n = flow_table_count(there);
        assert_true(n < 3);
        assert_true(error == EPROTO || !error);
        ofpbuf_delete(part);
        flow_table_destroy(there);
    }
    ofpbuf_delete(whole);
    flow_table_destroy(wanted);
}
