/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/openflow.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bitmap.h"
#include "controller/southbound/flow-table.h"
#include "controller/southbound/openflow-messages.h"
#include "flow.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofp-connection.h"
#include "openvswitch/ofp-errors.h"
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

VLOG_DEFINE_THIS_MODULE(openflow);

#define CHECK_MSEC 1000         /* From one dump to the next. */
#define ANSWER_MSEC 10000       /* For one message of an answer. */
#define RETRY_MSEC 10000        /* Until a refused switch is asked again. */
#define MAX_MESSAGES 50         /* Read in one run. */
#define MAX_CHANGES 2000        /* Sent between two dumps. */
#define DEMOTED "another controller has become primary"
#define MAX_FAILED 10           /* Beyond which intervals stay. */

enum state {
    ST_AWAY,                    /* Not connected. */
    ST_FEATURES,                /* Asked who it is. */
    ST_ROLE,                    /* Asked to be primary. */
    ST_PORTS,                   /* Asked for its ports.  Up to here it is
                                 * none of ours yet. */
    ST_IDLE,                    /* Primary; next dump at 'next'. */
    ST_GROUPS,                  /* Asked for its groups, */
    ST_FLOWS,                   /* then for its flows. */
    ST_REFUSED,                 /* One does not want the other. */
};

struct openflow {
    struct driver up;
    char *target;
    struct rconn *rconn;
    driver_admit_func *admit;
    void *aux;
    unsigned int seqno;         /* Of the connection 'state' speaks of. */
    bool active;                /* want() was called. */
    uint64_t generation;
    uint64_t datapath;
    enum state state;
    char *reason;               /* Of ST_REFUSED. */
    ovs_be32 xid;               /* Of the request that 'state' waits for. */
    long long int deadline;     /* For its answer. */
    long long int next;         /* Dump, or try, depending on 'state'. */
    bool in_sync;               /* The last dump was as wanted. */
    unsigned int failed;        /* Dumps that showed that what was sent has
                                 * not got there, one after the other. */
    bool sent;                  /* Changes, since the last dump. */
    uint32_t bundle_id;         /* Of the last bundle. */
    struct flow_table *wanted;
    struct flow_table *there;   /* As the last dump has it. */
    struct flow_table *dump;    /* That is coming in, or NULL. */
    unsigned int links;         /* Grows with each change of 'down'. */
    unsigned long down[BITMAP_N_LONGS(OPENFLOW_MAX_PORTS)];
};

static struct openflow *
openflow_cast(const struct driver *driver)
{
    return CONTAINER_OF(CONST_CAST(struct driver *, driver),
                        struct openflow, up);
}

static void
openflow_destroy(struct driver *driver)
{
    struct openflow *of = openflow_cast(driver);

    rconn_destroy(of->rconn);
    flow_table_destroy(of->wanted);
    flow_table_destroy(of->there);
    flow_table_destroy(of->dump);
    free(of->reason);
    free(of->target);
    free(of);
}

static void
openflow_want(struct driver *driver, const struct driver_want *want)
{
    struct openflow *of = openflow_cast(driver);

    if (!of->active || of->generation != want->generation) {
        of->active = true;
        of->generation = want->generation;
        of->state = ST_AWAY;
        rconn_connect(of->rconn, of->target, of->target);
    }
    if (!flow_table_equal(of->wanted, want->flows)) {
        flow_table_destroy(of->wanted);
        of->wanted = flow_table_clone(want->flows);
        of->in_sync = false;
        of->failed = 0;
        if (of->state == ST_IDLE) {
            of->next = 0;
        }
    }
}

static enum ofp_version
version(const struct openflow *of)
{
    int v = rconn_get_version(of->rconn);

    return v > 0 ? v : OFP13_VERSION;
}

/* Sends 'msg' and makes its answer the one that 'state' waits for. */
static void
request(struct openflow *of, struct ofpbuf *msg, enum state state)
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
refuse(struct openflow *of, char *reason)
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
    enum ofp_version v = version(of);
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

    if (ofperr_decode_msg(oh, NULL) == OFPERR_OFPBRC_IS_SECONDARY) {
        refuse(of, xstrdup(DEMOTED));
    } else if (of->state == ST_ROLE && oh->xid == of->xid) {
        refuse(of, xasprintf("refuses generation %"PRIu64": another "
                             "controller is newer", of->generation));
    } else if (of->state == ST_GROUPS && oh->xid == of->xid) {
        /* A switch without groups has none. */
        request(of, openflow_flows_request(version(of)), ST_FLOWS);
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
        refuse(of, xstrdup(DEMOTED));
    }
}

