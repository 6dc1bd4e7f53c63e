/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/drivers/openflow-messages.h"

#include "byte-order.h"
#include "controller/southbound/drivers/flow-table.h"
#include "flow.h"
#include "openvswitch/list.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofp-bundle.h"
#include "openvswitch/ofp-connection.h"
#include "openvswitch/ofp-flow.h"
#include "openvswitch/ofp-group.h"
#include "openvswitch/ofp-msgs.h"
#include "openvswitch/ofp-packet.h"
#include "openvswitch/ofp-port.h"
#include "openvswitch/ofp-switch.h"
#include "openvswitch/ofp-util.h"
#include "openvswitch/ofpbuf.h"

struct ofpbuf *
openflow_role_request(enum ofp_version version, uint64_t generation)
{
    struct ofpbuf *msg = ofpraw_alloc(OFPRAW_OFPT12_ROLE_REQUEST, version,
                                      0);
    struct ofp12_role_request *role = ofpbuf_put_zeros(msg, sizeof *role);

    role->role = htonl(OFPCR12_ROLE_PRIMARY);
    role->generation_id = htonll(generation);
    return msg;
}

struct ofpbuf *
openflow_set_async(enum ofp_version version, bool packets)
{
    struct ofputil_async_cfg cfg = OFPUTIL_ASYNC_CFG_INIT;
    uint32_t types = (1u << OAM_PACKET_IN | 1u << OAM_FLOW_REMOVED
                      | 1u << OAM_PORT_STATUS);

    cfg.primary[OAM_PACKET_IN] = packets ? 1u << OFPR_ACTION : 0;
    cfg.primary[OAM_PORT_STATUS] = (1u << OFPPR_ADD | 1u << OFPPR_DELETE
                                    | 1u << OFPPR_MODIFY);
    cfg.secondary[OAM_PORT_STATUS] = cfg.primary[OAM_PORT_STATUS];
    if (version >= OFP14_VERSION) {
        types |= 1u << OAM_ROLE_STATUS;
        cfg.primary[OAM_ROLE_STATUS] = 1u << OFPCRR_PRIMARY_REQUEST;
        cfg.secondary[OAM_ROLE_STATUS] = 1u << OFPCRR_PRIMARY_REQUEST;
    }
    return ofputil_encode_set_async_config(&cfg, types, version);
}

struct ofpbuf *
openflow_set_config(enum ofp_version version)
{
    static const struct ofputil_switch_config config = {
        .frag = OFPUTIL_FRAG_NORMAL,
        .invalid_ttl_to_controller = -1,
        .miss_send_len = 128,
    };

    return ofputil_encode_set_config(&config, version);
}

struct ofpbuf *
openflow_packet_out(enum ofp_version version, uint32_t port,
                    const void *packet, size_t size)
{
    struct ofputil_packet_out po = {
        .packet = packet,
        .packet_len = size,
        .buffer_id = UINT32_MAX,
    };
    struct ofpbuf ofpacts, *msg;

    match_init_catchall(&po.flow_metadata);
    match_set_in_port(&po.flow_metadata, OFPP_CONTROLLER);
    ofpbuf_init(&ofpacts, 64);
    ofpact_put_OUTPUT(&ofpacts)->port = u16_to_ofp(port);
    po.ofpacts = ofpacts.data;
    po.ofpacts_len = ofpacts.size;
    msg = ofputil_encode_packet_out(
        &po, ofputil_protocol_from_ofp_version(version));
    ofpbuf_uninit(&ofpacts);
    return msg;
}

struct ofpbuf *
openflow_flows_request(enum ofp_version version)
{
    struct ofputil_flow_stats_request fsr = {
        .table_id = OFPTT_ALL,
        .out_port = OFPP_ANY,
        .out_group = OFPG_ANY,
        .cookie = htonll(FLOW_COOKIE_BASE),
        .cookie_mask = htonll(FLOW_COOKIE_MASK),
    };

    match_init_catchall(&fsr.match);
    return ofputil_encode_flow_stats_request(
        &fsr, ofputil_protocol_from_ofp_version(version));
}

void
openflow_barrier(struct ovs_list *messages, enum ofp_version version)
{
    ovs_list_push_back(messages,
                       &ofputil_encode_barrier_request(version)->list_node);
}

static struct ofpbuf *
bundle_control(enum ofp_version version, uint32_t id, uint16_t type)
{
    struct ofputil_bundle_ctrl_msg ctrl = {
        .bundle_id = id,
        .type = type,
        .flags = OFPBF_ORDERED | OFPBF_ATOMIC,
    };

    return ofputil_encode_bundle_ctrl_request(version, &ctrl);
}

void
openflow_bundle(struct ovs_list *messages, enum ofp_version version,
                uint32_t id)
{
    struct ovs_list bundle = OVS_LIST_INITIALIZER(&bundle);
    struct ofpbuf *msg;

    ovs_list_push_back(&bundle, &bundle_control(
                           version, id, OFPBCT_OPEN_REQUEST)->list_node);
    LIST_FOR_EACH_POP (msg, list_node, messages) {
        struct ofputil_bundle_add_msg add = {
            .bundle_id = id,
            .flags = OFPBF_ORDERED | OFPBF_ATOMIC,
        };

        ofpmsg_update_length(msg);
        add.msg = msg->data;
        ovs_list_push_back(&bundle, &ofputil_encode_bundle_add(
                               version, &add)->list_node);
        ofpbuf_delete(msg);
    }
    ovs_list_push_back(&bundle, &bundle_control(
                           version, id, OFPBCT_COMMIT_REQUEST)->list_node);
    ovs_list_push_back_all(messages, &bundle);
}
