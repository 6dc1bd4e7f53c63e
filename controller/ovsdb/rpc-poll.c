/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/rpc-poll.h"

#include <stdlib.h>

#include "controller/ovsdb/answers.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"

#define MAX_BACKOFF_MS 1000

struct rpc_poll {
    struct jsonrpc_session *session;
    const char *method;
    struct json *params;
    int interval_ms;            /* Between two requests. */
    unsigned int seqno;         /* Connection number of the last request. */
    struct json *id;            /* Id of the pending request, or NULL. */
    long long next;             /* time_msec() of the next request. */
};

struct rpc_poll *
rpc_poll_create(const char *remote, const char *method, struct json *params,
                int interval_ms)
{
    struct rpc_poll *poll = xzalloc(sizeof *poll);

    poll->session = jsonrpc_session_open(remote, true);
    jsonrpc_session_set_max_backoff(poll->session, MAX_BACKOFF_MS);
    if (stream_or_pstream_needs_probes(remote)) {
        jsonrpc_session_set_probe_interval(poll->session, ANSWERS_PROBE_MS);
    }
    poll->method = method;
    poll->params = params;
    poll->interval_ms = interval_ms;
    return poll;
}

void
rpc_poll_destroy(struct rpc_poll *poll)
{
    if (poll) {
        jsonrpc_session_close(poll->session);
        json_destroy(poll->params);
        json_destroy(poll->id);
        free(poll);
    }
}

static void
send_request(struct rpc_poll *poll)
{
    struct jsonrpc_msg *msg
        = jsonrpc_create_request(poll->method, json_clone(poll->params), NULL);

    json_destroy(poll->id);
    poll->id = json_clone(msg->id);
    poll->next = time_msec() + poll->interval_ms;
    poll->seqno = jsonrpc_session_get_seqno(poll->session);
    jsonrpc_session_send(poll->session, msg);
}

static struct jsonrpc_msg *
receive_reply(struct rpc_poll *poll)
{
    struct jsonrpc_msg *msg;

    while ((msg = jsonrpc_session_recv(poll->session))) {
        if (poll->id && msg->id && json_equal(poll->id, msg->id)) {
            json_destroy(poll->id);
            poll->id = NULL;
            return msg;
        }
        jsonrpc_msg_destroy(msg);
    }
    return NULL;
}

struct jsonrpc_msg *
rpc_poll_run(struct rpc_poll *poll)
{
    struct jsonrpc_msg *reply;

    jsonrpc_session_run(poll->session);
    reply = receive_reply(poll);
    if (jsonrpc_session_is_connected(poll->session)
        && (poll->seqno != jsonrpc_session_get_seqno(poll->session)
            || (!poll->id && time_msec() >= poll->next))) {
        send_request(poll);
    }
    return reply;
}

void
rpc_poll_wait(struct rpc_poll *poll)
{
    jsonrpc_session_wait(poll->session);
    jsonrpc_session_recv_wait(poll->session);
    if (!poll->id && jsonrpc_session_is_connected(poll->session)) {
        poll_timer_wait_until(poll->next);
    }
}