static void
handle_features(struct openflow *of, const struct ofp_header *oh)
{
    struct ofputil_switch_features features;
    struct ofpbuf b = ofpbuf_const_initializer(oh, ntohs(oh->length));
    char *reason;

    if (ofputil_pull_switch_features(&b, &features)) {
        refuse(of, xstrdup("features that cannot be read"));
        return;
    }
    of->datapath = features.datapath_id;
    reason = (features.auxiliary_id
              ? xstrdup("its listener has auxiliary connections alone")
              : of->admit ? of->admit(&of->up, of->datapath, of->aux) : NULL);
    if (reason) {
        of->datapath = 0;
        refuse(of, reason);
    } else {
        request(of, openflow_role_request(version(of), of->generation),
                ST_ROLE);
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
        refuse(of, xstrdup("ports that cannot be read"));
    } else if (!more) {
        of->state = ST_IDLE;
        of->next = 0;
    }
}

static void
handle_dump(struct openflow *of, struct ofpbuf *msg)
{
    bool groups = of->state == ST_GROUPS;
    bool more = ofpmp_more(msg->data);
    int error = (groups ? flow_table_take_groups(of->dump, msg)
                 : flow_table_take_flows(of->dump, msg));

    of->deadline = time_msec() + ANSWER_MSEC;
    if (error) {
        refuse(of, xstrdup(error == E2BIG ? "a dump without end"
                           : "a dump that cannot be read"));
    } else if (!more && groups) {
        request(of, openflow_flows_request(version(of)), ST_FLOWS);
    } else if (!more) {
        flow_table_destroy(of->there);
        of->there = of->dump;
        of->dump = NULL;
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

/* The type of answer that 'state' waits for. */
static enum ofptype
answer_type(enum state state)
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
    if (of->state == ST_FEATURES) {
        handle_features(of, msg->data);
    } else if (of->state == ST_ROLE) {
        rconn_send(of->rconn, openflow_set_config(version(of)), NULL);
        rconn_send(of->rconn, openflow_set_async(version(of)), NULL);
        request(of, ofputil_encode_port_desc_stats_request(version(of),
                                                           OFPP_ANY),
                ST_PORTS);
    } else if (of->state == ST_PORTS) {
        handle_ports(of, msg);
    } else {
        handle_dump(of, msg);
    }
}

static void
handle(struct openflow *of, struct ofpbuf *msg)
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
    } else if (type != OFPTYPE_HELLO && type == answer_type(of->state)
               && oh->xid == of->xid) {
        handle_answer(of, msg);
    }
}

/* A connection began, or ended. */
static void
follow_connection(struct openflow *of)
{
    unsigned int seqno = rconn_get_connection_seqno(of->rconn);

    if (!rconn_is_connected(of->rconn)) {
        if (of->state != ST_REFUSED) {
            of->state = ST_AWAY;
        }
        of->in_sync = false;
        of->datapath = 0;
        of->sent = false;
    } else if (of->state == ST_AWAY || of->seqno != seqno) {
        if (of->state != ST_REFUSED || time_msec() >= of->next) {
            of->seqno = seqno;
            of->in_sync = false;
            request(of, openflow_features_request(version(of)), ST_FEATURES);
        }
    }
}

/* What is due by the clock. */
static void
run_timers(struct openflow *of)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 20);
    long long int now = time_msec();

    if (of->state == ST_IDLE && now >= of->next) {
        flow_table_destroy(of->dump);
        of->dump = flow_table_create();
        request(of, openflow_groups_request(version(of)), ST_GROUPS);
    } else if (of->state == ST_REFUSED && now >= of->next) {
        of->state = ST_AWAY;
        rconn_connect(of->rconn, of->target, of->target);
    } else if (answer_type(of->state) != OFPTYPE_HELLO
               && now >= of->deadline) {
        VLOG_WARN_RL(&rl, "%s: no answer, connecting again", of->target);
        of->state = ST_AWAY;
        rconn_reconnect(of->rconn);
    }
}

