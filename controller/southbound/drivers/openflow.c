/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/drivers/openflow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "bitmap.h"
#include "byte-order.h"
#include "controller/southbound/drivers/dial.h"
#include "controller/southbound/drivers/flow-table.h"
#include "flow.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofp-bundle.h"
#include "openvswitch/ofp-connection.h"
#include "openvswitch/ofp-errors.h"
#include "openvswitch/ofp-group.h"
#include "openvswitch/ofp-msgs.h"
#include "openvswitch/ofp-port.h"
#include "openvswitch/ofp-print.h"
#include "openvswitch/ofp-switch.h"
#include "openvswitch/ofp-util.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/rconn.h"
#include "openvswitch/vlog.h"
#include "socket-util.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

VLOG_DEFINE_THIS_MODULE(openflow);

#define VERSIONS (1u << OFP13_VERSION | 1u << OFP14_VERSION)
#define MAX_MESSAGES 50         /* Messages received in one openflow_run(). */
#define VERIFY_MSEC 300000      /* Interval of dumps without a cause. */
#define CHECK_MSEC 1000         /* Minimum interval of dumps with a cause. */
#define REPLY_MSEC 10000        /* Timeout for one message of a reply. */
#define RETRY_MSEC 10000        /* Delay before a refused switch is retried. */
#define MAX_CHANGES 2000        /* Changes sent between two dumps. */
#define MAX_FAILED 7            /* Limit of 'failed': a retry each minute. */
#define SILENT_FAILED                              \
    3 /* 'failed' of a switch that gives no error, \
       * when that becomes its reason: 3 s. */
#define DEMOTED "another controller has become primary"

/* State of the connection, in the order of its setup. */
enum openflow_state {
    ST_DISCONNECTED,
    ST_FEATURES, /* Waits for the features reply. */
    ST_ROLE,     /* Waits for the role reply. */
    ST_NEWEST,   /* Waits for the generation of the switch,
                  * which is newer than the leader's. */
    ST_PORTS,    /* Waits for the port descriptions. */
    ST_IDLE,     /* Primary; the next dump is due at 'next'. */
    ST_GROUPS,   /* Waits for the groups of a dump. */
    ST_FLOWS,    /* Waits for the flows of a dump. */
    ST_REFUSED,  /* By the switch or by us; retry at 'next'. */
};

/* The type of reply that each state waits for, OFPTYPE_HELLO for none. */
static const enum ofptype reply_types[] = {
    [ST_DISCONNECTED] = OFPTYPE_HELLO,
    [ST_FEATURES] = OFPTYPE_FEATURES_REPLY,
    [ST_ROLE] = OFPTYPE_ROLE_REPLY,
    [ST_NEWEST] = OFPTYPE_ROLE_REPLY,
    [ST_PORTS] = OFPTYPE_PORT_DESC_STATS_REPLY,
    [ST_IDLE] = OFPTYPE_HELLO,
    [ST_GROUPS] = OFPTYPE_GROUP_DESC_STATS_REPLY,
    [ST_FLOWS] = OFPTYPE_FLOW_STATS_REPLY,
    [ST_REFUSED] = OFPTYPE_HELLO,
};

