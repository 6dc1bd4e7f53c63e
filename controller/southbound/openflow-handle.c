/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/openflow-private.h"

#include <errno.h>
#include <inttypes.h>

#include "byte-order.h"
#include "controller/southbound/dial.h"
#include "controller/southbound/flow-table.h"
#include "controller/southbound/openflow-messages.h"
#include "flow.h"
#include "openvswitch/list.h"
#include "openvswitch/ofp-connection.h"
#include "openvswitch/ofp-errors.h"
#include "openvswitch/ofp-packet.h"
#include "openvswitch/ofp-port.h"
#include "openvswitch/ofp-print.h"
#include "openvswitch/ofp-switch.h"
#include "openvswitch/ofp-util.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/rconn.h"
#include "openvswitch/vlog.h"
#include "timeval.h"

VLOG_DEFINE_THIS_MODULE(openflow_handle);

#define CHECK_MSEC 1000         /* From one dump to the next. */
#define ANSWER_MSEC 10000       /* For one message of an answer. */
#define RETRY_MSEC 10000        /* Until a refused switch is asked again. */
#define MAX_CHANGES 2000        /* Sent between two dumps. */
#define DEMOTED "another controller has become primary"
#define MAX_FAILED 10           /* Beyond which intervals stay. */

enum ofp_version
openflow_version(const struct openflow *of)
{
    int v = rconn_get_version(of->rconn);

    return v > 0 ? v : OFP13_VERSION;
}

/* Sends 'msg' and makes its answer the one that 'state' waits for. */
void
openflow_request(struct openflow *of, struct ofpbuf *msg,
                 enum openflow_state state)
{
    of->xid = ((const struct ofp_header *) msg->data)->xid;
    of->state = state;
    of->deadline = time_msec() + ANSWER_MSEC;
    rconn_send(of->rconn, msg, NULL);
}

static void
set_down(struct openflow *of, const struct ofputil_phy_port *port, bool gone)
{
    unsigned int no = ofp_to_u16(port->port_no);
    bool down = gone || port->config & OFPUTIL_PC_PORT_DOWN
        || port->state & OFPUTIL_PS_LINK_DOWN;

    if (no < OPENFLOW_MAX_PORTS && bitmap_is_set(of->down, no) != down) {
        VLOG_INFO("%s: port %u is %s", of->target, no, down ? "down" : "up");
        bitmap_set(of->down, no, down);
        of->links++;
    }
}

/* We do not want the switch, or it does not want us, or what came cannot be
 * what a switch says: it is left alone for a while.  Takes 'reason' over. */
static void
openflow_refuse(struct openflow *of, char *reason)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 20);

    VLOG_WARN_RL(&rl, "%s: %s", of->target, reason);
    free(of->reason);
    of->reason = reason;
    of->state = ST_REFUSED;
    of->in_sync = false;
    of->next = time_msec() + RETRY_MSEC;
    rconn_disconnect(of->rconn);
}

/* Sends what differs between what is there and what is wanted.  The next dump
 * is the proof that it got there. */
static void
reconcile(struct openflow *of)
{
    struct ovs_list messages = OVS_LIST_INITIALIZER(&messages);
    enum ofp_version v = openflow_version(of);
    struct ofpbuf *msg;
    size_t n;

    n = flow_table_diff(of->wanted, of->there,
                        ofputil_protocol_from_ofp_version(v), MAX_CHANGES,
                        &messages);
    of->in_sync = !n;
    of->failed = n && of->sent ? MIN(of->failed + 1, MAX_FAILED) : 0;
    of->sent = n > 0;
    of->state = ST_IDLE;
    of->next = (n && !of->failed ? 0
                : time_msec() + CHECK_MSEC * MAX(1, of->failed));
    if (n) {
        VLOG_INFO("%s: %"PRIuSIZE" changes", of->target, n);
        if (v >= OFP14_VERSION) {
            openflow_bundle(&messages, v, ++of->bundle_id);
        } else {
            openflow_barrier(&messages, v);
        }
    }
    LIST_FOR_EACH_POP (msg, list_node, &messages) {
        rconn_send(of->rconn, msg, NULL);
    }
}

static void
handle_error(struct openflow *of, const struct ofp_header *oh)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 20);
    enum ofp_version v = openflow_version(of);

    if (ofperr_decode_msg(oh, NULL) == OFPERR_OFPBRC_IS_SECONDARY) {
        openflow_refuse(of, xstrdup(DEMOTED));
    } else if (of->state == ST_ROLE && oh->xid == of->xid) {
        openflow_refuse(of, xasprintf("refuses generation %"PRIu64": another "
                             "controller is newer", of->generation));
    } else if (of->state == ST_GROUPS && oh->xid == of->xid) {
        /* A switch without groups has none. */
        openflow_request(of, openflow_flows_request(v), ST_FLOWS);
    } else if (!VLOG_DROP_WARN(&rl)) {
        char *s = ofp_to_string(oh, ntohs(oh->length), NULL, NULL, 1);

        VLOG_WARN("%s: %s", of->target, s);
        free(s);
    }
}

static void
handle_role_status(struct openflow *of, const struct ofp_header *oh)
{
    struct ofputil_role_status rs;

    if (!ofputil_decode_role_status(oh, &rs)
        && rs.role == OFPCR12_ROLE_SECONDARY) {
        openflow_refuse(of, xstrdup(DEMOTED));
    }
}

