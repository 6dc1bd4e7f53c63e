/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "controller/controller.h"
#include "controller/decide/decision-log.h"
#include "controller/decide/policy-file.h"
#include "controller/intent/intent-client.h"
#include "controller/model/cluster.h"
#include "controller/model/owners.h"
#include "controller/northbound/dashboard/dashboard.h"
#include "controller/northbound/rest/peer.h"
#include "controller/northbound/rest/rest-routes.h"
#include "controller/northbound/rest/token-review.h"
#include "controller/northbound/views/metrics.h"
#include "controller/ovsdb/answers.h"
#include "fatal-signal.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

VLOG_DEFINE_THIS_MODULE(rest);

#define MAX_CONNS 64            /* Connections. */
#define MAX_PER_IP 16           /* TLS connections of one IP address. */
#define MAX_HEAD (16 * 1024)    /* Bytes of a request line and its headers. */
#define REQUEST_MS 10000        /* Timeout of a request. */
#define CHANGE_MS 5000          /* Timeout of a change of the intent. */
#define RELOAD_MS 1000          /* Interval of reading the files of TLS. */
#define TLS_VERSIONS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct rest {
    struct controller *ctl;
    struct intent_writer *writer;
    struct token_reviews *tokens;       /* Or NULL. */
    char *key, *certificate, *ca_cert;  /* Files of TLS, or NULL. */
    bool users;                 /* All users may connect to Unix sockets. */
    long long next_reload;      /* time_msec() when the files are read. */
    struct ovs_list listeners;  /* List of struct listener. */
    struct ovs_list conns;      /* List of struct conn, by deadline. */
    struct rest_counts counts;
    bool again;                 /* libmicrohttpd must run again: a connection
                                 * was resumed or closed. */
};

struct listener {
    struct ovs_list node;       /* In struct rest's 'listeners'. */
    struct MHD_Daemon *daemon;
    struct MHD_Daemon *old;     /* Serves the connections from before the last
                                 * replaced certificate, or NULL. */
    char *remote;
    char *path;                 /* Path of the Unix socket, or NULL. */
    struct rest_pem pem;        /* Contents in use; empty without TLS. */
};

/* A client's connection and its current request. */
struct conn {
    struct ovs_list node;       /* In struct rest's 'conns', until closed. */
    struct rest *rest;
    struct MHD_Connection *mc;
    int fd;                     /* Owned by libmicrohttpd. */
    long long deadline;         /* time_msec() when the request times out. */
    struct peer peer;           /* The client; without an actor until it is
                                 * known. */
    bool has_token;             /* 'peer' is of the request's token. */
    bool waiting;               /* For the review of that. */
    bool suspended;             /* libmicrohttpd does not handle it. */

    bool has_null; /* The path or the query has "%00". */
    struct ds body;
    struct change *change;      /* Change being written, or NULL. */
    struct rest_reply reply;    /* To the change, once written. */
};

/* A change that is being written.  It may outlive its connection. */
struct change {
    struct conn *conn;          /* NULL if the connection was closed. */
    struct rest *rest;
    char *actor;                /* The client. */
    struct intent_edit edit;    /* Owns its strings. */
};

