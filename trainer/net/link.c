/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/shim-protocol.h"

#define READ_AHEAD 65536        /* Bytes that a read for a head may take. */
#define WAKE 524288             /* Bytes of a long payload per wake-up. */
#define NEXT_HEAD 52            /* Bytes: the head of a gradient. */
#define SMALL 256               /* Bytes; shorter payloads are copied. */
/* Space for a burst while the receiver computes, in bytes: the kernel's
 * automatic size grows too late for megabytes.  The system may allow less. */
#define RECEIVE_BUFFER ((int) 1 << 22)

#define CONTROL_PRIORITY 6      /* The highest that needs no privilege. */

void
link_init(struct link *link, int fd)
{
    memset(link, 0, sizeof *link);
    link->fd = fd;
    if (fd >= 0) {
        link->buffer = allocate(1, LINK_BUFFER);
        link->arena = allocate(1, LINK_ARENA);
    }
}

void
link_close(struct link *link)
{
    if (link->fd >= 0) {
        close(link->fd);
        link->fd = -1;
        free(link->buffer);
        free(link->arena);
        link->buffer = link->arena = NULL;
    }
}

int
link_tune(int fd, const char *congestion)
{
    int on = 1, size = RECEIVE_BUFFER, flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK)
        || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on)
        || setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on)) {
        return errno;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
                                 strlen(congestion))) {
        return errno;
    }
    return 0;
}

int
link_accept(struct link *link, int listener, const char *congestion)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int error = fd < 0 ? errno : link_tune(fd, congestion);

    if (!error) {
        link_init(link, fd);
    } else if (fd >= 0) {
        close(fd);
    }
    return fd < 0 ? EAGAIN : error;
}

void
link_mark_control(int fd)
{
    int tos = SHIM_CONTROL_DSCP << 2, priority = CONTROL_PRIORITY;

    /* One of the first two fails, depending on the family; unmarked traffic is
     * sent in the default class. */
    if (setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos)) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
    }
    setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
}

/* Receives up to 'n' bytes at 'to' and, behind them, up to 'ahead' into the
 * buffer, which is empty then.  Returns the number of all, or 0 and sets
 * '*state' to LINK_AGAIN or LINK_END. */
static size_t
receive_bytes(struct link *link, void *to, size_t n, size_t ahead,
              enum link_state *state, char **errorp)
{
    struct iovec iov[] = { { to, n }, { link->buffer, ahead } };
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 1 + (ahead > 0) };
    ssize_t got;

    *state = LINK_AGAIN;
    if (link->drained) {
        link->drained = false;
        return 0;
    }
    do {
        got = recvmsg(link->fd, &msg, 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        link->n_received += got;
        link->drained = (size_t) got < n + ahead;
        return got;
    }
    if (!got || errno != EAGAIN) {
        *state = LINK_END;
        if (got) {
            *errorp = message("%s", strerror(errno));
        } else if (link->in_payload || link->end > link->begin) {
            *errorp = message("closed in the middle of a frame");
        }
    }
    return 0;
}

/* Receives until the buffer has 'wanted' bytes. */
static enum link_state
fill_buffer(struct link *link, size_t wanted, char **errorp)
{
    enum link_state state;

    while (link->end - link->begin < wanted) {
        size_t have = link->end - link->begin, n;

        if (link->begin && link->begin + wanted + READ_AHEAD > LINK_BUFFER) {
            memmove(link->buffer, link->buffer + link->begin, have);
            link->begin = 0;
            link->end = have;
        }

        /* Not far beyond the next head: little must be moved later. */
        n = wanted - have + NEXT_HEAD;
        n = n > READ_AHEAD ? n : READ_AHEAD;
        n = n < LINK_BUFFER - link->end ? n : LINK_BUFFER - link->end;
        n = receive_bytes(link, link->buffer + link->end, n, 0, &state,
                          errorp);
        if (!n) {
            return state;
        }
        link->end += n;
    }
    return LINK_FRAME;
}

void
link_set_low_water(int fd, size_t left, int *low_water)
{
    int low = left >= 2 * WAKE ? WAKE : 1;

    if (low != *low_water
        && !setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low)) {
        *low_water = low;
    }
}

/* Fills the caller's memory with the payload: first from the buffer, then from
 * the kernel, together with the next frame's head but not more, so that a long
 * payload after it need not be moved. */
static enum link_state
fill_body(struct link *link, char **errorp)
{
    size_t wanted = link->frame.payload_length;
    size_t n = link->end - link->begin;
    enum link_state state;

    n = n < wanted - link->have ? n : wanted - link->have;
    if (n) {
        memcpy(link->payload + link->have, link->buffer + link->begin, n);
        link->begin += n;
        link->have += n;
    }
    while (link->have < wanted) {
        size_t left = wanted - link->have;

        n = receive_bytes(link, link->payload + link->have, left, NEXT_HEAD,
                          &state, errorp);
        if (!n) {
            link_set_low_water(link->fd, left, &link->low_water);
            return state;
        }
        link->have += n < left ? n : left;
        link->begin = 0;
        link->end = n < left ? 0 : n - left;
    }
    link_set_low_water(link->fd, 0, &link->low_water);
    return LINK_FRAME;
}

