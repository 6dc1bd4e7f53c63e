/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/control.h"
#include "controller/hosts-db.h"
#include "controller/intent-db.h"
#include "controller/northbound/dashboard/dashboard.h"
#include "fatal-signal.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "socket-util.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(rest);

#define MAX_CONNS 64            /* Connections at a time. */
#define REQUEST_MS 10000        /* For a request and its answer. */
#define MAX_HEAD (16 * 1024)    /* Bytes of a request line and its headers. */
#define MAX_BODY (64 * 1024)    /* Bytes that are read, and thrown away. */
#define MAX_QUOTE 64            /* Characters of a path that errors show. */
#define EXPLAIN "/v1/explain/"  /* And COJOB/JOB. */

struct rest {
    struct MHD_Daemon *daemon;
    const struct controller *ctl;
    char *path;                 /* Of the socket. */
    struct ovs_list conns;      /* Of struct conn, soonest deadline first. */
    size_t n_conns;             /* Also those that are in no list any more. */
    bool again;                 /* There is room since the last run. */
};

/* A client's connection. */
struct conn {
    struct ovs_list node;       /* In struct rest's 'conns', until hung up. */
    int fd;                     /* libmicrohttpd's. */
    long long deadline;         /* When the request must be over, ms. */
    unsigned long long body;    /* Bytes of the request's body so far. */
};

/* An answer: JSON, or else plain text. */
struct answer {
    unsigned int status;        /* HTTP's. */
    struct json *json;          /* Taken over by send_answer(), or NULL. */
    const char *text;           /* If 'json' is NULL. */
};

static struct answer
answer_ok(struct json *json)
{
    return (struct answer) { .status = MHD_HTTP_OK, .json = json };
}

/* An error 'message', which is taken over, of the form "PLACE: WHAT, what is
 * allowed". */
static struct answer
answer_error(unsigned int status, char *message)
{
    struct json *json = json_object_create();

    json_object_put(json, "error", json_string_create_nocopy(message));
    return (struct answer) { .status = status, .json = json };
}

/* The loop runs, or there would be no answer. */
static struct answer
get_healthz(const struct controller *ctl OVS_UNUSED)
{
    return (struct answer) { .status = MHD_HTTP_OK, .text = "ok\n" };
}

static struct answer
get_readyz(const struct controller *ctl)
{
    const char *away = (!intent_db_is_connected(ctl->intent) ? "intent"
                        : !hosts_db_is_connected(ctl->hosts) ? "hosts"
                        : NULL);
    struct json *json;

    if (away) {
        return answer_error(MHD_HTTP_SERVICE_UNAVAILABLE,
                            xasprintf("/readyz: the %s database is away, "
                                      "\"active\" with both databases is "
                                      "ready", away));
    } else if (!intent_db_is_active(ctl->intent)) {
        return answer_error(MHD_HTTP_SERVICE_UNAVAILABLE,
                            xasprintf("/readyz: the controller is \"%s\", "
                                      "\"active\" with both databases is "
                                      "ready",
                                      intent_db_state(ctl->intent)));
    }
    json = json_object_create();
    json_object_put(json, "ready", json_boolean_create(true));
    return answer_ok(json);
}

/* Paths beside /v1/VIEW. */
static const struct probe {
    const char *path;
    struct answer (*get)(const struct controller *);
} probes[] = {
    { "/healthz", get_healthz },
    { "/readyz", get_readyz },
};

static const struct probe *
find_probe(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
        if (!strcmp(path, probes[i].path)) {
            return &probes[i];
        }
    }
    return NULL;
}

static const struct control_view *
find_view(const char *path)
{
    if (!strncmp(path, "/v1/", 4)) {
        for (size_t i = 0; i < n_control_views; i++) {
            if (!strcmp(path + 4, control_views[i].name)) {
                return &control_views[i];
            }
        }
    }
    return NULL;
}

/* Returns 'path' as it may be shown: short, and nothing but ASCII. */
static char *
quote_path(const char *path)
{
    char *quote = xmemdup0(path, strnlen(path, MAX_QUOTE));

    for (char *p = quote; *p; p++) {
        if (*p <= ' ' || *p > '~') {
            *p = '?';
        }
    }
    return quote;
}

static struct answer
answer_not_found(const char *path)
{
    char *quote = quote_path(path);
    struct ds message = DS_EMPTY_INITIALIZER;

    ds_put_format(&message, "%s: not found, one of", quote);
    for (size_t i = 0; i < n_control_views; i++) {
        ds_put_format(&message, " /v1/%s,", control_views[i].name);
    }
    ds_put_cstr(&message, " "EXPLAIN"COJOB/JOB,");
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
        ds_put_format(&message, " %s%s", probes[i].path,
                      i + 1 < ARRAY_SIZE(probes) ? "," : " is allowed");
    }
    free(quote);
    return answer_error(MHD_HTTP_NOT_FOUND, ds_steal_cstr(&message));
}