static void
handle_features(struct openflow *of, const struct ofp_header *oh)
{
    struct ofputil_switch_features features;
    struct ofpbuf b = ofpbuf_const_initializer(oh, ntohs(oh->length));
    char *reason;

    if (ofputil_pull_switch_features(&b, &features)) {
        openflow_refuse(of, xstrdup("features that cannot be read"));
        return;
    }
    of->datapath = features.datapath_id;
    reason = (features.auxiliary_id
              ? xstrdup("its listener has auxiliary connections alone")
              : of->events.admit(&of->up, of->datapath, dial_peer(of->dial),
                                 of->aux));
    if (reason) {
        of->datapath = 0;
        openflow_refuse(of, reason);
    } else {
        openflow_request(of, openflow_role_request(openflow_version(of),
                                                   of->generation), ST_ROLE);
    }
}

static void
handle_ports(struct openflow *of, struct ofpbuf *msg)
{
    const struct ofp_header *oh = msg->data;
    bool more = ofpmp_more(oh);
    enum ofp_version v = oh->version;
    struct ofputil_phy_port port;
    struct ofpbuf b = ofpbuf_const_initializer(oh, ntohs(oh->length));
    int retval;

    ofpraw_pull_assert(&b);
    while (!(retval = ofputil_pull_phy_port(v, &b, &port))) {
        set_down(of, &port, false);
    }
    if (retval != EOF) {
        openflow_refuse(of, xstrdup("ports that cannot be read"));
    } else if (!more) {
        VLOG_INFO("%s: connected as primary of generation %"PRIu64,
                  of->target, of->generation);
        dial_settled(of->dial);
        of->state = ST_IDLE;
        of->next = 0;
    }
}

static void
handle_dump(struct openflow *of, struct ofpbuf *msg)
{
    enum ofp_version v = openflow_version(of);
    bool groups = of->state == ST_GROUPS;
    bool more = ofpmp_more(msg->data);
    int error = (groups ? flow_table_take_groups(of->dump, msg)
                 : flow_table_take_flows(of->dump, msg));

    of->deadline = time_msec() + ANSWER_MSEC;
    if (error) {
        openflow_refuse(of, xstrdup(error == E2BIG ? "a dump without end"
                           : "a dump that cannot be read"));
    } else if (!more && groups) {
        openflow_request(of, openflow_flows_request(v), ST_FLOWS);
    } else if (!more) {
        flow_table_destroy(of->there);
        of->there = of->dump;
        of->dump = NULL;
        of->n_applied = flow_table_n_applied(of->wanted, of->there);
        reconcile(of);
    }
}

static void
handle_port_status(struct openflow *of, const struct ofp_header *oh)
{
    struct ofputil_port_status ps;

    if (!ofputil_decode_port_status(oh, &ps)) {
        set_down(of, &ps.desc, ps.reason == OFPPR_DELETE);
    }
}

/* What a flow of ours sent here, is for who wants it. */
static void
handle_packet(struct openflow *of, const struct ofp_header *oh)
{
    struct ofputil_packet_in pin;
    uint32_t buffer_id;
    size_t total;

    if (!ofputil_decode_packet_in(oh, true, NULL, NULL, &pin, &total,
                                  &buffer_id, NULL)
        && (ntohll(pin.cookie) & FLOW_COOKIE_MASK) == FLOW_COOKIE_BASE) {
        ofp_port_t port = pin.flow_metadata.flow.in_port.ofp_port;

        of->events.packet(&of->up, ofp_to_u16(port), pin.packet,
                          pin.packet_len, of->aux);
    }
}

/* The type of answer that 'state' waits for. */
enum ofptype
openflow_answer_type(enum openflow_state state)
{
    switch (state) {
    case ST_FEATURES:
        return OFPTYPE_FEATURES_REPLY;
    case ST_ROLE:
        return OFPTYPE_ROLE_REPLY;
    case ST_PORTS:
        return OFPTYPE_PORT_DESC_STATS_REPLY;
    case ST_GROUPS:
        return OFPTYPE_GROUP_DESC_STATS_REPLY;
    case ST_FLOWS:
        return OFPTYPE_FLOW_STATS_REPLY;
    case ST_AWAY:
    case ST_IDLE:
    case ST_REFUSED:
        break;
    }
    return OFPTYPE_HELLO;       /* None: it is no answer. */
}

static void
handle_answer(struct openflow *of, struct ofpbuf *msg)
{
    enum ofp_version v = openflow_version(of);

    if (of->state == ST_FEATURES) {
        handle_features(of, msg->data);
    } else if (of->state == ST_ROLE) {
        rconn_send(of->rconn, openflow_set_config(v), NULL);
        rconn_send(of->rconn, openflow_set_async(v, of->events.packet), NULL);
        openflow_request(of, ofputil_encode_port_desc_stats_request(v,
                                                                OFPP_ANY),
                         ST_PORTS);
    } else if (of->state == ST_PORTS) {
        handle_ports(of, msg);
    } else {
        handle_dump(of, msg);
    }
}

void
openflow_handle(struct openflow *of, struct ofpbuf *msg)
{
    const struct ofp_header *oh = msg->data;
    enum ofptype type;

    if (ofptype_decode(&type, oh)) {
        return;
    }
    if (type == OFPTYPE_ECHO_REQUEST) {
        rconn_send(of->rconn, ofputil_encode_echo_reply(oh), NULL);
    } else if (type == OFPTYPE_ERROR) {
        handle_error(of, oh);
    } else if (type == OFPTYPE_ROLE_STATUS && of->state != ST_REFUSED) {
        handle_role_status(of, oh);
    } else if (type == OFPTYPE_PORT_STATUS && of->state != ST_FEATURES
               && of->state != ST_REFUSED) {
        handle_port_status(of, oh);
    } else if (type == OFPTYPE_PACKET_IN && of->events.packet
               && of->state >= ST_IDLE && of->state != ST_REFUSED) {
        handle_packet(of, oh);
    } else if (type != OFPTYPE_HELLO && type == openflow_answer_type(of->state)
               && oh->xid == of->xid) {
        handle_answer(of, msg);
    }
}