static enum link_state
receive_head(struct link *link, char **errorp)
{
    enum link_state state;
    size_t length;

    if (link->begin == link->end) {
        link->begin = link->end = 0;
    }
    state = fill_buffer(link, FRAME_ENVELOPE_LENGTH, errorp);
    if (state != LINK_FRAME) {
        return state;
    }
    *errorp = frame_check_envelope(link->buffer + link->begin, &length);
    if (*errorp) {
        return LINK_END;
    }
    state = fill_buffer(link, length, errorp);
    if (state != LINK_FRAME) {
        return state;
    }
    *errorp = frame_decode(link->buffer + link->begin, &link->frame);
    if (*errorp) {
        return LINK_END;
    }
    link->begin += length;
    link->in_payload = true;
    link->keep = false;
    link->have = 0;
    link->payload = NULL;
    return LINK_HEAD;
}

enum link_state
link_receive(struct link *link, char **errorp)
{
    enum link_state state;

    *errorp = NULL;
    if (!link->in_payload) {
        return receive_head(link, errorp);
    }
    if (link->keep) {
        state = fill_buffer(link, link->frame.payload_length, errorp);
        link->payload = link->buffer + link->begin;
    } else {
        assert(link->payload || !link->frame.payload_length);
        state = fill_body(link, errorp);
    }
    if (state == LINK_FRAME) {
        link->in_payload = false;
        link->begin += link->keep ? link->frame.payload_length : 0;
    }
    return state;
}

void
link_set_payload(struct link *link, void *body)
{
    link->payload = body;
}

void
link_keep_payload(struct link *link)
{
    assert(link->frame.payload_length <= FRAME_MAX_UPDATE);
    link->keep = true;
}

bool
link_has_space(const struct link *link, size_t copied)
{
    return link->n_pieces + 3 <= LINK_MAX_PIECES
           && link->arena_used + FRAME_MAX_HEAD + SMALL + copied <= LINK_ARENA;
}

static void
add_piece(struct link *link, const void *data, size_t n)
{
    struct iovec *last = link->n_pieces > link->piece
                         ? &link->pieces[link->n_pieces - 1] : NULL;

    if (!n) {
        return;
    }
    if (last && (uint8_t *) last->iov_base + last->iov_len == data) {
        last->iov_len += n;
    } else {
        assert(link->n_pieces < LINK_MAX_PIECES);
        link->pieces[link->n_pieces].iov_base = (void *) data;
        link->pieces[link->n_pieces++].iov_len = n;
    }
}

static void *
add_space(struct link *link, size_t n)
{
    void *space = link->arena + link->arena_used;

    assert(link->arena_used + n <= LINK_ARENA);
    link->arena_used += n;
    add_piece(link, space, n);
    return space;
}

static void
add_data(struct link *link, const void *data, size_t n, bool copy)
{
    if (n && (copy || n <= SMALL)) {
        memcpy(add_space(link, n), data, n);
    } else {
        add_piece(link, data, n);
    }
}

static void
add_head(struct link *link, struct frame *frame)
{
    frame_encode(frame, add_space(link, frame_head_length(frame->type)));
}

void
link_send(struct link *link, struct frame *frame, const void *body)
{
    add_head(link, frame);
    add_data(link, body, frame->payload_length, false);
}

void
link_send_copy(struct link *link, struct frame *frame, const void *body)
{
    add_head(link, frame);
    add_data(link, body, frame->payload_length, true);
}

void *
link_send_space(struct link *link, struct frame *frame)
{
    add_head(link, frame);
    return add_space(link, frame->payload_length);
}

int
link_flush(struct link *link)
{
    while (!link_idle(link)) {
        struct msghdr msg = { .msg_iov = link->pieces + link->piece,
                              .msg_iovlen = link->n_pieces - link->piece };
        ssize_t n = sendmsg(link->fd, &msg, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR) {
            return errno == EAGAIN ? 0 : errno;
        }
        link->n_sent += n > 0 ? n : 0;
        while (n > 0) {
            struct iovec *piece = &link->pieces[link->piece];
            size_t done = (size_t) n < piece->iov_len ? (size_t) n
                                                      : piece->iov_len;

            piece->iov_base = (uint8_t *) piece->iov_base + done;
            piece->iov_len -= done;
            link->piece += !piece->iov_len;
            n -= done;
        }
    }
    link->piece = link->n_pieces = 0;
    link->arena_used = 0;
    return 0;
}

bool
link_idle(const struct link *link)
{
    return link->piece == link->n_pieces;
}

int
link_wait(const struct link *link, bool receives, short *events)
{
    *events = (receives ? POLLIN : 0) | (link_idle(link) ? 0 : POLLOUT);
    return link->fd;
}