static struct answer
answer_explain(const struct controller *ctl, const char *path)
{
    struct json *json;
    char *job = quote_path(path + strlen(EXPLAIN));
    char *error = control_explain(ctl, job, &json);

    free(job);
    if (error) {
        char *message = xasprintf(EXPLAIN"%s", error);

        free(error);
        return answer_error(MHD_HTTP_NOT_FOUND, message);
    }
    return answer_ok(json);
}

static bool
is_read(const char *method)
{
    return (!strcmp(method, MHD_HTTP_METHOD_GET)
            || !strcmp(method, MHD_HTTP_METHOD_HEAD));
}

/* Answers a request for 'path' with a body of 'body' bytes. */
static struct answer
get_answer(const struct rest *rest, struct MHD_Connection *mc,
           const char *path, const char *method, unsigned long long body)
{
    const struct control_view *view = find_view(path);
    const struct probe *probe = find_probe(path);
    bool explain = !strncmp(path, EXPLAIN, strlen(EXPLAIN));

    if (!view && !probe && !explain && !dashboard_owns(path)) {
        return answer_not_found(path);
    } else if (!is_read(method)) {
        return answer_error(MHD_HTTP_METHOD_NOT_ALLOWED,
                            xasprintf("%s: it is read-only, GET or HEAD is "
                                      "allowed", path));
    } else if (body) {
        return answer_error(MHD_HTTP_CONTENT_TOO_LARGE,
                            xasprintf("%s: the request has a body, none is "
                                      "allowed", path));
    } else if (MHD_get_connection_values(mc, MHD_GET_ARGUMENT_KIND, NULL,
                                         NULL)) {
        return answer_error(MHD_HTTP_BAD_REQUEST,
                            xasprintf("%s: the request has a query, none is "
                                      "allowed", path));
    }
    return (view ? answer_ok(view->build(rest->ctl))
            : probe ? probe->get(rest->ctl)
            : answer_explain(rest->ctl, path));
}

/* Sends and frees 'answer'.  An error ends the connection, as there may be
 * more of the request. */
static enum MHD_Result
send_answer(struct MHD_Connection *mc, struct answer answer)
{
    const char *type = answer.json ? "application/json" : "text/plain";
    struct MHD_Response *response;
    enum MHD_Result result = MHD_NO;
    char *text;

    text = (answer.json ? json_to_string(answer.json, JSSF_SORT)
            : xstrdup(answer.text));
    json_destroy(answer.json);
    response = MHD_create_response_from_buffer(strlen(text), text,
                                               MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return MHD_NO;
    }
    if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                type)
        && MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                   "no-store")
        && (answer.status != MHD_HTTP_METHOD_NOT_ALLOWED
            || MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
                                       "GET, HEAD"))
        && (answer.status == MHD_HTTP_OK
            || MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION,
                                       "close"))) {
        result = MHD_queue_response(mc, answer.status, response);
    }
    MHD_destroy_response(response);
    return result;
}

static struct conn *
conn_get(struct MHD_Connection *mc)
{
    return MHD_get_connection_info(
        mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Lets libmicrohttpd see the end of 'conn', in its next run. */
static void
conn_hang_up(struct rest *rest, struct conn *conn)
{
    ovs_list_remove(&conn->node);
    ovs_list_init(&conn->node);
    shutdown(conn->fd, SHUT_RDWR);
    rest->again = true;
}

/* Gives 'conn' the whole time for its next request. */
static void
conn_renew(struct rest *rest, struct conn *conn)
{
    conn->body = 0;
    conn->deadline = time_msec() + REQUEST_MS;
    ovs_list_remove(&conn->node);
    ovs_list_push_back(&rest->conns, &conn->node);
}

/* libmicrohttpd calls it when a connection begins and when it ends. */
static void
connection_changed(void *rest_, struct MHD_Connection *mc, void **connp,
                   enum MHD_ConnectionNotificationCode code)
{
    struct rest *rest = rest_;
    struct conn *conn;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *connp = conn = xzalloc(sizeof *conn);
        conn->fd = MHD_get_connection_info(
            mc, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        ovs_list_init(&conn->node);
        conn_renew(rest, conn);
        if (++rest->n_conns >= MAX_CONNS && !ovs_list_is_empty(&rest->conns)) {
            conn_hang_up(rest, CONTAINER_OF(ovs_list_front(&rest->conns),
                                            struct conn, node));
        }
    } else {
        conn = *connp;
        ovs_list_remove(&conn->node);
        free(conn);
        rest->n_conns--;
        rest->again = true;
    }
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

/* libmicrohttpd calls it for the head of each request, for each piece of its
 * body, and for its end, where the answer is due. */
static enum MHD_Result
handle_request(void *rest_, struct MHD_Connection *mc, const char *path,
               const char *method, const char *version OVS_UNUSED,
               const char *piece OVS_UNUSED, size_t *piece_size,
               void **requestp)
{
    struct rest *rest = rest_;
    struct conn *conn = conn_get(mc);

    if (!*requestp) {
        *requestp = conn;
        if (get_content_length(mc) <= MAX_BODY) {
            return MHD_YES;
        }
        return send_answer(mc, answer_error(
            MHD_HTTP_CONTENT_TOO_LARGE,
            xasprintf("/: the request's body is too large, %d bytes are "
                      "allowed", MAX_BODY)));
    } else if (*piece_size) {
        conn->body += *piece_size;
        *piece_size = 0;
        return conn->body <= MAX_BODY ? MHD_YES : MHD_NO;
    } else if (dashboard_owns(path) && is_read(method) && !conn->body) {
        return dashboard_answer(rest->ctl, mc, path);
    }
    return send_answer(mc, get_answer(rest, mc, path, method, conn->body));
}

static void
request_completed(void *rest_, struct MHD_Connection *mc,
                  void **requestp OVS_UNUSED,
                  enum MHD_RequestTerminationCode code)
{
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        conn_renew(rest_, conn_get(mc));
    }
}

static void OVS_PRINTF_FORMAT(2, 0)
log_message(void *rest OVS_UNUSED, const char *format, va_list args)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 20);

    if (!VLOG_DROP_DBG(&rl)) {
        char *message = xvasprintf(format, args);

        message[strcspn(message, "\n")] = '\0';
        VLOG_DBG("%s", message);
        free(message);
    }
}