static struct conn *
conn_get(struct MHD_Connection *mc)
{
    return MHD_get_connection_info(
        mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void
conn_suspend(struct conn *conn)
{
    if (!conn->suspended) {
        conn->suspended = true;
        MHD_suspend_connection(conn->mc);
    }
}

static void
conn_resume(struct conn *conn)
{
    if (conn->suspended) {
        conn->suspended = false;
        conn->rest->again = true;
        MHD_resume_connection(conn->mc);
    }
}

/* Shuts down the socket of 'conn', so that libmicrohttpd ends it in its next
 * run. */
static void
conn_close(struct rest *rest, struct conn *conn)
{
    ovs_list_remove(&conn->node);
    ovs_list_init(&conn->node);
    shutdown(conn->fd, SHUT_RDWR);
    conn_resume(conn);
    rest->counts.hung_up++;
    rest->again = true;
}

static void
conn_renew(struct rest *rest, struct conn *conn)
{
    conn->deadline = time_msec() + REQUEST_MS;
    ovs_list_remove(&conn->node);
    ovs_list_push_back(&rest->conns, &conn->node);
}

static void
conn_create(struct rest *rest, struct MHD_Connection *mc, void **connp)
{
    struct conn *conn = *connp = xmalloc(sizeof *conn);

    *conn = (struct conn) {
        .rest = rest, .mc = mc, .body = DS_EMPTY_INITIALIZER,
        .fd = MHD_get_connection_info(
            mc, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
    };
    ovs_list_init(&conn->node);
    conn_renew(rest, conn);
    if (++rest->counts.connections >= MAX_CONNS
        && !ovs_list_is_empty(&rest->conns)) {
        conn_close(rest, CONTAINER_OF(ovs_list_front(&rest->conns),
                                      struct conn, node));
    }
}

static void
conn_destroy(struct rest *rest, struct conn *conn)
{
    if (conn->change) {
        conn->change->conn = NULL;
    }
    ovs_list_remove(&conn->node);
    rest_reply_uninit(&conn->reply);
    ds_destroy(&conn->body);
    peer_uninit(&conn->peer);
    free(conn);
    rest->counts.connections--;
    rest->again = true;
}

/* libmicrohttpd's callback for the start and the end of a connection. */
static void
conn_changed(void *rest, struct MHD_Connection *mc, void **connp,
             enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        conn_create(rest, mc, connp);
    } else {
        conn_destroy(rest, *connp);
    }
}

/* libmicrohttpd's callback for the end of a request, with a reply or not. */
static void
request_completed(void *rest, struct MHD_Connection *mc,
                  void **requestp OVS_UNUSED,
                  enum MHD_RequestTerminationCode code)
{
    struct conn *conn = conn_get(mc);

    ds_clear(&conn->body);
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        conn_renew(rest, conn);
    }
}

static enum MHD_Result
send_reply(struct conn *conn, struct rest_reply reply)
{
    conn->rest->counts.replies[MIN(reply.status / 100, 5)]++;
    conn->rest->counts.refused += reply.status == MHD_HTTP_FORBIDDEN;
    return rest_reply_send(conn->mc, &reply);
}

static const char *
get_header(struct MHD_Connection *mc, const char *name)
{
    return MHD_lookup_connection_value(mc, MHD_HEADER_KIND, name);
}

/* Header fields that say where a body ends. */
struct framing {
    const char *length, *coding; /* Or NULL. */
    bool ambiguous;              /* Others may see another end. */
};

static enum MHD_Result
note_framing(void *framing_, enum MHD_ValueKind kind OVS_UNUSED,
             const char *name, const char *value)
{
    struct framing *f = framing_;

    if (!strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
        f->ambiguous |= f->length && strcmp(f->length, value);
        f->length = value;
    } else if (!strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        f->ambiguous |= f->coding || strcasecmp(value, "chunked");
        f->coding = value;
    }
    f->ambiguous |= f->length && f->coding;
    return MHD_YES;
}

static struct framing
get_framing(struct MHD_Connection *mc)
{
    struct framing f = { .length = NULL };

    MHD_get_connection_values(mc, MHD_HEADER_KIND, note_framing, &f);
    return f;
}

static const char *
get_query(const void *mc, const char *name)
{
    return MHD_lookup_connection_value(CONST_CAST(void *, mc),
                                       MHD_GET_ARGUMENT_KIND, name);
}

static struct rest_reply
reply_change(const struct change *change, enum intent_result result,
             bool changed, char *error)
{
    const struct intent_edit *edit = &change->edit;
    struct json *json;

    if (result != INTENT_WRITTEN) {
        return rest_reply_message(
            result == INTENT_FORBIDDEN ? MHD_HTTP_FORBIDDEN
            : result == INTENT_REFUSED ? MHD_HTTP_NOT_FOUND
                                       : MHD_HTTP_SERVICE_UNAVAILABLE,
            error);
    }
    json = json_object_create();
    json_object_put_string(json, "cojob", edit->cojob);
    if (edit->kind >= INTENT_STAGE_BEGIN) {
        json_put_integer(json, "rung", edit->rung);
    } else if (edit->kind >= INTENT_JOB_BEGIN) {
        json_object_put_string(json, "job", edit->job);
    }
    json_put_boolean(json, "changed", changed);
    return rest_reply_json(json);
}

/* The intent writer's callback: 'change' was written or refused. */
static void
change_done(void *change_, enum intent_result result, bool changed,
            char *error)
{
    struct change *change = change_;
    const struct intent_edit *edit = &change->edit;
    struct rest_reply reply;

    if (result == INTENT_FORBIDDEN && edit->as_user) {
        owners_refuse(&change->rest->ctl->cluster->owners, edit->owner,
                      edit->uid, error);
    }
    reply = reply_change(change, result, changed, error);
    if (result == INTENT_WRITTEN && changed) {
        char *text = intent_edit_to_string(edit);

        decision_log_append(change->rest->ctl->log, DECISION_OPERATOR,
                            edit->cojob, change->actor, "%s", text);
        free(text);
    }
    if (change->conn) {
        change->conn->change = NULL;
        change->conn->reply = reply;
        conn_resume(change->conn);
    } else {
        rest_reply_uninit(&reply);
    }
    intent_edit_uninit(&change->edit);
    free(change->actor);
    free(change);
}

/* Takes ownership of the strings of 'edit'. */
static enum MHD_Result
start_change(struct conn *conn, const struct intent_edit *edit)
{
    struct change *change = xmalloc(sizeof *change);

    *change = (struct change){ .conn = conn,
                               .rest = conn->rest,
                               .actor = xstrdup(conn->peer.actor),
                               .edit = *edit };
    conn->change = change;
    conn_suspend(conn);
    intent_writer_add(conn->rest->writer, edit, change->actor, CHANGE_MS,
                      change_done, change);
    return MHD_YES;
}

/* Returns the token of the request, or NULL. */
static const char *
get_token(struct MHD_Connection *mc)
{
    const char *text = get_header(mc, MHD_HTTP_HEADER_AUTHORIZATION);

    return text && !strncasecmp(text, "Bearer ", 7) ? text + 7 : NULL;
}

/* Finds the peer of the request's token.  Returns false if that takes time:
 * 'conn' is suspended until its review has ended; or stores an error. */
static bool
review_token(struct conn *conn, struct rest_reply *error)
{
    const char *user;
    enum token_state state =
        token_reviews_request(conn->rest->tokens, get_token(conn->mc), &user);

    *error = (struct rest_reply){ .status = 0 };
    if (state == TOKEN_WAITS) {
        conn->waiting = true;
        conn_suspend(conn);
        return false;
    } else if (state == TOKEN_FAILED) {
        *error = rest_reply_error(MHD_HTTP_SERVICE_UNAVAILABLE,
                                  "/: the API server has not reviewed the "
                                  "token; expected a reply within 5 s");
        return true;
    } else if (state == TOKEN_VALID) {
        conn->peer = peer_of_account(user);
    }
    if (conn->peer.role == PEER_NONE) {
        *error = rest_reply_error(
            MHD_HTTP_FORBIDDEN,
            "/: the token is not valid here; expected one of a service "
            "account for the audience \"" TOKEN_REVIEW_AUDIENCE "\"");
    }
    return true;
}

static enum MHD_Result
handle_end(struct conn *conn, const char *path, const char *method)
{
    struct rest_reply reply = conn->reply;
    struct rest_request request;

    if (conn->change || conn->waiting) { /* Closed in the meantime. */
        return MHD_NO;
    } else if (reply.status) { /* The change has been written. */
        conn->reply = (struct rest_reply){ .status = 0 };
        return send_reply(conn, reply);
    } else if (conn->has_token && !conn->peer.actor) {
        if (!review_token(conn, &reply)) {
            return MHD_YES;
        } else if (reply.status) {
            return send_reply(conn, reply);
        }
    }
    request = (struct rest_request){
        .ctl = conn->rest->ctl,
        .counts = &conn->rest->counts,
        .peer = &conn->peer,
        .policy = policy_file_get(conn->rest->ctl->policy),
        .method = method,
        .path = path,
        .body = ds_cstr(&conn->body),
        .body_size = conn->body.length,
        .query = get_query,
        .query_aux = conn->mc,
        .n_query = MHD_get_connection_values(conn->mc, MHD_GET_ARGUMENT_KIND,
                                             NULL, NULL)
    };
    if (dashboard_owns(path) && rest_is_read(method)) {
        conn->rest->counts.replies[2]++;
        return dashboard_reply(conn->rest->ctl, conn->mc, path);
    }
    reply = rest_route(&request);
    return (reply.status ? send_reply(conn, reply)
                         : start_change(conn, &request.edit));
}

/* Returns the certificate of this server, in PEM, or NULL. */
static const char *
own_certificate(const struct rest *rest)
{
    const struct listener *listener;

    LIST_FOR_EACH (listener, node, &rest->listeners) {
        if (listener->pem.certificate) {
            return listener->pem.certificate;
        }
    }
    return NULL;
}

static enum MHD_Result
handle_head(struct conn *conn, const char *method)
{
    const struct framing framing = get_framing(conn->mc);
    struct rest_reply reply;

    ds_clear(&conn->body);
    if (conn->has_token) { /* Each request has its own. */
        peer_uninit(&conn->peer);
        conn->peer = (struct peer){ .role = PEER_NONE };
    }
    if (!conn->peer.actor) {
        conn->peer = peer_identify(conn->mc);
    }
    conn->has_token =
        (conn->rest->tokens && !conn->peer.actor && get_token(conn->mc));
    if (peer_is_revoked(&conn->peer, conn->rest->ctl->cluster)) {
        conn->peer.role = PEER_NONE;
    }
    reply = rest_authorize(&(struct rest_head){
        .peer = &conn->peer,
        .has_token = conn->has_token,
        .method = method,
        .has_null = conn->has_null,
        .is_ambiguous = framing.ambiguous,
        .host = get_header(conn->mc, MHD_HTTP_HEADER_HOST),
        .certificate = own_certificate(conn->rest),
        .site = get_header(conn->mc, "Sec-Fetch-Site"),
        .dest = get_header(conn->mc, "Sec-Fetch-Dest"),
        .origin = get_header(conn->mc, MHD_HTTP_HEADER_ORIGIN),
        .content_length =
            framing.length ? strtoull(framing.length, NULL, 10) : 0 });
    return reply.status ? send_reply(conn, reply) : MHD_YES;
}

/* libmicrohttpd's callback for the path and the query of a request before it
 * decodes them: a "%00" cuts them, so that they name another object. */
static void *
note_uri(void *rest OVS_UNUSED, const char *uri, struct MHD_Connection *mc)
{
    conn_get(mc)->has_null = strstr(uri, "%00") != NULL;
    return NULL;
}

/* libmicrohttpd's callback for the head of a request, for each piece of its
 * body, for its end, and when a suspended request is resumed. */
static enum MHD_Result
handle_request(void *rest OVS_UNUSED, struct MHD_Connection *mc,
               const char *path, const char *method,
               const char *version OVS_UNUSED, const char *piece,
               size_t *piece_size, void **requestp)
{
    struct conn *conn = conn_get(mc);

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

/* Closes the connections of clients that an operator has revoked, and those
 * that have been idle for too long. */
static void
close_conns(struct rest *rest)
{
    struct conn *each;

    LIST_FOR_EACH_SAFE(each, node, &rest->conns)
    {
        if (peer_is_revoked(&each->peer, rest->ctl->cluster)) {
            conn_close(rest, each);
        }
    }
    while (!ovs_list_is_empty(&rest->conns)) {
        struct conn *conn = CONTAINER_OF(ovs_list_front(&rest->conns),
                                         struct conn, node);

        if (time_msec() < conn->deadline) {
            break;
        }
        conn_close(rest, conn);
    }
}

static void
stop_daemon(struct rest *rest, struct MHD_Daemon *daemon)
{
    struct conn *conn;

    if (!daemon) {
        return;
    }
    /* libmicrohttpd cannot stop while a connection is suspended. */
    LIST_FOR_EACH (conn, node, &rest->conns) {
        if (MHD_get_connection_info(
                conn->mc, MHD_CONNECTION_INFO_DAEMON)->daemon == daemon) {
            conn_resume(conn);
        }
    }
    MHD_stop_daemon(daemon);
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

/* Starts libmicrohttpd on listening socket 'fd', with TLS if 'pem' has a
 * key. */
static struct MHD_Daemon *
start_daemon(struct rest *rest, int fd, const struct rest_pem *pem)
{
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_KEY, 0, pem->key },
        { MHD_OPTION_HTTPS_MEM_CERT, 0, pem->certificate },
        { MHD_OPTION_HTTPS_MEM_TRUST, 0, pem->ca_cert },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, CONST_CAST(char *, TLS_VERSIONS) },
        { MHD_OPTION_END, 0, NULL },
    };
    struct MHD_OptionItem none = { MHD_OPTION_END, 0, NULL };

    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME
            | (pem->key ? MHD_USE_TLS : 0),
        0, NULL, NULL, handle_request, rest, MHD_OPTION_EXTERNAL_LOGGER,
        log_message, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int) MAX_CONNS,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned int) (pem->key ? MAX_PER_IP : 0),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) MAX_HEAD,
        MHD_OPTION_NOTIFY_CONNECTION, conn_changed, rest,
        MHD_OPTION_NOTIFY_COMPLETED, request_completed, rest,
        MHD_OPTION_URI_LOG_CALLBACK, note_uri, rest,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
        pem->key ? tls : &none, MHD_OPTION_END);
}

