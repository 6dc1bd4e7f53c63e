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

#include "shim/capture/tap.h"
#include "shim/control/buffer.h"
#include "shim/control/request.h"
#include "shim/pipeline/job-slot.h"
#include "shim/pipeline/miss.h"

#define MAX_BACKLOG (4u << 20)  /* Bytes of replies that wait for a peer. */
#define MAX_EVENTS (64u << 10)  /* The same, above which events are lost. */
#define MISS_BATCH 64
#define CAPTURE_MS 10           /* Between two looks at what was captured... */
#define CAPTURE_BATCH (256u << 10)      /* ...and bytes that are sent then. */

struct peer {
    int fd;                     /* -1: this element is free. */
    bool subscribed;            /* To misses. */
    bool captures;
    bool closing;               /* When its replies are sent. */
    struct buffer rx, tx;
};

struct server {
    struct server_config config;
    char *path;                 /* To be removed at the end, or NULL. */
    char *published_path;       /* To become the path, or NULL. */
    int fd;                     /* Listens. */
    bool captures;              /* For one of: */
    struct peer peers[SERVER_MAX_PEERS];
};

static char *
message(const char *path, const char *what)
{
    char *s;

    return asprintf(&s, "%s: %s", path, what) < 0 ? NULL : s;
}

/* Does somebody listen at 'address'? */
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
        return message(path, "not a path of 1 to 107 bytes");
    }
    strcpy(address.sun_path, path);
    if (!lstat(path, &st)) {
        if (!S_ISSOCK(st.st_mode)) {
            return message(path, "exists and is not a socket");
        }
        if (is_alive(&address)) {
            return message(path, "another shim listens there");
        }
        unlink(path);
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    error = fd < 0 ? errno : bind_private(fd, &address);
    if (!error && listen(fd, SERVER_MAX_PEERS)) {
        error = errno;
    }
    if (error) {
        if (fd >= 0) {
            close(fd);
        }
        return message(path, strerror(error));
    }
    *fdp = fd;
    return NULL;
}

char *
server_create(const char *path, const struct server_config *config,
              struct server **serverp)
{
    struct server *s = calloc(1, sizeof *s);
    char *error;

    *serverp = NULL;
    if (!s) {
        return message(path, "no memory");
    }
    s->config = *config;
    for (int i = 0; i < SERVER_MAX_PEERS; i++) {
        s->peers[i].fd = -1;
    }
    if (asprintf(&s->path, "%s%s", path,
                 config->succeeds ? ".new" : "") < 0) {
        s->path = NULL;
    }
    s->published_path = config->succeeds ? strdup(path) : NULL;
    error = (s->path && (s->published_path || !config->succeeds)
             ? listen_at(s->path, &s->fd) : message(path, "no memory"));
    if (error) {
        free(s->published_path);
        free(s->path);
        free(s);
        return error;
    }
    *serverp = s;
    return NULL;
}

