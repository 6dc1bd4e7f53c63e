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
#include "shim/cc/cc.h"
#include "shim/classify/bursts.h"
#include "shim/classify/flow-cache.h"
#include "shim/classify/job-slot.h"
#include "wire/buffer.h"

#define MAX_BACKLOG                                         \
    (4u << 20) /* Bytes that wait for a client before it is \
                * disconnected. */

struct client {
    int fd;                     /* -1: this element is free. */
    bool closing;               /* Disconnect when its replies are sent. */
    struct buffer rx, tx;
};

struct server {
    struct server_config config;
    char *path;                 /* Removed at the end; NULL: not ours. */
    char *published_path;       /* 'path' after server_publish(), or NULL. */
    int fd;                     /* Listening socket. */
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

/* Queues a message.  Closes a client with a backlog that is too long, or
 * without memory for its message. */
static void
send_message(struct client *c, uint16_t type, uint32_t xid, uint32_t status,
             const void *body, size_t size)
{
    struct shim_msg msg = {
        .length = sizeof msg + size, .version = SHIM_PROTOCOL_VERSION,
        .type = type, .xid = xid, .status = status
    };

    if (buffer_size(&c->tx) > MAX_BACKLOG
        || buffer_append(&c->tx, &msg, sizeof msg)
        || buffer_append(&c->tx, body, size)) {
        close_client(c);
    }
}

static size_t
get_hello(const struct server_config *c, struct shim_hello *hello)
{
    *hello = (struct shim_hello){ .boot_id = c->boot_id,
                                  .rate_bps = c->get_rate(c->aux),
                                  .mtu = c->mtu,
                                  .pid = getpid(),
                                  .n_slots = job_slots_count(c->slots),
                                  .lease_left_ms = job_slots_lease_left_ms(
                                      c->slots, c->now()) };
    return sizeof *hello;
}

static size_t
list_slots(const struct server_config *c, struct shim_slot *slots)
{
    size_t n = 0;

    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        n += job_slots_get(c->slots, i, &slots[n]);
    }
    return n * sizeof *slots;
}

static size_t
get_stats(const struct server_config *c, struct shim_stats *stats)
{
    struct shim_slot_stats *slots = (struct shim_slot_stats *) (stats + 1);
    uint64_t now = c->now();

    memset(stats, 0, sizeof *stats);
    c->get_stats(c->aux, stats);
    stats->boot_id = c->boot_id;
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        struct shim_slot_stats *slot = &slots[stats->n_slot_stats];

        if (job_slots_stats(c->slots, i, now, slot)) {
            stats->n_slot_stats++;
            bursts_get(c->bursts, i, BURSTS_TX, now, &slot->tx_bursts);
            bursts_get(c->bursts, i, BURSTS_RX, now, &slot->rx_bursts);
        }
    }
    return sizeof *stats + stats->n_slot_stats * sizeof *slots;
}

static size_t
get_bins(const struct server_config *c, const struct shim_bins_since *since,
         struct shim_bins *head)
{
    struct shim_bin *bins = (struct shim_bin *) (head + 1);
    size_t n;

    memset(head, 0, sizeof *head);
    head->slot = since->slot;
    n = bursts_bins(c->bursts, since->slot, c->now(), since->since,
                    &head->first, bins);
    return sizeof *head + n * sizeof *bins;
}

static size_t
get_ports(const struct server_config *c, struct shim_ports *ports)
{
    memset(ports, 0, sizeof *ports);
    c->get_ports(c->aux, ports);
    return sizeof *ports;
}

/* Resets the bursts of 'slot' if it is free: they are the previous job's. */
static void
reset_bursts(const struct server_config *c, uint16_t slot)
{
    struct shim_slot old;

    if (!job_slots_get(c->slots, slot, &old)) {
        bursts_reset(c->bursts, slot);
    }
}

static int
set_slots(const struct server_config *c, const struct shim_slot *slots,
          size_t n)
{
    int error = 0;

    for (size_t i = 0; i < n && !error; i++) {
        reset_bursts(c, slots[i].slot);
        error = job_slots_set(c->slots, &slots[i]);
    }
    return error;
}

static int
clear_slots(const struct server_config *c, const uint16_t *slots, size_t n)
{
    int error = 0;

    for (size_t i = 0; i < n && !error; i++) {
        error = job_slots_clear(c->slots, slots[i]);
        if (!error) {
            flow_cache_forget(c->flows, slots[i]);
            if (c->cc) {
                cc_forget(c->cc, slots[i]);
            }
        }
    }
    return error;
}

