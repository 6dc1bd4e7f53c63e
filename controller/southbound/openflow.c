/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/openflow.h"

#include <string.h>

#include "controller/southbound/dial.h"
#include "controller/southbound/flow-table.h"
#include "controller/southbound/openflow-messages.h"
#include "controller/southbound/openflow-private.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/rconn.h"
#include "openvswitch/vlog.h"
#include "socket-util.h"
#include "timeval.h"

VLOG_DEFINE_THIS_MODULE(openflow);

#define VERSIONS (1u << OFP13_VERSION | 1u << OFP14_VERSION)
#define MAX_PACKETS 100         /* Of ours, that wait to be sent. */
#define MAX_MESSAGES 50         /* Read in one run. */

static void
openflow_destroy(struct driver *driver)
{
    struct openflow *of = openflow_cast(driver);

    dial_destroy(of->dial);
    rconn_destroy(of->rconn);
    rconn_packet_counter_destroy(of->packets);
    flow_table_destroy(of->wanted);
    flow_table_destroy(of->there);
    flow_table_destroy(of->dump);
    free(of->reason);
    free(of->target);
    free(of);
}

/* There is no connection any more. */
static void
forget_connection(struct openflow *of)
{
    if (of->state != ST_REFUSED) {
        of->state = ST_AWAY;
    }
    of->in_sync = false;
    of->datapath = 0;
    of->sent = false;
}

static void
begin_anew(struct openflow *of)
{
    of->state = ST_AWAY;
    forget_connection(of);
    rconn_disconnect(of->rconn);
    dial_restart(of->dial);
}

static void
openflow_leave(struct driver *driver)
{
    struct openflow *of = openflow_cast(driver);

    of->active = false;
    begin_anew(of);
}

static void
openflow_want(struct driver *driver, const struct driver_want *want)
{
    struct openflow *of = openflow_cast(driver);

    if (!of->active || of->generation != want->generation) {
        of->active = true;
        of->generation = want->generation;
        begin_anew(of);
    }
    if (!flow_table_equal(of->wanted, want->flows)) {
        flow_table_destroy(of->wanted);
        of->wanted = flow_table_clone(want->flows);
        of->n_applied = flow_table_n_applied(of->wanted, of->there);
        of->in_sync = false;
        of->failed = 0;
        if (of->state == ST_IDLE) {
            of->next = 0;
        }
    }
}

static void
ask_features(struct openflow *of)
{
    openflow_request(of, openflow_features_request(openflow_version(of)),
                     ST_FEATURES);
}

/* Gets a connection if there is none. */
static void
connect_switch(struct openflow *of)
{
    if (of->state == ST_AWAY && !rconn_is_alive(of->rconn)) {
        struct vconn *vconn = dial_run(of->dial);

        if (vconn) {
            rconn_connect_unreliably(of->rconn, vconn, of->target);
        }
    }
}

/* A connection began, or ended. */
static void
follow_connection(struct openflow *of)
{
    unsigned int seqno = rconn_get_connection_seqno(of->rconn);

    if (!rconn_is_connected(of->rconn)) {
        forget_connection(of);
    } else if (of->state == ST_AWAY || of->seqno != seqno) {
        if (of->state != ST_REFUSED || time_msec() >= of->next) {
            of->seqno = seqno;
            of->in_sync = false;
            ask_features(of);
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
        openflow_request(of, openflow_groups_request(openflow_version(of)),
                         ST_GROUPS);
    } else if (of->state == ST_REFUSED && now >= of->next) {
        begin_anew(of);
    } else if (openflow_answer_type(of->state) != OFPTYPE_HELLO
               && now >= of->deadline) {
        VLOG_WARN_RL(&rl, "%s: no answer, connecting again", of->target);
        of->state = ST_AWAY;
        rconn_disconnect(of->rconn);
    }
}

void
openflow_test_answer(struct driver *driver, struct ofpbuf *msg)
{
    struct openflow *of = openflow_cast(driver);

    if (of->state == ST_AWAY || of->state == ST_REFUSED) {
        ask_features(of);
    } else if (of->state == ST_IDLE) {
        of->next = 0;
        run_timers(of);
    }
    ((struct ofp_header *) msg->data)->xid = of->xid;
    openflow_handle(of, msg);
}

static void
openflow_run(struct driver *driver)
{
    struct openflow *of = openflow_cast(driver);

    if (!of->active) {
        return;
    }
    connect_switch(of);
    rconn_run(of->rconn);
    follow_connection(of);
    for (int i = 0; i < MAX_MESSAGES; i++) {
        struct ofpbuf *msg = rconn_recv(of->rconn);

        if (!msg) {
            break;
        }
        openflow_handle(of, msg);
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
        if (of->state == ST_AWAY && !rconn_is_alive(of->rconn)) {
            dial_wait(of->dial);
        }
        if (of->state == ST_IDLE || of->state == ST_REFUSED) {
            poll_timer_wait_until(of->next);
        } else if (of->state != ST_AWAY) {
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

static bool
openflow_send(struct driver *driver, uint32_t port, const void *packet,
              size_t size)
{
    struct openflow *of = openflow_cast(driver);

    return (of->state >= ST_IDLE && of->state != ST_REFUSED && of->in_sync
            && !rconn_send_with_limit(
                of->rconn, openflow_packet_out(openflow_version(of), port,
                                               packet, size),
                of->packets, MAX_PACKETS));
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
    .send = openflow_send,
};

/* Returns the driver of the switch whose listener is 'target'. */
struct driver *
openflow_create(const char *target, const struct driver_events *events,
                void *aux)
{
    struct openflow *of = xzalloc(sizeof *of);

    of->up.class = &openflow_class;
    of->target = xstrdup(target);
    of->rconn = rconn_create(5, 0, DSCP_DEFAULT, VERSIONS);
    of->dial = dial_create(target, VERSIONS);
    of->packets = rconn_packet_counter_create();
    of->events = *events;
    of->aux = aux;
    of->wanted = flow_table_create();
    of->there = flow_table_create();
    return &of->up;
}