struct openflow {
    struct driver up;
    char *target;
    struct dial *dial;          /* Opens connections. */
    struct rconn *rconn;        /* Keeps the current connection. */
    driver_admit_func *admit;
    void *aux;                  /* For 'admit'. */
    unsigned int seqno;         /* rconn's connection number for 'state'. */
    bool active;                /* After want(), until leave(). */
    uint64_t generation;        /* Leader's, for the role request. */
    uint64_t newest;            /* Of the switch, if it refused that; else
                                 * 0. */
    uint64_t datapath;          /* Datapath id, 0 if not known. */
    enum openflow_state state;
    char *reason;               /* Why it is refused, or why the last changes
                                 * failed; NULL after a dump as desired. */
    ovs_be32 xid;               /* Id of the request that 'state' waits for. */
    long long int deadline;     /* time_msec() when that request times out. */
    long long int next;         /* time_msec() of the next dump or retry. */
    bool in_sync;               /* The last dump was as desired. */
    unsigned int failed;        /* Consecutive dumps without the changes that
                                 * were sent before, up to MAX_FAILED. */
    bool sent;                  /* Changes were sent since the last dump. */
    uint32_t first_xid, last_xid; /* Of the messages of these changes. */
    unsigned int n_refused;       /* Errors to these changes. */
    enum ofperr refusal;          /* The first one. */
    long long int verified;     /* time_msec() of the last whole dump, or 0. */
    bool suspect;               /* Flows were deleted since the beginning of
                                 * the last dump. */
    uint32_t bundle_id;         /* Id of the last bundle. */
    struct flow_table *wanted;  /* Desired state. */
    struct flow_table *there;   /* State of the switch in the last dump. */
    size_t n_applied;           /* Entries of 'wanted' that are in 'there'. */
    struct flow_table *dump;    /* The dump that is being received, or NULL. */
    unsigned int links;         /* Incremented with each change of 'down'. */
    unsigned long down[BITMAP_N_LONGS(OPENFLOW_MAX_PORTS)];     /* Ports. */
};

static struct openflow *
openflow_cast(const struct driver *driver)
{
    return CONTAINER_OF(CONST_CAST(struct driver *, driver),
                        struct openflow, up);
}

static enum ofp_version
get_version(const struct openflow *of)
{
    int v = rconn_get_version(of->rconn);

    return v > 0 ? v : OFP13_VERSION;
}

static struct ofpbuf *
encode_role_request(enum ofp_version version,
                    enum ofp12_controller_role wanted, uint64_t generation)
{
    struct ofpbuf *msg = ofpraw_alloc(OFPRAW_OFPT12_ROLE_REQUEST, version, 0);
    struct ofp12_role_request *role = ofpbuf_put_zeros(msg, sizeof *role);

    role->role = htonl(wanted);
    role->generation_id = htonll(generation);
    return msg;
}

/* Requests asynchronous messages about ports, roles and flows that others
 * delete; no others. */
static struct ofpbuf *
encode_set_async(enum ofp_version version)
{
    struct ofputil_async_cfg cfg = OFPUTIL_ASYNC_CFG_INIT;
    uint32_t types = (1u << OAM_PACKET_IN | 1u << OAM_FLOW_REMOVED
                      | 1u << OAM_PORT_STATUS);

    cfg.primary[OAM_PACKET_IN] = 0;
    cfg.primary[OAM_FLOW_REMOVED] =
        1u << OFPRR_DELETE | 1u << OFPRR_GROUP_DELETE;
    cfg.primary[OAM_PORT_STATUS] = (1u << OFPPR_ADD | 1u << OFPPR_DELETE
                                    | 1u << OFPPR_MODIFY);
    cfg.secondary[OAM_PORT_STATUS] = cfg.primary[OAM_PORT_STATUS];
    if (version >= OFP14_VERSION) {
        types |= 1u << OAM_ROLE_STATUS;
        cfg.primary[OAM_FLOW_REMOVED] |= 1u << OFPRR_EVICTION;
        cfg.primary[OAM_ROLE_STATUS] = 1u << OFPCRR_PRIMARY_REQUEST;
        cfg.secondary[OAM_ROLE_STATUS] = 1u << OFPCRR_PRIMARY_REQUEST;
    }
    return ofputil_encode_set_async_config(&cfg, types, version);
}

/* Sets miss_send_len: Open vSwitch sends no PORT_STATUS to a controller that
 * connected to a passive listener until it is not zero. */