/* Returns NULL or a malloc()'d message. */
char *
server_publish(struct server *s)
{
    if (!s->published_path) {
        return NULL;
    }
    if (rename(s->path, s->published_path)) {
        return message(s->published_path, strerror(errno));
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
peer_close(struct peer *p)
{
    close(p->fd);
    buffer_uninit(&p->rx);
    buffer_uninit(&p->tx);
    memset(p, 0, sizeof *p);
    p->fd = -1;
}

void
server_destroy(struct server *s)
{
    if (s) {
        for (int i = 0; i < SERVER_MAX_PEERS; i++) {
            if (s->peers[i].fd >= 0) {
                peer_close(&s->peers[i]);
            }
        }
        close(s->fd);
        if (s->path) {
            unlink(s->path);
        }
        free(s->published_path);
        free(s->path);
        free(s);
    }
}

/* Queues a message.  A peer that has too much waiting already, or no memory
 * left for it, is closed. */
static void
put(struct peer *p, uint16_t type, uint32_t xid, uint32_t status,
    const void *body, size_t size)
{
    struct shim_msg msg = {
        .length = sizeof msg + size,
        .version = SHIM_PROTOCOL_VERSION,
        .type = type,
        .xid = xid,
        .status = status,
    };

    if (buffer_size(&p->tx) > MAX_BACKLOG
        || buffer_append(&p->tx, &msg, sizeof msg)
        || buffer_append(&p->tx, body, size)) {
        peer_close(p);
    }
}

/* Answers a request that asks for something. */
static void
reply_with_body(struct server *s, struct peer *p, const struct shim_msg *msg,
                const char *request)
{
    void *body = malloc(SHIM_MAX_MESSAGE);

    if (!body) {
        put(p, msg->type, msg->xid, ENOMEM, NULL, 0);
        return;
    }
    put(p, msg->type, msg->xid, 0, body,
        request_ask(&s->config, msg->type, request, body));
    free(body);
}

static void
take_over(struct server *s, struct peer *p, const struct shim_msg *msg,
          const char *body)
{
    struct shim_take_over request;
    struct shim_state state;
    int status;

    if (!s->config.take_over) {
        put(p, msg->type, msg->xid, EOPNOTSUPP, NULL, 0);
        return;
    }
    memcpy(&request, body, sizeof request);
    memset(&state, 0, sizeof state);
    status = s->config.take_over(s->config.aux, request.step, &state);
    state.default_dscp = job_slots_treatment(s->config.slots, 0,
                                             false).dscp;
    state.lease_left_ms = job_slots_lease_left_ms(s->config.slots,
                                                  s->config.now());
    put(p, msg->type, msg->xid, status, &state, sizeof state);
}

static struct peer *
find_capturer(struct server *s)
{
    for (int i = 0; i < SERVER_MAX_PEERS; i++) {
        if (s->peers[i].fd >= 0 && s->peers[i].captures) {
            return &s->peers[i];
        }
    }
    return NULL;
}

static int
begin_capture(struct server *s, struct peer *p, const char *body)
{
    struct peer *other = find_capturer(s);
    struct shim_capture capture;

    if (!s->config.tap) {
        return EOPNOTSUPP;
    }
    if (other && other != p) {
        return EBUSY;
    }
    memcpy(&capture, body, sizeof capture);
    tap_start(s->config.tap, &capture);
    p->captures = s->captures = true;
    return 0;
}

/* Does a request that changes something, whose body is known to be good.
 * Returns its status. */
static int
change(struct server *s, struct peer *p, uint16_t type, const char *body,
       size_t size)
{
    switch (type) {
    case SHIM_CAPTURE:
        return begin_capture(s, p, body);
    case SHIM_SUBSCRIBE:
        p->subscribed = true;
        return 0;
    default:
        return request_change(&s->config, type, body, size);
    }
}

static void
handle(struct server *s, struct peer *p, const struct shim_msg *msg,
       const char *body)
{
    size_t size = msg->length - sizeof *msg;
    int status = protocol_check_body(msg->type, body, size);

    if (!status && request_asks(msg->type)) {
        reply_with_body(s, p, msg, body);
        return;
    }
    if (!status && msg->type == SHIM_TAKE_OVER) {
        take_over(s, p, msg, body);
        return;
    }
    if (!status) {
        status = change(s, p, msg->type, body, size);
    }
    p->closing = status == EPROTO;
    put(p, msg->type, msg->xid, status, NULL, 0);
}

/* Handles the whole messages that 'p' has sent.  Replies that it does not read
 * hold the next requests up. */
static void
peer_handle(struct server *s, struct peer *p)
{
    while (p->fd >= 0 && !p->closing
           && buffer_size(&p->tx) < SHIM_MAX_MESSAGE) {
        struct shim_msg msg;
        int error = protocol_next(buffer_data(&p->rx), buffer_size(&p->rx),
                                  &msg);

        if (error == EPROTO) {
            p->closing = true;
            put(p, 0, 0, EPROTO, NULL, 0);
        }
        if (error) {
            return;
        }
        handle(s, p, &msg, buffer_data(&p->rx) + sizeof msg);
        if (p->fd >= 0) {
            buffer_consume(&p->rx, msg.length);
        }
    }
}

static void
peer_run(struct server *s, struct peer *p)
{
    int error = 0, write_error;
    bool was_full;

    if (!p->closing && buffer_size(&p->tx) < SHIM_MAX_MESSAGE) {
        error = buffer_read(&p->rx, p->fd, SHIM_MAX_MESSAGE);
    }

    /* What came before the end of the connection still counts. */
    do {
        peer_handle(s, p);
        if (p->fd < 0) {
            return;
        }
        was_full = buffer_size(&p->tx) >= SHIM_MAX_MESSAGE;
        write_error = buffer_write(&p->tx, p->fd);
    } while (!write_error && was_full
             && buffer_size(&p->tx) < SHIM_MAX_MESSAGE);
    error = error ? error : write_error;
    if (error || (p->closing && !buffer_size(&p->tx))) {
        peer_close(p);
    }
}

static bool
may_talk(int fd)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    return (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size)
            && (!cred.uid || cred.uid == geteuid()));
}