static char *
add_listener(struct rest *rest, const char *remote, const struct rest_tls *tls)
{
    struct rest_pem pem = { .key = NULL };
    struct listener *listener;
    char *error;
    int fd;

    error = rest_listen_check(remote, tls);
    if (!error && rest_listen_is_tls(remote)) {
        error = rest_pem_read(tls, &pem);
    }
    if (error) {
        rest_pem_uninit(&pem);
        return error;
    }
    listener = xzalloc(sizeof *listener);
    listener->remote = xstrdup(remote);
    listener->pem = pem;
    fd = rest_listen_open(remote, MAX_CONNS, rest->users, &listener->path);
    if (fd >= 0) {
        listener->daemon = start_daemon(rest, fd, &pem);
    }
    ovs_list_push_back(&rest->listeners, &listener->node);
    if (!listener->daemon) {
        return xasprintf("%s: cannot listen there (%s)", remote,
                         fd < 0 ? ovs_strerror(-fd)
                         : "libmicrohttpd did not start");
    }
    VLOG_INFO("%s: listening", remote);
    return NULL;
}

/* Lets a daemon that uses 'pem' accept the next connections of 'listener'.
 * Returns false if 'pem' cannot be used. */
static bool
restart_listener(struct rest *rest, struct listener *listener,
                 const struct rest_pem *pem)
{
    int fd = dup(MHD_get_daemon_info(listener->daemon,
                                     MHD_DAEMON_INFO_LISTEN_FD)->listen_fd);
    struct MHD_Daemon *daemon = fd >= 0 ? start_daemon(rest, fd, pem) : NULL;

    if (!daemon) {
        close(fd);
        return false;
    }
    close(MHD_quiesce_daemon(listener->daemon));
    stop_daemon(rest, listener->old);
    listener->old = listener->daemon;
    listener->daemon = daemon;
    return true;
}