static struct ofpbuf *
encode_set_config(enum ofp_version version)
{
    static const struct ofputil_switch_config config = {
        .frag = OFPUTIL_FRAG_NORMAL, .invalid_ttl_to_controller = -1,
        .miss_send_len = 128
    };

    return ofputil_encode_set_config(&config, version);
}

static struct ofpbuf *
encode_bundle_control(enum ofp_version version, uint32_t id, uint16_t type)
{
    struct ofputil_bundle_ctrl_msg ctrl = {
        .bundle_id = id, .type = type, .flags = OFPBF_ORDERED | OFPBF_ATOMIC
    };

    return ofputil_encode_bundle_ctrl_request(version, &ctrl);
}

/* Converts 'messages' into an ordered, atomic bundle, which requires OpenFlow
 * 1.4. */
static void
make_bundle(struct ovs_list *messages, enum ofp_version version, uint32_t id)
{
    struct ovs_list bundle = OVS_LIST_INITIALIZER(&bundle);
    struct ofpbuf *msg;

    ovs_list_push_back(&bundle, &encode_bundle_control(
                           version, id, OFPBCT_OPEN_REQUEST)->list_node);
    LIST_FOR_EACH_POP (msg, list_node, messages) {
        struct ofputil_bundle_add_msg add = {
            .bundle_id = id, .flags = OFPBF_ORDERED | OFPBF_ATOMIC
        };

        ofpmsg_update_length(msg);
        add.msg = msg->data;
        ovs_list_push_back(&bundle, &ofputil_encode_bundle_add(
                               version, &add)->list_node);
        ofpbuf_delete(msg);
    }
    ovs_list_push_back(&bundle, &encode_bundle_control(
                           version, id, OFPBCT_COMMIT_REQUEST)->list_node);
    ovs_list_push_back_all(messages, &bundle);
}

/* Sends the request 'msg' and enters 'state', which waits for its reply. */
static void
send_request(struct openflow *of, struct ofpbuf *msg,
             enum openflow_state state)
{
    of->xid = ((const struct ofp_header *) msg->data)->xid;
    of->state = state;
    of->deadline = time_msec() + REPLY_MSEC;
    rconn_send(of->rconn, msg, NULL);
}

static void
set_down(struct openflow *of, const struct ofputil_phy_port *port,
         bool removed)
{
    unsigned int no = ofp_to_u16(port->port_no);
    bool down = removed || port->config & OFPUTIL_PC_PORT_DOWN
                || port->state & OFPUTIL_PS_LINK_DOWN;

    if (no < OPENFLOW_MAX_PORTS && bitmap_is_set(of->down, no) != down) {
        VLOG_INFO("%s: port %u is %s", of->target, no, down ? "down" : "up");
        bitmap_set(of->down, no, down);
        of->links++;
    }
}

/* Disconnects for RETRY_MSEC, because the switch or the controller refused the
 * connection, or a message was invalid.  Takes ownership of 'reason'. */
static void
refuse_switch(struct openflow *of, char *reason)
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

/* Starts a dump, at least CHECK_MSEC after the last one, because the switch
 * may have other entries than that one had. */
static void
verify_soon(struct openflow *of)
{
    of->suspect = true;
    if (of->state == ST_IDLE) {
        of->next = MIN(of->next, of->verified + CHECK_MSEC);
    }
}

/* Returns the interval until the dump after one that lacked 'n' changes. */
static long long int
dump_interval(const struct openflow *of, size_t n)
{
    return (of->failed    ? CHECK_MSEC << (of->failed - 1)
            : n           ? 0
            : of->suspect ? CHECK_MSEC
                          : VERIFY_MSEC);
}

static void
set_xids(struct openflow *of, const struct ovs_list *messages)
{
    const struct ofpbuf *msg;

    of->first_xid = of->last_xid = 0;
    LIST_FOR_EACH (msg, list_node, messages) {
        uint32_t xid = ntohl(((const struct ofp_header *) msg->data)->xid);

        of->first_xid = of->first_xid ? MIN(of->first_xid, xid) : xid;
        of->last_xid = MAX(of->last_xid, xid);
    }
}