/* Listens on 'path' for clients of the same user.  Returns a file descriptor,
 * or a negative errno value. */
static int
listen_on(const char *path)
{
    int fd = make_unix_socket(SOCK_STREAM, true, path, NULL);

    if (fd >= 0 && (chmod(path, 0600) || listen(fd, MAX_CONNS))) {
        int error = errno;

        fatal_signal_unlink_file_now(path);
        close(fd);
        return -error;
    }
    return fd;
}

/* Answers for 'ctl' on 'remote', "unix:PATH", or nowhere if it is "none", in
 * which case '*restp' is NULL, which all functions accept.  Returns NULL if
 * successful, otherwise a message that the caller must free. */
char *
rest_create(const char *remote, const struct controller *ctl,
            struct rest **restp)
{
    struct rest *rest;
    int fd;

    *restp = NULL;
    if (!strcmp(remote, "none")) {
        return NULL;
    } else if (strncmp(remote, "unix:", 5) || !remote[5]) {
        return xasprintf("--rest: \"%s\" is no place to listen, unix:PATH or "
                         "none is allowed", remote);
    }

    rest = xzalloc(sizeof *rest);
    rest->ctl = ctl;
    rest->path = abs_file_name(NULL, remote + 5);
    ovs_list_init(&rest->conns);
    fd = listen_on(rest->path);
    if (fd >= 0) {
        rest->daemon = MHD_start_daemon(
            MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL,
            handle_request, rest,
            MHD_OPTION_EXTERNAL_LOGGER, log_message, NULL,
            MHD_OPTION_LISTEN_SOCKET, fd,
            MHD_OPTION_CONNECTION_LIMIT, (unsigned int) MAX_CONNS,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) MAX_HEAD,
            MHD_OPTION_NOTIFY_CONNECTION, connection_changed, rest,
            MHD_OPTION_NOTIFY_COMPLETED, request_completed, rest,
            MHD_OPTION_STRICT_FOR_CLIENT, 1,
            MHD_OPTION_END);
    }
    if (!rest->daemon) {
        char *error = xasprintf("%s: cannot listen there (%s)", rest->path,
                                fd < 0 ? ovs_strerror(-fd)
                                : "libmicrohttpd did not start");

        rest_destroy(rest);
        return error;
    }
    VLOG_INFO("%s: listening", rest->path);
    *restp = rest;
    return NULL;
}

void
rest_destroy(struct rest *rest)
{
    if (rest) {
        if (rest->daemon) {
            MHD_stop_daemon(rest->daemon);
            fatal_signal_unlink_file_now(rest->path);
        }
        free(rest->path);
        free(rest);
    }
}

/* Does what can be done without waiting. */
void
rest_run(struct rest *rest)
{
    if (!rest) {
        return;
    }
    rest->again = false;
    while (!ovs_list_is_empty(&rest->conns)) {
        struct conn *conn = CONTAINER_OF(ovs_list_front(&rest->conns),
                                         struct conn, node);

        if (time_msec() < conn->deadline) {
            break;
        }
        conn_hang_up(rest, conn);
    }
    MHD_run(rest->daemon);
}

void
rest_wait(const struct rest *rest)
{
    MHD_UNSIGNED_LONG_LONG timeout;

    if (!rest) {
        return;
    }
    poll_fd_wait(MHD_get_daemon_info(rest->daemon,
                                     MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                 POLLIN);
    if (MHD_get_timeout(rest->daemon, &timeout)) {
        poll_timer_wait(MIN(timeout, REQUEST_MS));
    }
    if (!ovs_list_is_empty(&rest->conns)) {
        poll_timer_wait_until(CONTAINER_OF(ovs_list_front(&rest->conns),
                                           struct conn, node)->deadline);
    }
    /* Only when libmicrohttpd runs again does it listen again. */
    if (rest->again) {
        poll_immediate_wake();
    }
}
