/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/control/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "shim/capture/tap.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/miss.h"
#include "shim/control/request.h"
#include "wire/buffer.h"

#define CAPTURE_MS 10           /* Time between two reads of the tap. */
#define MAX_BACKLOG (4u << 20)  /* Bytes that wait for a client before it is
                                 * disconnected. */
#define MAX_EVENTS (64u << 10)  /* Bytes that wait for a client before it
                                 * misses events. */
#define MISS_BATCH 64
#define CAPTURE_BATCH (256u << 10)      /* Bytes sent at a time. */

struct client {
    int fd;                     /* -1: this element is free. */
    bool subscribed;            /* Receives misses. */
    bool captures;              /* Receives captured frames. */
    bool closing;               /* Disconnect when its replies are sent. */
    struct buffer rx, tx;
};

struct server {
    struct server_config config;
    char *path;                 /* Removed at the end; NULL: not ours. */
    char *published_path;       /* 'path' after server_publish(), or NULL. */
    int fd;                     /* Listening socket. */
    bool captures;              /* One of the clients receives captured
                                 * frames. */
    void *request, *reply;      /* Aligned bodies of the current request and
                                 * of its reply, SHIM_MAX_MESSAGE bytes. */
    struct client clients[SERVER_MAX_CLIENTS];
};

static bool
is_alive(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool alive;

    alive = fd >= 0 && !connect(fd, (const struct sockaddr *) address,
                                sizeof *address);
    if (fd >= 0) {
        close(fd);
    }
    return alive;
}

static int
bind_private(int fd, const struct sockaddr_un *address)
{
    mode_t old = umask(0177);
    int error = bind(fd, (const struct sockaddr *) address, sizeof *address)
                ? errno : 0;

    umask(old);
    return error;
}

static char *
listen_at(const char *path, int *fdp)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct stat st;
    int fd, error;

    if (!*path || strlen(path) >= sizeof address.sun_path) {
        return message("%s: not a path of 1 to 107 bytes", path);
    }
    strcpy(address.sun_path, path);
    if (!lstat(path, &st)) {
        if (!S_ISSOCK(st.st_mode)) {
            return message("%s: exists and is not a socket", path);
        }
        if (is_alive(&address)) {
            return message("%s: another shim listens there", path);
        }
        unlink(path);
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    error = fd < 0 ? errno : bind_private(fd, &address);
    if (!error && listen(fd, SERVER_MAX_CLIENTS)) {
        error = errno;
    }
    if (error) {
        if (fd >= 0) {
            close(fd);
        }
        return message("%s: %s", path, strerror(error));
    }
    *fdp = fd;
    return NULL;
}

char *
server_create(const char *path, const struct server_config *config,
              struct server **serverp)
{
    struct server *s = allocate(1, sizeof *s);
    char *error;

    *serverp = NULL;
    s->config = *config;
    for (int i = 0; i < SERVER_MAX_CLIENTS; i++) {
        s->clients[i].fd = -1;
    }
    s->path = message("%s%s", path, config->publish_later ? ".new" : "");
    s->published_path = config->publish_later ? duplicate(path) : NULL;
    error = listen_at(s->path, &s->fd);
    if (error) {
        free(s->published_path);
        free(s->path);
        free(s);
        return error;
    }
    s->request = allocate(1, SHIM_MAX_MESSAGE);
    s->reply = allocate(1, SHIM_MAX_MESSAGE);
    *serverp = s;
    return NULL;
}

char *
server_publish(struct server *s)
{
    if (!s->published_path) {
        return NULL;
    }
    if (rename(s->path, s->published_path)) {
        return message("%s: %s", s->published_path, strerror(errno));
    }
    free(s->path);
    s->path = s->published_path;
    s->published_path = NULL;
    return NULL;
}

void
server_abandon(struct server *s)
{
    free(s->path);
    s->path = NULL;
}

static void
close_client(struct client *c)
{
    close(c->fd);
    buffer_uninit(&c->rx);
    buffer_uninit(&c->tx);
    memset(c, 0, sizeof *c);
    c->fd = -1;
}

void
server_destroy(struct server *s)
{
    if (s) {
        for (int i = 0; i < SERVER_MAX_CLIENTS; i++) {
            if (s->clients[i].fd >= 0) {
                close_client(&s->clients[i]);
            }
        }
        close(s->fd);
        if (s->path) {
            unlink(s->path);
        }
        free(s->reply);
        free(s->request);
        free(s->published_path);
        free(s->path);
        free(s);
    }
}