/* Sends the differences between the desired state and the last dump.  The next
 * dump verifies them. */
static void
reconcile(struct openflow *of)
{
    struct ovs_list messages = OVS_LIST_INITIALIZER(&messages);
    enum ofp_version v = get_version(of);
    struct ofpbuf *msg;
    size_t n;

    n = flow_table_diff(of->wanted, of->there,
                        ofputil_protocol_from_ofp_version(v), MAX_CHANGES,
                        &messages);
    of->verified = time_msec();
    of->in_sync = !n;
    of->failed = n && of->sent ? MIN(of->failed + 1, MAX_FAILED) : 0;
    of->sent = n > 0;
    of->n_refused = 0;
    of->state = ST_IDLE;
    of->next = of->verified + dump_interval(of, n);
    if (!n) {
        free(of->reason);
        of->reason = NULL;
    } else {
        if (of->failed >= SILENT_FAILED && !of->reason) {
            of->reason = xstrdup("the switch has not made changes that were "
                                 "sent again, and gives no error");
        }
        VLOG_INFO("%s: sending %"PRIuSIZE" changes", of->target, n);
        if (v >= OFP14_VERSION) {
            make_bundle(&messages, v, ++of->bundle_id);
        } else {
            ovs_list_push_back(&messages,
                               &ofputil_encode_barrier_request(v)->list_node);
        }
        set_xids(of, &messages);
    }
    LIST_FOR_EACH_POP (msg, list_node, &messages) {
        rconn_send(of->rconn, msg, NULL);
    }
}

/* Handles 'error', a reply to changes, which a dump follows; 0 for one that
 * OpenFlow does not define.  The first error is the cause; one of a bundle
 * undoes all of it. */
static void
handle_refused_changes(struct openflow *of, enum ofperr error)
{
    const char *name;

    of->refusal = of->n_refused++ ? of->refusal : error;
    name = of->refusal ? ofperr_get_name(of->refusal) : "an unknown error";
    free(of->reason);
    of->reason = (get_version(of) >= OFP14_VERSION
                      ? xasprintf("the switch refuses all changes: %s", name)
                      : xasprintf("the switch refuses %u changes: %s",
                                  of->n_refused, name));
}

static void
handle_error(struct openflow *of, const struct ofp_header *oh)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 20);
    enum ofp_version v = get_version(of);
    enum ofperr error = ofperr_decode_msg(oh, NULL);
    uint32_t xid = ntohl(oh->xid);

    if (of->sent && xid >= of->first_xid && xid <= of->last_xid) {
        handle_refused_changes(of, error);
    }
    if (error == OFPERR_OFPBRC_IS_SECONDARY) {
        refuse_switch(of, xstrdup(DEMOTED));
    } else if (of->state == ST_ROLE && oh->xid == of->xid) {
        send_request(of, encode_role_request(v, OFPCR12_ROLE_NOCHANGE, 0),
                     ST_NEWEST);
    } else if (of->state == ST_NEWEST && oh->xid == of->xid) {
        refuse_switch(of, xasprintf("refuses generation %"PRIu64": another "
                                    "controller is newer", of->generation));
    } else if (of->state == ST_GROUPS && oh->xid == of->xid) {
        /* The switch does not support groups. */
        send_request(of, flow_table_request(v), ST_FLOWS);
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
        refuse_switch(of, xstrdup(DEMOTED));
    }
}