/* Uses the files of TLS from now on if their contents have changed. */
static void
reload_listener(struct rest *rest, struct listener *listener)
{
    const struct rest_tls tls = { rest->key, rest->certificate,
                                  rest->ca_cert };
    struct rest_pem pem;
    char *error = rest_pem_read(&tls, &pem);

    if (!error && rest_pem_equals(&pem, &listener->pem)) {
        rest_pem_uninit(&pem);
    } else if (!error && restart_listener(rest, listener, &pem)) {
        rest_pem_uninit(&listener->pem);
        listener->pem = pem;
        VLOG_INFO("%s: uses the replaced certificate", listener->remote);
    } else {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "%s: keeps the previous certificate (%s)",
                     listener->remote,
                     error ? error : "key and certificates do not match");
        rest_pem_uninit(&pem);
        free(error);
    }
}

static void
reload_listeners(struct rest *rest)
{
    struct listener *listener;

    if (time_msec() < rest->next_reload) {
        return;
    }
    rest->next_reload = time_msec() + RELOAD_MS;
    LIST_FOR_EACH (listener, node, &rest->listeners) {
        if (listener->pem.key) {
            reload_listener(rest, listener);
        }
    }
}

/* Starts the HTTP server of 'ctl'.  If the only remote is "none", '*restp' is
 * NULL, which all functions accept.  Returns NULL if successful, otherwise an
 * error message that the caller frees. */
