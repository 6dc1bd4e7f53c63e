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
 * are megabytes: a link takes what the kernel has and goes on later, and
 * receives a body straight into where the caller wants it.
 *
 *
 * Usage
 * =====
 *
 *    switch (link_receive(link, &error)) {
 *    case LINK_HEADER:
 *        ...look at link->frame, then link_set_body(link, buffer)...
 *    case LINK_FRAME:
 *        ...the body is in the buffer...
 *    case LINK_AGAIN:
 *        ...poll for link_events(link)...
 *    case LINK_END:
 *        ...closed, or 'error' says what was wrong...
 *    }
 *
 * One frame at a time is sent: link_send() only when link_idle().  Header and
 * body leave by one system call.  Small frames may be posted at any time: they
 * leave before a frame that has not begun to.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A link owns its socket.  Bodies belong to the caller and must stay as they
 * are until sent.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/ps/frame.h"

#define LINK_POSTS_LENGTH 8192

struct link {
    int fd;                     /* -1 if none. */
    uint64_t n_sent, n_received;        /* Bytes since link_init(). */

    /* Receiving. */
    struct frame frame;         /* Of the last LINK_HEADER. */
    uint8_t header[FRAME_HEADER_LENGTH];
    uint8_t *body;              /* Set by link_set_body(). */
    size_t have;                /* Bytes of header, then of the body. */
    bool in_body;

    /* Sending. */
    uint8_t out_header[FRAME_HEADER_LENGTH];
    const uint8_t *out_body;
    size_t out_length, out_sent;        /* Bytes, header included. */

    uint8_t posts[LINK_POSTS_LENGTH];   /* Small frames, one after another. */
    size_t posts_length, posts_sent;
};

enum link_state {
    LINK_AGAIN,                 /* No more for now. */
    LINK_HEADER,                /* A header: link_set_body() is next. */
    LINK_FRAME,                 /* A whole frame. */
    LINK_END,                   /* Closed or broken. */
};

void link_init(struct link *, int fd);
void link_close(struct link *);

/* Makes 'fd' what links need: nonblocking, no delay, keepalive, and the
 * congestion control 'congestion' if nonnull.  Returns 0 or an errno. */
int link_tune(int fd, const char *congestion);

/* '*errorp' is NULL for a connection that was closed between two frames. */
enum link_state link_receive(struct link *, char **errorp);
void link_set_body(struct link *, void *body);

void link_send(struct link *, struct frame *, const void *body);

/* Copies 'frame' and its body; false if too many wait already. */
bool link_post(struct link *, struct frame *, const void *body);
int link_flush(struct link *);          /* 0 even if not all is sent. */
bool link_idle(const struct link *);

/* The events to poll for. */
short link_events(const struct link *);

#endif /* trainer/ps/link.h */
