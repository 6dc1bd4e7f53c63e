/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/openflow.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "openvswitch/json.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofp-connection.h"
#include "openvswitch/ofp-errors.h"
#include "openvswitch/ofp-flow.h"
#include "openvswitch/ofp-match.h"
#include "openvswitch/ofp-msgs.h"
#include "openvswitch/ofp-print.h"
#include "openvswitch/ofp-protocol.h"
#include "openvswitch/ofp-util.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/rconn.h"
#include "openvswitch/vlog.h"
#include "packets.h"
#include "socket-util.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(openflow);

/* Our flows' cookies: the upper bits say whose, the lower six which DSCP. */
#define COOKIE UINT64_C(0x7374616765000000)     /* "stage". */
#define COOKIE_MASK UINT64_C(0xffffffffff000000)
#define PRIORITY 100

#define CHECK_MSEC 1000         /* From one dump to the next. */
#define MAX_MESSAGES 50         /* Read in one run. */

enum state {
    ST_AWAY,                    /* Not connected. */
    ST_ROLE,                    /* Asked to be primary, no answer yet. */
    ST_REFUSED,                 /* The switch knows a newer controller. */
    ST_IDLE,                    /* Primary; next dump at 'next_dump'. */
    ST_DUMP,                    /* Waiting for what is there. */
};

/* One DSCP value: what we want of it, and what the last dump said. */
struct level_flow {
    bool wanted, present;
    bool alien;                 /* Present, but not as wanted. */
    uint32_t queue;
    uint64_t packets, bytes;
};

struct openflow {
    char *target;
    struct rconn *rconn;
    unsigned int seqno;         /* Of the connection 'state' speaks of. */
    bool active;                /* openflow_set() was called. */
    uint64_t generation;
    enum state state;
    bool in_sync;               /* The last dump was as wanted. */
    ovs_be32 xid;               /* Of the request that 'state' waits for. */
    long long int next_dump;
    struct level_flow flows[64];      /* By DSCP. */
    struct level_flow dump[64];       /* Dump that is coming in. */
};

struct openflow *
openflow_create(const char *target)
{
    struct openflow *of = xzalloc(sizeof *of);

    of->target = xstrdup(target);
    of->rconn = rconn_create(5, 0, DSCP_DEFAULT, 1u << OFP13_VERSION);
    return of;
}

void
openflow_destroy(struct openflow *of)
{
    if (of) {
        rconn_destroy(of->rconn);
        free(of->target);
        free(of);
    }
}

/* Wants flows for the 'n' 'queues' and no other of ours in the switch, as the
 * leader of 'generation'. */
void
openflow_set(struct openflow *of, uint64_t generation,
             const struct openflow_queue *queues, size_t n)
{
    int64_t queue[ARRAY_SIZE(of->flows)];       /* -1 for no flow. */

    memset(queue, -1, sizeof queue);
    if (!of->active) {
        of->active = true;
        rconn_connect(of->rconn, of->target, of->target);
    }
    if (of->generation != generation) {
        of->generation = generation;
        rconn_reconnect(of->rconn);
    }
    for (size_t i = 0; i < n; i++) {
        queue[queues[i].dscp & 63] = queues[i].queue;
    }
    for (size_t i = 0; i < ARRAY_SIZE(of->flows); i++) {
        struct level_flow *flow = &of->flows[i];
        bool wanted = queue[i] >= 0;

        if (wanted != flow->wanted || (wanted && queue[i] != flow->queue)) {
            flow->wanted = wanted;
            flow->queue = wanted ? queue[i] : 0;
            of->next_dump = 0;
        }
    }
}

static enum ofputil_protocol
protocol(const struct openflow *of)
{
    return ofputil_protocol_from_ofp_version(rconn_get_version(of->rconn));
}

/* Sends 'msg' and makes its answer the one that 'state' waits for. */
static void
request(struct openflow *of, struct ofpbuf *msg, enum state state)
{
    of->xid = ((const struct ofp_header *) msg->data)->xid;
    of->state = state;
    rconn_send(of->rconn, msg, NULL);
}