static void
handle_features(struct openflow *of, const struct ofp_header *oh)
{
    struct ofputil_switch_features features;
    struct ofpbuf b = ofpbuf_const_initializer(oh, ntohs(oh->length));
    char *reason;

    if (ofputil_pull_switch_features(&b, &features)) {
        refuse_switch(of, xstrdup("invalid features reply"));
        return;
    }
    of->datapath = features.datapath_id;
    reason =
        (features.auxiliary_id
             ? xstrdup("the listener accepts auxiliary connections only")
             : of->admit(&of->up, of->datapath, dial_peer(of->dial), of->aux));
    if (reason) {
        of->datapath = 0;
        refuse_switch(of, reason);
    } else {
        send_request(of,
                     encode_role_request(get_version(of), OFPCR12_ROLE_PRIMARY,
                                         of->generation),
                     ST_ROLE);
    }
}

/* Handles the reply of a switch that has refused the leader's generation. */
static void
handle_newest(struct openflow *of, const struct ofp_header *oh)
{
    struct ofputil_role_request rr;

    if (!ofputil_decode_role_message(oh, &rr) && rr.have_generation_id) {
        of->newest = rr.generation_id;
    }
    refuse_switch(of, xasprintf("refuses generation %" PRIu64 ": another "
                                "controller is newer, of generation %" PRIu64,
                                of->generation, of->newest));
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
        refuse_switch(of, xstrdup("invalid port descriptions"));
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
    enum ofp_version v = get_version(of);
    bool groups = of->state == ST_GROUPS;
    bool more = ofpmp_more(msg->data);
    int error = (groups ? flow_table_add_groups(of->dump, msg)
                 : flow_table_add_flows(of->dump, msg));

    of->deadline = time_msec() + REPLY_MSEC;
    if (error) {
        refuse_switch(of, xstrdup(error == E2BIG ? "the dump is too long"
                                  : "the dump is invalid"));
    } else if (!more && groups) {
        send_request(of, flow_table_request(v), ST_FLOWS);
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

static void
handle_flow_removed(struct openflow *of, const struct ofp_header *oh)
{
    if (!of->suspect && flow_table_names(of->wanted, oh)) {
        VLOG_INFO("%s: another program has deleted flows", of->target);
        verify_soon(of);
    }
}

static void
handle_reply(struct openflow *of, struct ofpbuf *msg)
{
    enum ofp_version v = get_version(of);

    if (of->state == ST_FEATURES) {
        handle_features(of, msg->data);
    } else if (of->state == ST_NEWEST) {
        handle_newest(of, msg->data);
    } else if (of->state == ST_ROLE) {
        of->newest = 0;
        rconn_send(of->rconn, encode_set_config(v), NULL);
        rconn_send(of->rconn, encode_set_async(v), NULL);
        send_request(of, ofputil_encode_port_desc_stats_request(v, OFPP_ANY),
                     ST_PORTS);
    } else if (of->state == ST_PORTS) {
        handle_ports(of, msg);
    } else {
        handle_dump(of, msg);
    }
}

static void
handle_message(struct openflow *of, struct ofpbuf *msg)
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
    } else if (type == OFPTYPE_FLOW_REMOVED && of->state >= ST_IDLE
               && of->state != ST_REFUSED) {
        handle_flow_removed(of, oh);
    } else if (type != OFPTYPE_HELLO && type == reply_types[of->state]
               && oh->xid == of->xid) {
        handle_reply(of, msg);
    }
}

static void
openflow_destroy(struct driver *driver)
{
    struct openflow *of = openflow_cast(driver);

    dial_destroy(of->dial);
    rconn_destroy(of->rconn);
    flow_table_destroy(of->wanted);
    flow_table_destroy(of->there);
    flow_table_destroy(of->dump);
    free(of->reason);
    free(of->target);
    free(of);
}

static void
clear_connection(struct openflow *of)
{
    if (of->state != ST_REFUSED) {
        of->state = ST_DISCONNECTED;
    }
    of->in_sync = false;
    of->datapath = 0;
    of->sent = false;
}

static void
reconnect(struct openflow *of)
{
    of->state = ST_DISCONNECTED;
    clear_connection(of);
    rconn_disconnect(of->rconn);
    dial_restart(of->dial);
}

