/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest-conn.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "controller/northbound/views/control.h"
#include "controller/decide/decision-log.h"
#include "controller/intent/intent-writer.h"
#include "controller/northbound/dashboard/dashboard.h"
#include "controller/northbound/rest/event-stream.h"
#include "controller/northbound/rest/rest-listen.h"
#include "controller/northbound/rest/rest-routes.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "timeval.h"
#include "util.h"

#define STREAM_BLOCK 4096       /* Bytes of events that are asked for. */
#define CHANGE_MS 5000          /* Longest time for a change of the intent. */

/* A client's connection, and the request that it is at. */
struct rest_conn {
    struct ovs_list node;       /* In struct rest's 'conns', until hung up. */
    struct rest *rest;
    struct MHD_Connection *mc;
    int fd;                     /* libmicrohttpd's. */
    long long deadline;         /* When the request must be over, ms. */
    char *actor;                /* Who it is, NULL before it is known. */
    bool suspended;

    struct ds body;
    struct rest_request request;
    struct change *change;      /* That waits to be written, or NULL. */
    struct rest_answer answer;  /* That it has led to. */
    struct event_client *stream;        /* Or NULL. */
};

/* A change that is on its way, which may outlive its connection. */
struct change {
    struct rest_conn *conn;     /* NULL if that is gone. */
    struct rest *rest;
    struct rest_request request;        /* Copied: the edit points into it. */
    char *actor;
};