void
openflow_test_answer(struct driver *driver, struct ofpbuf *msg)
{
    struct openflow *of = openflow_cast(driver);

    if (of->state == ST_AWAY || of->state == ST_REFUSED) {
        request(of, openflow_features_request(version(of)), ST_FEATURES);
    } else if (of->state == ST_IDLE) {
        of->next = 0;
        run_timers(of);
    }
    ((struct ofp_header *) msg->data)->xid = of->xid;
    handle(of, msg);
}

static void
openflow_run(struct driver *driver)
{
    struct openflow *of = openflow_cast(driver);

    if (!of->active) {
        return;
    }
    rconn_run(of->rconn);
    follow_connection(of);
    for (int i = 0; i < MAX_MESSAGES; i++) {
        struct ofpbuf *msg = rconn_recv(of->rconn);

        if (!msg) {
            break;
        }
        handle(of, msg);
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
        if (of->state == ST_IDLE || of->state == ST_REFUSED) {
            poll_timer_wait_until(of->next);
        } else if (of->state != ST_AWAY) {
            poll_timer_wait_until(of->deadline);
        }
    }
}

static void
openflow_get_status(const struct driver *driver, struct driver_status *status)
{
    const struct openflow *of = openflow_cast(driver);

    *status = (struct driver_status) {
        .state = (of->state == ST_REFUSED ? DRIVER_REFUSED
                  : of->state < ST_IDLE ? DRIVER_AWAY
                  : of->in_sync ? DRIVER_IN_SYNC : DRIVER_WRITING),
        .datapath = of->datapath,
        .n_wanted = flow_table_count(of->wanted),
        .n_applied = flow_table_n_applied(of->wanted, of->there),
        .links = of->links,
    };
}

/* Shows what a level has: {"dscp", "queue", "packets", "bytes"}. */
static struct json *
level_to_json(const struct of_flow *flow, const struct of_flow *there)
{
    struct json *json = json_object_create();
    const struct ofpact *a;

    json_object_put(json, "dscp", json_integer_create(flow->cookie & 63));
    OFPACT_FOR_EACH (a, flow->ofpacts, flow->ofpacts_len) {
        if (a->type == OFPACT_SET_QUEUE) {
            json_object_put(json, "queue", json_integer_create(
                                ofpact_get_SET_QUEUE(a)->queue_id));
        }
    }
    json_object_put(json, "packets",
                    json_integer_create(there ? there->packets : 0));
    json_object_put(json, "bytes",
                    json_integer_create(there ? there->bytes : 0));
    return json;
}

static struct json *
openflow_to_json(const struct driver *driver)
{
    const struct openflow *of = openflow_cast(driver);
    struct json *json = json_object_create();
    struct json *flows = json_array_create_empty();

    for (int dscp = 0; dscp < 64; dscp++) {
        const struct of_flow *flow
            = flow_table_find_cookie(of->wanted,
                                     FLOW_COOKIE(FLOW_LEVEL, dscp));

        if (flow) {
            json_array_add(flows, level_to_json(
                               flow, flow_table_find(of->there, flow)));
        }
    }
    json_object_put_string(json, "switch", of->target);
    json_object_put_format(json, "datapath", "%016"PRIx64, of->datapath);
    json_object_put_string(json, "reason", of->state == ST_REFUSED
                           ? of->reason : "");
    json_object_put(json, "flows", flows);
    return json;
}

static bool
openflow_is_down(const struct driver *driver, uint32_t port)
{
    const struct openflow *of = openflow_cast(driver);

    return port < OPENFLOW_MAX_PORTS && bitmap_is_set(of->down, port);
}

static const struct driver_class openflow_class = {
    .name = "openflow",
    .destroy = openflow_destroy,
    .want = openflow_want,
    .run = openflow_run,
    .wait = openflow_wait,
    .get_status = openflow_get_status,
    .to_json = openflow_to_json,
    .is_down = openflow_is_down,
};

/* Returns the driver of the switch whose listener is 'target'.  'admit', which
 * may be null, is asked whether it is the right one. */
struct driver *
openflow_create(const char *target, driver_admit_func *admit, void *aux)
{
    struct openflow *of = xzalloc(sizeof *of);

    of->up.class = &openflow_class;
    of->target = xstrdup(target);
    of->rconn = rconn_create(5, 0, DSCP_DEFAULT,
                             1u << OFP13_VERSION | 1u << OFP14_VERSION);
    of->admit = admit;
    of->aux = aux;
    of->wanted = flow_table_create();
    of->there = flow_table_create();
    return &of->up;
}