static void
openflow_leave(struct driver *driver)
{
    struct openflow *of = openflow_cast(driver);

    of->active = false;
    free(of->reason);
    of->reason = NULL;
    reconnect(of);
}

static void
openflow_want(struct driver *driver, struct driver_want *want)
{
    struct openflow *of = openflow_cast(driver);

    if (!of->active || of->generation != want->generation) {
        of->active = true;
        of->generation = want->generation;
        reconnect(of);
    }
    if (!flow_table_equal(of->wanted, want->flows)) {
        flow_table_destroy(of->wanted);
        of->wanted = want->flows;
        want->flows = NULL;
        of->n_applied = flow_table_n_applied(of->wanted, of->there);
        of->in_sync = false;
        of->failed = 0;
        if (of->state == ST_IDLE) {
            of->next = 0;
        }
    }
}

static void
request_features(struct openflow *of)
{
    send_request(of, ofpraw_alloc(OFPRAW_OFPT_FEATURES_REQUEST,
                                  get_version(of), 0), ST_FEATURES);
}

static void
connect_switch(struct openflow *of)
{
    if (of->state == ST_DISCONNECTED && !rconn_is_alive(of->rconn)) {
        struct vconn *vconn = dial_run(of->dial);

        if (vconn) {
            rconn_connect_unreliably(of->rconn, vconn, of->target);
        }
    }
}

/* Handles connections that were opened or closed. */
static void
follow_connection(struct openflow *of)
{
    unsigned int seqno = rconn_get_connection_seqno(of->rconn);

    if (!rconn_is_connected(of->rconn)) {
        clear_connection(of);
    } else if (of->state == ST_DISCONNECTED || of->seqno != seqno) {
        if (of->state != ST_REFUSED || time_msec() >= of->next) {
            of->seqno = seqno;
            of->in_sync = false;
            request_features(of);
        }
    }
}

/* Starts the next dump or connection when it is due, and times out a
 * request. */
static void
run_timers(struct openflow *of)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 20);
    long long int now = time_msec();

    if (of->state == ST_IDLE && now >= of->next) {
        flow_table_destroy(of->dump);
        of->dump = flow_table_create();
        of->suspect = false;
        send_request(of, ofputil_encode_group_desc_request(get_version(of),
                                                           OFPG_ALL),
                     ST_GROUPS);
    } else if (of->state == ST_REFUSED && now >= of->next) {
        reconnect(of);
    } else if (reply_types[of->state] != OFPTYPE_HELLO
               && now >= of->deadline) {
        VLOG_WARN_RL(&rl, "%s: no reply, reconnecting", of->target);
        of->state = ST_DISCONNECTED;
        rconn_disconnect(of->rconn);
    }
}

void
openflow_test_reply(struct driver *driver, struct ofpbuf *msg)
{
    struct openflow *of = openflow_cast(driver);

    if (of->state == ST_DISCONNECTED || of->state == ST_REFUSED) {
        request_features(of);
    } else if (of->state == ST_IDLE) {
        of->next = 0;
        run_timers(of);
    }
    ((struct ofp_header *) msg->data)->xid = of->xid;
    handle_message(of, msg);
}

static void
openflow_run(struct driver *driver)
{
    struct openflow *of = openflow_cast(driver);
    struct ofpbuf *msg;

    if (!of->active) {
        return;
    }
    connect_switch(of);
    rconn_run(of->rconn);
    follow_connection(of);
    for (int i = 0; i < MAX_MESSAGES && (msg = rconn_recv(of->rconn)); i++) {
        handle_message(of, msg);
        ofpbuf_delete(msg);
    }
    run_timers(of);
}

static void
openflow_wait(struct driver *driver)
{
    struct openflow *of = openflow_cast(driver);

    if (of->active) {
        rconn_run_wait(of->rconn);
        rconn_recv_wait(of->rconn);
        if (of->state == ST_DISCONNECTED && !rconn_is_alive(of->rconn)) {
            dial_wait(of->dial);
        }
        if (of->state == ST_IDLE || of->state == ST_REFUSED) {
            poll_timer_wait_until(of->next);
        } else if (of->state != ST_DISCONNECTED) {
            poll_timer_wait_until(of->deadline);
        }
    }
}