static void
request_role(struct openflow *of)
{
    struct ofpbuf *msg = ofpraw_alloc(OFPRAW_OFPT12_ROLE_REQUEST,
                                      rconn_get_version(of->rconn), 0);
    struct ofp12_role_request *role = ofpbuf_put_zeros(msg, sizeof *role);

    role->role = htonl(OFPCR12_ROLE_PRIMARY);
    role->generation_id = htonll(of->generation);
    request(of, msg, ST_ROLE);
}

static void
request_dump(struct openflow *of)
{
    struct ofputil_flow_stats_request fsr = {
        .table_id = OFPTT_ALL,
        .out_port = OFPP_ANY,
        .out_group = OFPG_ANY,
        .cookie = htonll(COOKIE),
        .cookie_mask = htonll(COOKIE_MASK),
    };

    match_init_catchall(&fsr.match);
    memset(of->dump, 0, sizeof of->dump);
    request(of, ofputil_encode_flow_stats_request(&fsr, protocol(of)),
            ST_DUMP);
}

/* "DSCP d -> queue q, then as always". */
static void
put_actions(struct ofpbuf *ofpacts, uint32_t queue)
{
    ofpact_put_SET_QUEUE(ofpacts)->queue_id = queue;
    ofpact_put_OUTPUT(ofpacts)->port = OFPP_NORMAL;
}

static void
send_flow(struct openflow *of, uint8_t dscp, bool add)
{
    struct ofputil_flow_mod fm = {
        .priority = PRIORITY,
        .command = add ? OFPFC_ADD : OFPFC_DELETE_STRICT,
        .new_cookie = add ? htonll(COOKIE | dscp) : 0,
        .cookie = add ? 0 : htonll(COOKIE),
        .cookie_mask = add ? 0 : htonll(COOKIE_MASK),
        .buffer_id = UINT32_MAX,
        .out_port = OFPP_ANY,
        .out_group = OFPG_ANY,
        .table_id = add ? 0 : OFPTT_ALL,
    };
    struct ofpbuf ofpacts;
    struct match match;

    match_init_catchall(&match);
    match_set_dl_type(&match, htons(ETH_TYPE_IP));
    match_set_nw_dscp(&match, dscp << 2);
    minimatch_init(&fm.match, &match);
    ofpbuf_init(&ofpacts, 64);
    if (add) {
        put_actions(&ofpacts, of->flows[dscp].queue);
    }
    fm.ofpacts = ofpacts.data;
    fm.ofpacts_len = ofpacts.size;
    rconn_send(of->rconn, ofputil_encode_flow_mod(&fm, protocol(of)), NULL);
    ofpbuf_uninit(&ofpacts);
    minimatch_destroy(&fm.match);
}

/* Sends what differs between the dump that has just ended and what is wanted.
 * The next dump is the proof that it got there. */
static void
reconcile(struct openflow *of)
{
    size_t n_changes = 0;

    for (uint8_t dscp = 0; dscp < ARRAY_SIZE(of->flows); dscp++) {
        struct level_flow *flow = &of->flows[dscp];
        const struct level_flow *there = &of->dump[dscp];

        flow->packets = there->packets;
        flow->bytes = there->bytes;
        if (there->present && !flow->wanted) {
            send_flow(of, dscp, false);
            n_changes++;
        } else if (flow->wanted && (!there->present || there->alien
                                    || there->queue != flow->queue)) {
            send_flow(of, dscp, true);
            n_changes++;
        }
    }
    if (n_changes) {
        VLOG_INFO("%s: %"PRIuSIZE" flows changed", of->target, n_changes);
        rconn_send(of->rconn, ofputil_encode_barrier_request(
                       rconn_get_version(of->rconn)), NULL);
    }
    of->in_sync = !n_changes;
    of->state = ST_IDLE;
    of->next_dump = n_changes ? 0 : time_msec() + CHECK_MSEC;
}

/* Notes one flow of a dump. */
static void
note_flow(struct openflow *of, const struct ofputil_flow_stats *fs)
{
    struct level_flow *there = &of->dump[ntohll(fs->cookie) & 63];
    struct ofpbuf ofpacts;
    const struct ofpact *a;

    there->present = true;
    there->packets += fs->packet_count;
    there->bytes += fs->byte_count;
    OFPACT_FOR_EACH (a, fs->ofpacts, fs->ofpacts_len) {
        if (a->type == OFPACT_SET_QUEUE) {
            there->queue = ofpact_get_SET_QUEUE(a)->queue_id;
        }
    }
    ofpbuf_init(&ofpacts, 64);
    put_actions(&ofpacts, there->queue);
    there->alien = fs->priority != PRIORITY
        || !ofpacts_equal(fs->ofpacts, fs->ofpacts_len,
                          ofpacts.data, ofpacts.size);
    ofpbuf_uninit(&ofpacts);
}