static size_t
get_refused(const struct server_config *c, struct shim_refused *refused)
{
    size_t n = 0;

    for (uint16_t slot = 0; slot < SHIM_MAX_SLOTS; slot++) {
        refused[n] = (struct shim_refused){
            .slot = slot,
            .records = c->cc ? cc_refused(c->cc, slot) : 0,
            .count = flow_cache_refused(c->flows, slot)
        };
        n += refused[n].records || refused[n].count;
    }
    return n * sizeof *refused;
}

static int
take_over(const struct server_config *c, const struct shim_take_over *request,
          struct shim_state *state, size_t *reply_size)
{
    int status;

    memset(state, 0, sizeof *state);
    status = c->take_over(c->aux, request->step, state);
    state->default_dscp = job_slots_treatment(c->slots, 0, false).dscp;
    state->control_dscp = job_slots_control_dscp(c->slots);
    state->level_dscps = job_slots_level_dscps(c->slots);
    state->lease_left_ms = job_slots_lease_left_ms(c->slots, c->now());
    *reply_size = sizeof *state;
    return status;
}

static int
get_connections(const struct server_config *c, void *reply, size_t *reply_size)
{
    int error = c->get_connections(c->aux, reply, reply_size);

    if (error) {
        *reply_size = 0;
    }
    return error;
}

static int
get_peers(const struct server_config *c, struct shim_peer *peers,
          size_t *reply_size)
{
    size_t n = 0;

    if (c->cc && !cc_peers(c->cc, peers, &n)) {
        return EAGAIN;
    }
    *reply_size = n * sizeof *peers;
    return 0;
}

/* Executes a valid request with a body of 'size' bytes.  Returns its status,
 * EOPNOTSUPP if 'type' is not a request, and stores the size of the reply's
 * body. */
static int
execute(struct server *s, uint16_t type, size_t size, size_t *reply_size)
{
    const struct server_config *c = &s->config;
    const void *body = s->request;
    const struct shim_control *control = body;
    const struct shim_lease *lease = body;

    switch (type) {
    case SHIM_HELLO:
        *reply_size = get_hello(c, s->reply);
        return 0;
    case SHIM_SLOT_LIST:
        *reply_size = list_slots(c, s->reply);
        return 0;
    case SHIM_STATS:
        *reply_size = get_stats(c, s->reply);
        return 0;
    case SHIM_PORTS:
        *reply_size = get_ports(c, s->reply);
        return 0;
    case SHIM_ABOUT:
        c->get_about(c->aux, s->reply, SHIM_MAX_ABOUT);
        *reply_size = strlen(s->reply);
        return 0;
    case SHIM_BINS:
        *reply_size = get_bins(c, body, s->reply);
        return 0;
    case SHIM_REFUSED:
        *reply_size = get_refused(c, s->reply);
        return 0;
    case SHIM_LEASE:
        job_slots_lease(c->slots, c->now(), lease->ms, lease->default_dscp);
        return 0;
    case SHIM_SLOT_SET:
        return set_slots(c, body, size / sizeof(struct shim_slot));
    case SHIM_SLOT_CLEAR:
        return clear_slots(c, body, size / sizeof(uint16_t));
    case SHIM_MIN_SHARE:
        c->set_min_share(c->aux,
                         ((const struct shim_min_share *) body)->share);
        return 0;
    case SHIM_CONGESTION:
        if (c->cc) {
            cc_set_law(c->cc, body);
        }
        return 0;
    case SHIM_KEYS:
        if (c->cc) {
            cc_set_keys(c->cc, body, size / sizeof(struct shim_key));
        }
        return 0;
    case SHIM_PEERS:
        return get_peers(c, s->reply, reply_size);
    case SHIM_CONTROL:
        job_slots_set_control(c->slots, control->dscp, control->levels);
        return 0;
    case SHIM_TAKE_OVER:
        return take_over(c, body, s->reply, reply_size);
    case SHIM_CONNECTIONS:
        return get_connections(c, s->reply, reply_size);
    default:
        return EOPNOTSUPP;
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
        status = execute(s, msg->type, size, &reply_size);
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

/* Receives and handles requests, sends replies, and closes the connection if
 * it has ended. */
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

int
server_wait(struct server *s, struct pollfd fds[SERVER_MAX_FDS])
{
    int n = 0;

    fds[n++] = (struct pollfd){ .fd = s->fd, .events = POLLIN };
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
    for (int i = 0; i < SERVER_MAX_CLIENTS; i++) {
        if (s->clients[i].fd >= 0) {
            run_client(s, &s->clients[i]);
        }
    }
}