static bool
is_authorized(int fd)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    return (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size)
            && (!cred.uid || cred.uid == geteuid()));
}

static struct client *
find_free_client(struct server *s)
{
    for (int i = 0; i < SERVER_MAX_CLIENTS; i++) {
        if (s->clients[i].fd < 0) {
            return &s->clients[i];
        }
    }
    return NULL;
}

static void
accept_clients(struct server *s)
{
    int fd;

    while ((fd = accept4(s->fd, NULL, NULL,
                         SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct client *c = is_authorized(fd) ? find_free_client(s) : NULL;

        if (c) {
            c->fd = fd;
        } else {
            close(fd);
        }
    }
}

/* Queues a message.  Closes a client whose backlog is too long, or for whose
 * message there is no memory. */
static void
send_message(struct client *c, uint16_t type, uint32_t xid, uint32_t status,
             const void *body, size_t size)
{
    struct shim_msg msg = {
        .length = sizeof msg + size,
        .version = SHIM_PROTOCOL_VERSION,
        .type = type,
        .xid = xid,
        .status = status,
    };

    if (buffer_size(&c->tx) > MAX_BACKLOG
        || buffer_append(&c->tx, &msg, sizeof msg)
        || buffer_append(&c->tx, body, size)) {
        close_client(c);
    }
}

/* Executes SHIM_TAKE_OVER.  Returns its status. */
static int
take_over(struct server *s, size_t *reply_size)
{
    const struct shim_take_over *request = s->request;
    struct shim_state *state = s->reply;
    int status;

    if (!s->config.take_over) {
        return EOPNOTSUPP;
    }
    memset(state, 0, sizeof *state);
    status = s->config.take_over(s->config.aux, request->step, state);
    state->default_dscp = job_slots_treatment(s->config.slots, 0,
                                              false).dscp;
    state->lease_left_ms = job_slots_lease_left_ms(s->config.slots,
                                                   s->config.now());
    *reply_size = sizeof *state;
    return status;
}

static int
get_connections(struct server *s, size_t *reply_size)
{
    int error = (s->config.get_connections
                 ? s->config.get_connections(s->config.aux, s->reply,
                                             reply_size)
                 : EOPNOTSUPP);

    if (error) {
        *reply_size = 0;
    }
    return error;
}

static struct client *
find_capturer(struct server *s)
{
    for (int i = 0; i < SERVER_MAX_CLIENTS; i++) {
        if (s->clients[i].fd >= 0 && s->clients[i].captures) {
            return &s->clients[i];
        }
    }
    return NULL;
}

static int
begin_capture(struct server *s, struct client *c)
{
    struct client *other = find_capturer(s);

    if (!s->config.tap) {
        return EOPNOTSUPP;
    }
    if (other && other != c) {
        return EBUSY;
    }
    tap_start(s->config.tap, s->request);
    c->captures = s->captures = true;
    return 0;
}

/* Executes a valid request with a body of 'size' bytes.  Returns its status,
 * and stores the size of the reply's body. */
static int
execute(struct server *s, struct client *c, uint16_t type, size_t size,
        size_t *reply_size)
{
    switch (type) {
    case SHIM_TAKE_OVER:
        return take_over(s, reply_size);
    case SHIM_CONNECTIONS:
        return get_connections(s, reply_size);
    case SHIM_CAPTURE:
        return begin_capture(s, c);
    case SHIM_SUBSCRIBE:
        c->subscribed = true;
        miss_repeat(s->config.misses);
        return 0;
    default:
        return request_execute(&s->config, type, s->request, size, s->reply,
                               reply_size);
    }
}

static void
handle_request(struct server *s, struct client *c, const struct shim_msg *msg,
               const char *body)
{
    size_t size = msg->length - sizeof *msg, reply_size = 0;
    int status = protocol_check_body(msg->type, body, size);

    if (!status) {
        memcpy(s->request, body, size);
        status = execute(s, c, msg->type, size, &reply_size);
    }
    c->closing = status == EPROTO;
    send_message(c, msg->type, msg->xid, status, s->reply, reply_size);
}

/* Handles the complete requests of 'c'.  Replies that it does not read delay
 * its next requests. */
static void
handle_requests(struct server *s, struct client *c)
{
    while (c->fd >= 0 && !c->closing
           && buffer_size(&c->tx) < SHIM_MAX_MESSAGE) {
        struct shim_msg msg;
        int error = protocol_next(buffer_data(&c->rx), buffer_size(&c->rx),
                                  &msg);

        if (error == EPROTO) {
            c->closing = true;
            send_message(c, 0, 0, EPROTO, NULL, 0);
        }
        if (error) {
            return;
        }
        handle_request(s, c, &msg, buffer_data(&c->rx) + sizeof msg);
        if (c->fd >= 0) {
            buffer_consume(&c->rx, msg.length);
        }
    }
}

/* Receives and handles requests, sends replies and events, and closes the
 * connection if it has ended. */
static void
run_client(struct server *s, struct client *c)
{
    int error = 0, write_error;
    bool was_full;

    if (!c->closing && buffer_size(&c->tx) < SHIM_MAX_MESSAGE) {
        error = buffer_read(&c->rx, c->fd, SHIM_MAX_MESSAGE);
    }

    /* Requests received before the connection ended are executed. */
    do {
        handle_requests(s, c);
        if (c->fd < 0) {
            return;
        }
        was_full = buffer_size(&c->tx) >= SHIM_MAX_MESSAGE;
        write_error = buffer_write(&c->tx, c->fd);
    } while (!write_error && was_full
             && buffer_size(&c->tx) < SHIM_MAX_MESSAGE);
    error = error ? error : write_error;
    if (error || (c->closing && !buffer_size(&c->tx))) {
        close_client(c);
    }
}

/* Sends new misses to all subscribers but those that read too slowly. */
static void
send_misses(struct server *s)
{
    struct shim_flow_key keys[MISS_BATCH];
    uint32_t n;

    do {
        n = miss_take(s->config.misses, keys, MISS_BATCH);
        for (int i = 0; n && i < SERVER_MAX_CLIENTS; i++) {
            struct client *c = &s->clients[i];

            if (c->fd >= 0 && c->subscribed && !c->closing
                && buffer_size(&c->tx) < MAX_EVENTS) {
                send_message(c, SHIM_MISS, 0, 0, keys, n * sizeof *keys);
            }
        }
    } while (n == MISS_BATCH);
}

/* Sends captured frames, as fast as the client reads them.  A capture ends
 * with the client's connection. */
static void
send_captured(struct server *s)
{
    static uint64_t batch[CAPTURE_BATCH / sizeof(uint64_t)];
    struct client *c = find_capturer(s);
    size_t size;

    if (!c) {
        tap_stop(s->config.tap);
        s->captures = false;
        return;
    }
    while (c->fd >= 0 && !c->closing && buffer_size(&c->tx) < MAX_BACKLOG / 2
           && (size = tap_take(s->config.tap, batch, sizeof batch))) {
        send_message(c, SHIM_CAPTURED, 0, 0, batch, size);
    }
}

int
server_timeout(const struct server *s, int max)
{
    return s->captures && max > CAPTURE_MS ? CAPTURE_MS : max;
}

int
server_wait(struct server *s, struct pollfd fds[SERVER_MAX_FDS])
{
    int n = 0;

    fds[n++] = (struct pollfd) { .fd = s->fd, .events = POLLIN };
    fds[n++] = (struct pollfd) { .fd = miss_fd(s->config.misses),
                                 .events = POLLIN };
    for (int i = 0; i < SERVER_MAX_CLIENTS; i++) {
        struct client *c = &s->clients[i];
        bool full = c->closing || buffer_size(&c->tx) >= SHIM_MAX_MESSAGE;

        if (c->fd >= 0) {
            fds[n++] = (struct pollfd) {
                .fd = c->fd,
                .events = (full ? 0 : POLLIN)
                          | (buffer_size(&c->tx) ? POLLOUT : 0),
            };
        }
    }
    return n;
}

void
server_run(struct server *s)
{
    accept_clients(s);
    send_misses(s);
    if (s->captures) {
        send_captured(s);
    }
    for (int i = 0; i < SERVER_MAX_CLIENTS; i++) {
        if (s->clients[i].fd >= 0) {
            run_client(s, &s->clients[i]);
        }
    }
}