char *
rest_create(const struct rest_options *options, struct controller *ctl,
            struct rest **restp)
{
    const struct svec *remotes = options->remotes;
    struct rest *rest;
    char *error = NULL;

    *restp = NULL;
    if (remotes->n == 1 && !strcmp(remotes->names[0], "none")) {
        return NULL;
    }
    error =
        options->api_server ? token_reviews_check(options->api_server) : NULL;
    if (error) {
        return error;
    }
    rest = xzalloc(sizeof *rest);
    rest->ctl = ctl;
    ovs_list_init(&rest->conns);
    ovs_list_init(&rest->listeners);
    rest->key = nullable_xstrdup(options->tls.key);
    rest->certificate = nullable_xstrdup(options->tls.certificate);
    rest->ca_cert = nullable_xstrdup(options->tls.ca_cert);
    rest->users = options->users;
    rest->writer = intent_writer_create(options->intent, ANSWERS_PROBE_MS);
    if (options->api_server) {
        rest->tokens =
            token_reviews_create(options->api_server, options->api_account);
    }
    for (size_t i = 0; !error && i < remotes->n; i++) {
        error = add_listener(rest, remotes->names[i], &options->tls);
    }
    if (error) {
        rest_destroy(rest);
    } else {
        *restp = rest;
    }
    return error;
}