static struct rest_conn *
conn_get(struct MHD_Connection *mc)
{
    return MHD_get_connection_info(
        mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void
conn_suspend(struct rest_conn *conn)
{
    if (!conn->suspended) {
        conn->suspended = true;
        MHD_suspend_connection(conn->mc);
    }
}

static void
conn_resume(void *conn_)
{
    struct rest_conn *conn = conn_;

    if (conn->suspended) {
        conn->suspended = false;
        conn->rest->again = true;
        MHD_resume_connection(conn->mc);
    }
}

/* Lets libmicrohttpd see the end of 'conn', in its next run. */
static void
conn_hang_up(struct rest *rest, struct rest_conn *conn)
{
    ovs_list_remove(&conn->node);
    ovs_list_init(&conn->node);
    shutdown(conn->fd, SHUT_RDWR);
    conn_resume(conn);
    rest->counts.hung_up++;
    rest->again = true;
}

/* Gives 'conn' the whole time for what comes next. */
static void
conn_renew(struct rest *rest, struct rest_conn *conn)
{
    conn->deadline = time_msec() + REST_REQUEST_MS;
    ovs_list_remove(&conn->node);
    ovs_list_push_back(&rest->conns, &conn->node);
}

static void
conn_create(struct rest *rest, struct MHD_Connection *mc, void **connp)
{
    struct rest_conn *conn = xzalloc(sizeof *conn);

    *connp = conn;
    conn->rest = rest;
    conn->mc = mc;
    conn->fd = MHD_get_connection_info(
        mc, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    ds_init(&conn->body);
    ovs_list_init(&conn->node);
    conn_renew(rest, conn);
    if (++rest->counts.connections >= REST_MAX_CONNS
        && !ovs_list_is_empty(&rest->conns)) {
        conn_hang_up(rest, CONTAINER_OF(ovs_list_front(&rest->conns),
                                        struct rest_conn, node));
    }
}

static void
conn_destroy(struct rest *rest, struct rest_conn *conn)
{
    if (conn->change) {
        conn->change->conn = NULL;
    }
    ovs_list_remove(&conn->node);
    rest_answer_uninit(&conn->answer);
    ds_destroy(&conn->body);
    free(conn->actor);
    free(conn);
    rest->counts.connections--;
    rest->again = true;
}

/* libmicrohttpd calls it when a connection begins and when it ends. */
void
rest_conn_changed(void *rest, struct MHD_Connection *mc, void **connp,
                  enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        conn_create(rest, mc, connp);
    } else {
        conn_destroy(rest, *connp);
    }
}

/* libmicrohttpd calls it when a request has been answered, or will not be. */
void
rest_conn_completed(void *rest, struct MHD_Connection *mc,
                    void **requestp OVS_UNUSED,
                    enum MHD_RequestTerminationCode code)
{
    struct rest_conn *conn = conn_get(mc);

    ds_clear(&conn->body);
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        conn_renew(rest, conn);
    }
}

static enum MHD_Result
send_answer(struct rest_conn *conn, struct rest_answer answer)
{
    conn->rest->counts.answers[MIN(answer.status / 100, 5)]++;
    return rest_answer_send(conn->mc, &answer);
}

/* Returns the size of the body that the head of the request promises, 0 if
 * there is none or if it comes in chunks. */
static unsigned long long
get_content_length(struct MHD_Connection *mc)
{
    const char *length = MHD_lookup_connection_value(
        mc, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);

    return length ? strtoull(length, NULL, 10) : 0;
}

static const char *
get_query(const void *mc, const char *name)
{
    return MHD_lookup_connection_value(CONST_CAST(void *, mc),
                                       MHD_GET_ARGUMENT_KIND, name);
}

/* What 'change' has led to. */
static struct rest_answer
answer_change(const struct change *change, enum intent_result result,
              bool changed, char *error)
{
    const struct rest_request *r = &change->request;
    struct json *json;

    if (result != INTENT_WRITTEN) {
        return rest_answer_message(result == INTENT_REFUSED
                                   ? MHD_HTTP_NOT_FOUND
                                   : MHD_HTTP_SERVICE_UNAVAILABLE, error);
    }
    json = json_object_create();
    json_object_put_string(json, "cojob", r->args[0]);
    if (r->change.edit.kind >= INTENT_STAGE_BEGIN) {
        json_object_put(json, "rung",
                        json_integer_create(r->change.edit.rung));
    } else if (r->change.edit.kind >= INTENT_JOB_BEGIN) {
        json_object_put_string(json, "job", r->args[1]);
    }
    json_object_put(json, "changed", json_boolean_create(changed));
    return rest_answer_json(json);
}

/* The intent writer calls it when it has written, or not. */
static void
change_done(void *change_, enum intent_result result, bool changed,
            char *error)
{
    struct change *change = change_;
    struct rest_answer answer = answer_change(change, result, changed, error);

    if (result == INTENT_WRITTEN && changed) {
        char *text = intent_edit_to_string(&change->request.change.edit);

        decision_log_append(change->rest->ctl->log, DECISION_OPERATOR,
                            change->request.args[0], change->actor, "%s",
                            text);
        free(text);
    }
    if (change->conn) {
        change->conn->change = NULL;
        change->conn->answer = answer;
        conn_resume(change->conn);
    } else {
        rest_answer_uninit(&answer);
    }
    rest_change_uninit(&change->request.change);
    free(change->actor);
    free(change);
}

static enum MHD_Result
begin_change(struct rest_conn *conn)
{
    struct change *change = xmalloc(sizeof *change);
    struct intent_edit *edit = &change->request.change.edit;

    *change = (struct change) {
        .conn = conn, .rest = conn->rest, .request = conn->request,
        .actor = xstrdup(conn->actor),
    };
    edit->cojob = change->request.args[0];
    edit->job = change->request.args[1];
    edit->owner = change->actor;
    conn->change = change;
    conn_suspend(conn);
    intent_writer_add(conn->rest->writer, edit, change->actor, CHANGE_MS,
                      change_done, change);
    return MHD_YES;
}

/* Streams. */

static ssize_t
read_stream(void *conn_, uint64_t pos OVS_UNUSED, char *buffer, size_t size)
{
    struct rest_conn *conn = conn_;
    ssize_t n = event_client_read(conn->stream, buffer, size);

    if (n < 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    } else if (!n) {
        conn_suspend(conn);
    }
    if (!ovs_list_is_empty(&conn->node)) {
        conn_renew(conn->rest, conn);
    }
    return n;
}

static void
end_stream(void *conn_)
{
    struct rest_conn *conn = conn_;

    event_client_destroy(conn->stream);
    conn->stream = NULL;
    conn->rest->counts.streams--;
}

static size_t
count_streams(const struct rest *rest, const char *actor)
{
    const struct rest_conn *conn;
    size_t n = 0;

    LIST_FOR_EACH (conn, node, &rest->conns) {
        n += conn->stream && !strcmp(conn->actor, actor);
    }
    return n;
}

static enum MHD_Result
begin_stream(struct rest_conn *conn)
{
    struct rest *rest = conn->rest;
    struct MHD_Response *response;
    enum MHD_Result result = MHD_NO;

    if (rest->counts.streams >= REST_MAX_STREAMS
        || count_streams(rest, conn->actor) >= REST_MAX_STREAMS_EACH) {
        return send_answer(conn, rest_answer_error(
            MHD_HTTP_SERVICE_UNAVAILABLE, "/v1/events: too many follow, %d "
            "and %d of one name are allowed", REST_MAX_STREAMS,
            REST_MAX_STREAMS_EACH));
    }
    response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, conn, end_stream);
    if (!response) {
        return MHD_NO;
    }
    rest->counts.streams++;
    rest->counts.answers[2]++;
    conn->stream = event_client_create(
        rest->events, MHD_lookup_connection_value(conn->mc, MHD_HEADER_KIND,
                                                  "Last-Event-ID"),
        conn_resume, conn);
    if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                "text/event-stream")
        && MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                   "no-store")) {
        result = MHD_queue_response(conn->mc, MHD_HTTP_OK, response);
    }
    MHD_destroy_response(response);
    return result;
}

