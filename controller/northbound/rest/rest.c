/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/intent/intent-writer.h"
#include "controller/northbound/rest/event-stream.h"
#include "controller/northbound/rest/rest-conn.h"
#include "fatal-signal.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(rest);

#define MAX_PER_IP 16           /* Connections of one address, over TLS. */
#define MAX_HEAD (16 * 1024)    /* Bytes of a request line and its headers. */
#define TLS_VERSIONS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define PROBE_MS 5000           /* Idle time of the intent connection. */

/* A place to listen. */
struct listener {
    struct ovs_list node;       /* In struct rest's 'listeners'. */
    struct MHD_Daemon *daemon;
    char *path;                 /* Of a unix socket, or NULL. */
};

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

/* Lets libmicrohttpd answer what comes to 'fd'; without 'pem', in clear. */
static struct MHD_Daemon *
start_daemon(struct rest *rest, int fd, const struct rest_pem *pem)
{
    struct MHD_OptionItem items[5] = { { MHD_OPTION_END, 0, NULL } };

    if (pem) {
        items[0] = (struct MHD_OptionItem) { MHD_OPTION_HTTPS_MEM_KEY, 0,
                                             pem->key };
        items[1] = (struct MHD_OptionItem) { MHD_OPTION_HTTPS_MEM_CERT, 0,
                                             pem->certificate };
        items[2] = (struct MHD_OptionItem) { MHD_OPTION_HTTPS_MEM_TRUST, 0,
                                             pem->ca_cert };
        items[3] = (struct MHD_OptionItem) {
            MHD_OPTION_HTTPS_PRIORITIES, 0, CONST_CAST(char *, TLS_VERSIONS)
        };
        items[4] = (struct MHD_OptionItem) { MHD_OPTION_END, 0, NULL };
    }
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME
        | (pem ? MHD_USE_TLS : 0), 0, NULL, NULL, rest_conn_handle, rest,
        MHD_OPTION_EXTERNAL_LOGGER, log_message, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int) REST_MAX_CONNS,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned int) (pem ? MAX_PER_IP
                                                            : 0),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) MAX_HEAD,
        MHD_OPTION_NOTIFY_CONNECTION, rest_conn_changed, rest,
        MHD_OPTION_NOTIFY_COMPLETED, rest_conn_completed, rest,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, items,
        MHD_OPTION_END);
}

/* Listens on 'remote' too. */
static char *
add_listener(struct rest *rest, const char *remote,
             const struct rest_tls *tls)
{
    bool is_tls = rest_listen_is_tls(remote);
    struct listener *listener;
    struct rest_pem pem;
    char *path, *error;
    int fd;

    error = rest_listen_check(remote, tls);
    if (!error && is_tls) {
        error = rest_pem_read(tls, &pem);
    }
    if (error) {
        return error;
    }
    listener = xzalloc(sizeof *listener);
    fd = rest_listen_open(remote, REST_MAX_CONNS, &path);
    if (fd >= 0) {
        listener->daemon = start_daemon(rest, fd, is_tls ? &pem : NULL);
    }
    listener->path = path;
    ovs_list_push_back(&rest->listeners, &listener->node);
    if (is_tls) {
        rest_pem_uninit(&pem);
    }
    if (!listener->daemon) {
        return xasprintf("%s: cannot listen there (%s)", remote,
                         fd < 0 ? ovs_strerror(-fd)
                         : "libmicrohttpd did not start");
    }
    VLOG_INFO("%s: listening", remote);
    return NULL;
}

/* Answers for 'ctl' as 'options' say, or nowhere if they say "none", in which
 * case '*restp' is NULL, which all functions accept.  Returns NULL if
 * successful, otherwise a message that the caller must free. */
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
    rest = xzalloc(sizeof *rest);
    rest->ctl = ctl;
    ovs_list_init(&rest->conns);
    ovs_list_init(&rest->listeners);
    svec_clone(&rest->clients, options->tls.clients);
    rest->writer = intent_writer_create(options->intent, PROBE_MS);
    rest->events = event_stream_create(ctl);
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

static void
listener_destroy(struct listener *listener)
{
    if (listener->daemon) {
        MHD_stop_daemon(listener->daemon);
        if (listener->path) {
            fatal_signal_unlink_file_now(listener->path);
        }
    }
    free(listener->path);
    free(listener);
}

void
rest_destroy(struct rest *rest)
{
    struct listener *listener;

    if (!rest) {
        return;
    }
    /* libmicrohttpd cannot end while a connection is suspended. */
    intent_writer_destroy(rest->writer);
    rest_conn_resume_all(rest);
    LIST_FOR_EACH_POP (listener, node, &rest->listeners) {
        listener_destroy(listener);
    }
    event_stream_destroy(rest->events);
    svec_destroy(&rest->clients);
    free(rest);
}

/* The members of the intent database are at 'remote' now. */
void
rest_set_intent(struct rest *rest, const char *remote)
{
    if (rest) {
        intent_writer_set_remote(rest->writer, remote);
    }
}

/* Does what can be done without waiting. */
void
rest_run(struct rest *rest)
{
    struct listener *listener;

    if (!rest) {
        return;
    }
    rest->again = false;
    intent_writer_run(rest->writer);
    event_stream_run(rest->events);
    rest_conn_hang_up_slow(rest);
    LIST_FOR_EACH (listener, node, &rest->listeners) {
        MHD_run(listener->daemon);
    }
}

void
rest_wait(const struct rest *rest)
{
    const struct listener *listener;
    MHD_UNSIGNED_LONG_LONG timeout;

    if (!rest) {
        return;
    }
    intent_writer_wait(rest->writer);
    event_stream_wait(rest->events);
    LIST_FOR_EACH (listener, node, &rest->listeners) {
        poll_fd_wait(MHD_get_daemon_info(
                         listener->daemon,
                         MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, POLLIN);
        if (MHD_get_timeout(listener->daemon, &timeout)) {
            poll_timer_wait(MIN(timeout, REST_REQUEST_MS));
        }
    }
    rest_conn_wait(rest);
    /* Only when libmicrohttpd runs again does it listen again. */
    if (rest->again) {
        poll_immediate_wake();
    }
}
