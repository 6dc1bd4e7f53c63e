/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINK_H
#define LINK_H 1

/* One connection that carries frames, without ever blocking.
 *
 *
 * Motivation
 * ==========
 *
 * Workers and servers both wait for several connections at once, and bodies
 * are megabytes or a few bytes: a link takes what the kernel has and goes on
 * later.  It receives a long body straight into where the caller wants it,
 * and many short frames by one system call into a buffer of its own.  Frames
 * to send are gathered, and leave by one system call too.
 *
 *
 * Usage
 * =====
 *
 *    switch (link_receive(link, &error)) {
 *    case LINK_HEAD:
 *        ...look at link->frame, then link_set_payload(link, buffer), or
 *        link_keep_payload(link)...
 *    case LINK_FRAME:
 *        ...the body is at link->payload, if kept until the next call...
 *    case LINK_AGAIN:
 *        ...poll for link_events(link)...
 *    case LINK_END:
 *        ...closed, or 'error' says what was wrong...
 *    }
 *
 *    if (link_has_room(link, 0)) {
 *        link_send(link, &frame, body);
 *    }
 *    link_flush(link);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A link owns its socket.  Bodies that are sent belong to the caller and must
 * stay as they are until link_idle(), but for those that link_send_copy()
 * takes.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "trainer/net/frame.h"

#define LINK_BUFFER (FRAME_MAX_UPDATE * 2)
#define LINK_ARENA (FRAME_MAX_UPDATE * 4)
#define LINK_MAX_PIECES 256

struct link {
    int fd;                     /* -1 if none. */
    int low_water;              /* Of the socket, 0 if it was never set. */
    uint64_t n_sent, n_received;        /* Bytes since link_init(). */

    /* Receiving. */
    struct frame frame;         /* Of the last LINK_HEAD. */
    uint8_t *payload;            /* Of the caller, or in the buffer. */
    size_t have;                /* Bytes of the body, if not kept. */
    bool in_payload, keep;
    bool drained;               /* The kernel had less than was asked for. */
    uint8_t *buffer;            /* LINK_BUFFER bytes. */
    size_t begin, end;          /* What is in the buffer. */

    /* Sending. */
    uint8_t *arena;             /* Headers and copies: LINK_ARENA bytes. */
    size_t arena_used;
    struct iovec pieces[LINK_MAX_PIECES];       /* Not yet sent. */
    int piece, n_pieces;
};

enum link_state {
    LINK_AGAIN,                 /* No more for now. */
    LINK_HEAD,                /* A header: link_set_payload() is next. */
    LINK_FRAME,                 /* A whole frame. */
    LINK_END,                   /* Closed or broken. */
};

void link_init(struct link *, int fd);
void link_close(struct link *);

/* Makes 'fd' what links need: nonblocking, no delay, keepalive, and the
 * congestion control 'congestion' if nonnull.  Returns 0 or an errno. */
int link_tune(int fd, const char *congestion);

/* Gives what 'fd' sends the class of control traffic, as far as the system
 * lets us. */
void link_mark_control(int fd);

/* '*errorp' is NULL for a connection that was closed between two frames. */
enum link_state link_receive(struct link *, char **errorp);

/* Where the body goes.  A body that is kept has at most FRAME_MAX_UPDATE
 * bytes. */
void link_set_payload(struct link *, void *body);
void link_keep_payload(struct link *);

/* Whether a frame whose copies take 'copied' bytes can be queued now; always
 * true for up to FRAME_MAX_UPDATE bytes if link_idle(). */
bool link_has_room(const struct link *, size_t copied);

/* Queue a frame.  link_send_keys() takes a body in two parts: 'keys' of
 * 'length' bytes, and the rest.  If 'keys' is null, it returns where they,
 * in the link, must be written before the next call. */
void link_send(struct link *, struct frame *, const void *body);
void link_send_copy(struct link *, struct frame *, const void *body);
void *link_send_keys(struct link *, struct frame *, const void *keys,
                     size_t length, const void *values);

/* Queues a frame and returns where its body, which is in the link, must be
 * written before the next call. */
void *link_send_space(struct link *, struct frame *);

int link_flush(struct link *);          /* 0 even if not all is sent. */
bool link_idle(const struct link *);

/* The events to poll for. */
short link_events(const struct link *);

#endif /* trainer/net/link.h */