static bool
openflow_is_down(const struct driver *driver, uint32_t port)
{
    const struct openflow *of = openflow_cast(driver);

    return port < OPENFLOW_MAX_PORTS && bitmap_is_set(of->down, port);
}

static struct driver_status
openflow_get_status(const struct driver *driver)
{
    const struct openflow *of = openflow_cast(driver);

    return (struct driver_status){
        .state = (of->state == ST_REFUSED ? DRIVER_REFUSED
                  : of->state < ST_IDLE   ? DRIVER_DISCONNECTED
                  : of->in_sync           ? DRIVER_IN_SYNC
                                          : DRIVER_WRITING),
        .reason = of->reason ? of->reason : "",
        .datapath = of->datapath,
        .newest = of->newest,
        .n_wanted = flow_table_count(of->wanted),
        .n_applied = of->n_applied,
        .links = of->links,
    };
}

/* Returns {"dscp", "queue", "packets", "bytes"} of the flow of a level. */
static struct json *
level_to_json(const struct of_flow *flow, const struct of_flow *there)
{
    struct json *json = json_object_create();
    const struct ofpact *a;

    json_put_integer(json, "dscp", flow->cookie & 63);
    OFPACT_FOR_EACH (a, flow->ofpacts, flow->ofpacts_len) {
        if (a->type == OFPACT_SET_QUEUE) {
            json_put_integer(json, "queue", ofpact_get_SET_QUEUE(a)->queue_id);
        }
    }
    json_put_integer(json, "packets", there ? there->packets : 0);
    json_put_integer(json, "bytes", there ? there->bytes : 0);
    return json;
}

static struct json *
openflow_to_json(const struct driver *driver)
{
    const struct openflow *of = openflow_cast(driver);
    struct json *json = json_object_create();
    struct json *flows = json_array_create_empty();

    for (int dscp = 0; dscp < 64; dscp++) {
        const struct of_flow *flow =
            flow_table_find_cookie(of->wanted, FLOW_COOKIE(FLOW_LEVEL, dscp));

        if (flow) {
            json_array_add(flows, level_to_json(
                               flow, flow_table_find(of->there, flow)));
        }
    }
    json_object_put_string(json, "switch", of->target);
    json_object_put_format(json, "datapath", "%016"PRIx64, of->datapath);
    if (dial_peer(of->dial)) {
        json_object_put_string(json, "certificate", dial_peer(of->dial));
    }
    if (of->verified) {
        json_put_integer(json, "verified_ms", time_msec() - of->verified);
    }
    json_object_put(json, "flows", flows);
    return json;
}

static const struct driver_class openflow_class = {
    .name = "openflow",
    .destroy = openflow_destroy,
    .want = openflow_want,
    .leave = openflow_leave,
    .run = openflow_run,
    .wait = openflow_wait,
    .get_status = openflow_get_status,
    .to_json = openflow_to_json,
    .is_down = openflow_is_down,
};

/* Returns a driver for the switch with the OpenFlow listener 'target'.  'aux'
 * is passed to 'admit'. */
struct driver *
openflow_create(const char *target, driver_admit_func *admit, void *aux)
{
    struct openflow *of = xzalloc(sizeof *of);

    *of =
        (struct openflow){ .up.class = &openflow_class,
                           .target = xstrdup(target),
                           .rconn = rconn_create(5, 0, DSCP_DEFAULT, VERSIONS),
                           .dial = dial_create(target, VERSIONS),
                           .admit = admit,
                           .aux = aux,
                           .wanted = flow_table_create(),
                           .there = flow_table_create() };
    return &of->up;
}
