/* SPDX-License-Identifier: Apache-2.0 */

/* What the peers of a server ask for and are told. */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/capture/tap.h"
#include "wire/buffer.h"
#include "shim/control/request.h"
#include "shim/control/server-private.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/miss.h"

#define MAX_BACKLOG (4u << 20)  /* Bytes of replies that wait for a peer. */
#define MAX_EVENTS (64u << 10)  /* The same, above which events are lost. */
#define MISS_BATCH 64
#define CAPTURE_BATCH (256u << 10)      /* Bytes that are sent at a time. */

void
server_peer_close(struct peer *p)
{
    close(p->fd);
    buffer_uninit(&p->rx);
    buffer_uninit(&p->tx);
    memset(p, 0, sizeof *p);
    p->fd = -1;
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
        server_peer_close(p);
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

static void
tell_connections(struct server *s, struct peer *p, const struct shim_msg *msg)
{
    void *body = s->config.get_connections ? malloc(SHIM_MAX_MESSAGE) : NULL;
    size_t size = 0;
    int status = (body ? s->config.get_connections(s->config.aux, body, &size)
                  : s->config.get_connections ? ENOMEM : EOPNOTSUPP);

    put(p, msg->type, msg->xid, status, body, status ? 0 : size);
    free(body);
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
        miss_repeat(s->config.misses);
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
    if (!status && msg->type == SHIM_CONNECTIONS) {
        tell_connections(s, p, msg);
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

/* Reads what 'p' sends, answers it, and sends what waits for it; closes it if
 * that is over. */
void
server_peer_run(struct server *s, struct peer *p)
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
        server_peer_close(p);
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

/* Sends what peers have not asked for one by one. */
void
server_send_events(struct server *s)
{
    send_misses(s);
    if (s->captures) {
        send_captured(s);
    }
}