static bool
is_read(const char *method)
{
    return (!strcmp(method, MHD_HTTP_METHOD_GET)
            || !strcmp(method, MHD_HTTP_METHOD_HEAD));
}

/* The whole of a request is there. */
static enum MHD_Result
handle_end(struct rest_conn *conn, const char *path, const char *method)
{
    struct rest_answer answer = conn->answer;

    if (conn->change) {         /* It was hung up while that was made. */
        return MHD_NO;
    } else if (answer.status) {        /* Of a change that was made meanwhile. */
        conn->answer = (struct rest_answer) { .status = 0 };
        return send_answer(conn, answer);
    }
    conn->request = (struct rest_request) {
        .ctl = conn->rest->ctl, .counts = &conn->rest->counts,
        .method = method, .path = path, .actor = conn->actor,
        .body = ds_cstr(&conn->body), .body_size = conn->body.length,
        .query = get_query, .query_aux = conn->mc,
        .n_query = MHD_get_connection_values(conn->mc, MHD_GET_ARGUMENT_KIND,
                                             NULL, NULL),
    };
    if (dashboard_owns(path) && is_read(method)) {
        conn->rest->counts.answers[2]++;
        return dashboard_answer(conn->rest->ctl, conn->mc, path);
    }
    answer = rest_route(&conn->request);
    return (answer.status ? send_answer(conn, answer)
            : conn->request.next == REST_CHANGE ? begin_change(conn)
            : begin_stream(conn));
}

/* A browser says of each change which page wants it, and no page of ours wants
 * any: it is somebody else's, whose name may have become that of the place
 * where an operator's browser reaches us. */
static bool
is_of_page(struct rest_conn *conn, const char *method)
{
    return (!is_read(method)
            && MHD_lookup_connection_value(conn->mc, MHD_HEADER_KIND,
                                           MHD_HTTP_HEADER_ORIGIN));
}

/* The head of a request is there: who asks, and is there not too much? */
static enum MHD_Result
handle_head(struct rest_conn *conn, const char *method)
{
    ds_clear(&conn->body);
    if (!conn->actor) {
        conn->actor = rest_peer_name(conn->mc, &conn->rest->clients);
    }
    if (!conn->actor) {
        conn->rest->counts.refused++;
        return send_answer(conn, rest_answer_error(
            MHD_HTTP_FORBIDDEN, "/: no certificate of somebody who may ask, "
            "one with a name of --rest-client is allowed"));
    } else if (is_of_page(conn, method)) {
        conn->rest->counts.refused++;
        return send_answer(conn, rest_answer_error(
            MHD_HTTP_FORBIDDEN, "/: the request has an Origin, none is "
            "allowed in a change"));
    } else if (get_content_length(conn->mc) > REST_MAX_BODY) {
        return send_answer(conn, rest_answer_error(
            MHD_HTTP_CONTENT_TOO_LARGE, "/: the request's body is too large, "
            "%d bytes are allowed", REST_MAX_BODY));
    }
    return MHD_YES;
}

/* libmicrohttpd calls it for the head of each request, for each piece of its
 * body, for its end, where the answer is due, and when it was suspended. */
enum MHD_Result
rest_conn_handle(void *rest OVS_UNUSED, struct MHD_Connection *mc,
                 const char *path, const char *method,
                 const char *version OVS_UNUSED, const char *piece,
                 size_t *piece_size, void **requestp)
{
    struct rest_conn *conn = conn_get(mc);

    if (!*requestp) {
        *requestp = conn;
        return handle_head(conn, method);
    } else if (*piece_size) {
        size_t size = *piece_size;

        *piece_size = 0;
        if (conn->body.length + size > REST_MAX_BODY) {
            return MHD_NO;
        }
        ds_put_buffer(&conn->body, piece, size);
        return MHD_YES;
    }
    return handle_end(conn, path, method);
}

/* Ends what has taken too long. */
void
rest_conn_hang_up_slow(struct rest *rest)
{
    while (!ovs_list_is_empty(&rest->conns)) {
        struct rest_conn *conn = CONTAINER_OF(ovs_list_front(&rest->conns),
                                              struct rest_conn, node);

        if (time_msec() < conn->deadline) {
            break;
        }
        conn_hang_up(rest, conn);
    }
}

void
rest_conn_resume_all(struct rest *rest)
{
    struct rest_conn *conn;

    LIST_FOR_EACH (conn, node, &rest->conns) {
        conn_resume(conn);
    }
}

void
rest_conn_wait(const struct rest *rest)
{
    if (!ovs_list_is_empty(&rest->conns)) {
        poll_timer_wait_until(CONTAINER_OF(ovs_list_front(&rest->conns),
                                           struct rest_conn, node)->deadline);
    }
}