static struct peer *
free_peer(struct server *s)
{
    for (int i = 0; i < SERVER_MAX_PEERS; i++) {
        if (s->peers[i].fd < 0) {
            return &s->peers[i];
        }
    }
    return NULL;
}

static void
accept_peers(struct server *s)
{
    int fd;

    while ((fd = accept4(s->fd, NULL, NULL,
                         SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct peer *p = may_talk(fd) ? free_peer(s) : NULL;

        if (p) {
            p->fd = fd;
        } else {
            close(fd);
        }
    }
}

/* Tells all subscribers of new misses, except those that read too slowly. */
static void
send_misses(struct server *s)
{
    struct shim_flow_key keys[MISS_BATCH];
    uint32_t n;

    do {
        n = miss_take(s->config.misses, keys, MISS_BATCH);
        for (int i = 0; n && i < SERVER_MAX_PEERS; i++) {
            struct peer *p = &s->peers[i];

            if (p->fd >= 0 && p->subscribed && !p->closing
                && buffer_size(&p->tx) < MAX_EVENTS) {
                put(p, SHIM_MISS, 0, 0, keys, n * sizeof *keys);
            }
        }
    } while (n == MISS_BATCH);
}

/* Sends what was captured, as much as is read.  A capture ends with its
 * peer. */
static void
send_captured(struct server *s)
{
    static uint64_t batch[CAPTURE_BATCH / sizeof(uint64_t)];
    struct peer *p = find_capturer(s);
    size_t size;

    if (!p) {
        tap_stop(s->config.tap);
        s->captures = false;
        return;
    }
    while (p->fd >= 0 && !p->closing && buffer_size(&p->tx) < MAX_BACKLOG / 2
           && (size = tap_take(s->config.tap, batch, sizeof batch))) {
        put(p, SHIM_CAPTURED, 0, 0, batch, size);
    }
}

int
server_timeout(const struct server *s, int max)
{
    return s->captures && max > CAPTURE_MS ? CAPTURE_MS : max;
}

/* Fills in what to wait for, at most 'max' elements, which should be
 * SERVER_MAX_FDS.  Returns how many. */
int
server_wait(struct server *s, struct pollfd *fds, int max)
{
    int n = 0;

    fds[n++] = (struct pollfd) { .fd = s->fd, .events = POLLIN };
    fds[n++] = (struct pollfd) { .fd = miss_fd(s->config.misses),
                                 .events = POLLIN };
    for (int i = 0; i < SERVER_MAX_PEERS && n < max; i++) {
        struct peer *p = &s->peers[i];
        bool full = p->closing || buffer_size(&p->tx) >= SHIM_MAX_MESSAGE;

        if (p->fd >= 0) {
            fds[n++] = (struct pollfd) {
                .fd = p->fd,
                .events = (full ? 0 : POLLIN)
                          | (buffer_size(&p->tx) ? POLLOUT : 0),
            };
        }
    }
    return n;
}

/* Does all there is to do, without waiting. */
void
server_run(struct server *s)
{
    accept_peers(s);
    send_misses(s);
    if (s->captures) {
        send_captured(s);
    }
    for (int i = 0; i < SERVER_MAX_PEERS; i++) {
        if (s->peers[i].fd >= 0) {
            peer_run(s, &s->peers[i]);
        }
    }
}