void
rest_destroy(struct rest *rest)
{
    struct listener *listener;

    if (!rest) {
        return;
    }
    intent_writer_destroy(rest->writer);
    LIST_FOR_EACH_POP (listener, node, &rest->listeners) {
        stop_daemon(rest, listener->old);
        stop_daemon(rest, listener->daemon);
        if (listener->daemon && listener->path) {
            fatal_signal_unlink_file_now(listener->path);
        }
        rest_pem_uninit(&listener->pem);
        free(listener->remote);
        free(listener->path);
        free(listener);
    }
    token_reviews_destroy(rest->tokens);
    free(rest->key);
    free(rest->certificate);
    free(rest->ca_cert);
    free(rest);
}

void
rest_set_intent(struct rest *rest, const char *remote)
{
    if (rest) {
        intent_writer_set_remote(rest->writer, remote);
    }
}

/* Serves the old connections of 'listener' until the last one is closed. */
static void
run_old(struct rest *rest, struct listener *listener)
{
    const union MHD_DaemonInfo *info;

    MHD_run(listener->old);
    info = MHD_get_daemon_info(listener->old,
                               MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    if (!info->num_connections) {
        stop_daemon(rest, listener->old);
        listener->old = NULL;
    }
}

/* Has requests review their tokens again. */
static void
resume_reviewed(struct rest *rest)
{
    struct conn *conn;

    LIST_FOR_EACH (conn, node, &rest->conns) {
        if (conn->waiting) {
            conn->waiting = false;
            conn_resume(conn);
        }
    }
}

void
rest_run(struct rest *rest)
{
    struct listener *listener;

    if (!rest) {
        return;
    }
    rest->again = false;
    intent_writer_run(rest->writer);
    if (rest->tokens && token_reviews_run(rest->tokens)) {
        resume_reviewed(rest);
    }
    close_conns(rest);
    reload_listeners(rest);
    LIST_FOR_EACH (listener, node, &rest->listeners) {
        MHD_run(listener->daemon);
        if (listener->old) {
            run_old(rest, listener);
        }
    }
}

static void
wait_daemon(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG timeout;

    poll_fd_wait(MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)
                 ->epoll_fd, POLLIN);
    if (MHD_get_timeout(daemon, &timeout)) {
        poll_timer_wait(MIN(timeout, REQUEST_MS));
    }
}

void
rest_wait(const struct rest *rest)
{
    const struct listener *listener;

    if (!rest) {
        return;
    }
    intent_writer_wait(rest->writer);
    if (rest->tokens) {
        token_reviews_wait(rest->tokens);
    }
    LIST_FOR_EACH (listener, node, &rest->listeners) {
        wait_daemon(listener->daemon);
        if (listener->old) {
            wait_daemon(listener->old);
        }
        if (listener->pem.key) {
            poll_timer_wait_until(rest->next_reload);
        }
    }
    if (!ovs_list_is_empty(&rest->conns)) {
        poll_timer_wait_until(CONTAINER_OF(ovs_list_front(&rest->conns),
                                           struct conn, node)->deadline);
    }
    if (rest->again) {
        poll_immediate_wake();
    }
}