static void
handle_dump(struct openflow *of, struct ofpbuf *msg)
{
    bool more = ofpmp_more(msg->data);
    struct ofputil_flow_stats fs;
    struct ofpbuf ofpacts;
    int retval;

    ofpbuf_init(&ofpacts, 256);
    while (!(retval = ofputil_decode_flow_stats_reply(&fs, msg, false,
                                                      &ofpacts))) {
        note_flow(of, &fs);
    }
    ofpbuf_uninit(&ofpacts);
    if (retval != EOF) {
        VLOG_WARN("%s: a dump of flows that cannot be read, connecting again",
                  of->target);
        rconn_reconnect(of->rconn);
    } else if (!more) {
        reconcile(of);
    }
}

static void
handle_error(struct openflow *of, const struct ofp_header *oh)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 20);

    if (of->state == ST_ROLE && oh->xid == of->xid) {
        VLOG_WARN("%s: refuses generation %"PRIu64": another controller is "
                  "newer", of->target, of->generation);
        of->state = ST_REFUSED;
    } else if (!VLOG_DROP_WARN(&rl)) {
        char *s = ofp_to_string(oh, ntohs(oh->length), NULL, NULL, 1);

        VLOG_WARN("%s: %s", of->target, s);
        free(s);
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
    } else if (type == OFPTYPE_ROLE_REPLY && of->state == ST_ROLE
               && oh->xid == of->xid) {
        of->state = ST_IDLE;
        of->next_dump = 0;
    } else if (type == OFPTYPE_FLOW_STATS_REPLY && of->state == ST_DUMP
               && oh->xid == of->xid) {
        handle_dump(of, msg);
    }
}

void
openflow_run(struct openflow *of)
{
    if (!of->active) {
        return;
    }
    rconn_run(of->rconn);
    if (!rconn_is_connected(of->rconn)) {
        of->state = ST_AWAY;
        of->in_sync = false;
        return;
    }
    if (of->state == ST_AWAY
        || of->seqno != rconn_get_connection_seqno(of->rconn)) {
        of->seqno = rconn_get_connection_seqno(of->rconn);
        of->in_sync = false;
        request_role(of);
    }
    for (int i = 0; i < MAX_MESSAGES; i++) {
        struct ofpbuf *msg = rconn_recv(of->rconn);

        if (!msg) {
            break;
        }
        handle(of, msg);
        ofpbuf_delete(msg);
    }
    if (of->state == ST_IDLE && time_msec() >= of->next_dump) {
        request_dump(of);
    }
}

void
openflow_wait(struct openflow *of)
{
    if (of->active) {
        rconn_run_wait(of->rconn);
        rconn_recv_wait(of->rconn);
        if (of->state == ST_IDLE) {
            poll_timer_wait_until(of->next_dump);
        }
    }
}

struct json *
openflow_status(const struct openflow *of)
{
    struct json *status = json_object_create();
    struct json *flows = json_array_create_empty();

    json_object_put_string(status, "switch", of->target);
    json_object_put_string(status, "state",
                           of->state == ST_AWAY ? "away"
                           : of->state == ST_REFUSED ? "refused"
                           : of->in_sync ? "in sync" : "writing");
    for (size_t dscp = 0; dscp < ARRAY_SIZE(of->flows); dscp++) {
        const struct level_flow *flow = &of->flows[dscp];

        if (flow->wanted) {
            struct json *json = json_object_create();

            json_object_put(json, "dscp", json_integer_create(dscp));
            json_object_put(json, "queue", json_integer_create(flow->queue));
            json_object_put(json, "packets",
                            json_integer_create(flow->packets));
            json_object_put(json, "bytes", json_integer_create(flow->bytes));
            json_array_add(flows, json);
        }
    }
    json_object_put(status, "flows", flows);
    return status;
}
