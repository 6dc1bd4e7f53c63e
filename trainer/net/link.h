/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINK_H
#define LINK_H 1

/* One connection that carries frames and never blocks.
 *
 * A link receives a long payload directly into the caller's memory, and many
 * short frames by one system call into its buffer.  Frames to send are queued
 * and leave together by one system call.
 *
 *    switch (link_receive(link, &error)) {
 *    case LINK_HEAD:
 *        ...look at link->frame, then link_set_payload(link, memory), or
 *        link_keep_payload(link)...
 *    case LINK_FRAME:
 *        ...a kept payload is at link->payload until the next call...
 *    case LINK_AGAIN:
 *        ...poll for its events...
 *    case LINK_END:
 *        ...closed, or 'error' is what was wrong...
 *    }
 *
 *    if (link_has_space(link, 0)) {
 *        link_send(link, &frame, payload);
 *    }
 *    link_flush(link);
 *
 * dispatch.h calls link_receive() for all users.
 *
 * A link owns its socket.  Payloads that are sent belong to the caller and
 * must not change until link_idle(), except those of link_send_copy().  One
 * thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "trainer/net/frame.h"

#define LINK_BUFFER (FRAME_MAX_UPDATE * 2)
#define LINK_ARENA (FRAME_MAX_UPDATE * 4)
#ifndef LINK_MAX_PIECES
#define LINK_MAX_PIECES 256     /* Of the send queue. */
#endif

struct link {
    int fd;                     /* -1: closed. */
    int low_water;              /* SO_RCVLOWAT of the socket; 0: not set. */
    uint64_t n_sent, n_received;        /* Bytes since link_init(). */

    /* Receiving. */
    struct frame frame;         /* Of the last LINK_HEAD. */
    uint8_t *payload;           /* In the caller's memory or in 'buffer'. */
    size_t have;                /* Bytes of the payload, if it is not kept. */
    bool in_payload;            /* The head is complete, the payload is not. */
    bool keep;                  /* The payload stays in 'buffer'. */
    bool drained;               /* The kernel had less than was asked for. */
    uint8_t *buffer;            /* LINK_BUFFER bytes. */
    size_t begin, end;          /* Of the data in 'buffer'. */

    /* Sending. */
    uint8_t *arena;             /* Heads and copies: LINK_ARENA bytes. */
    size_t arena_used;
    struct iovec pieces[LINK_MAX_PIECES];       /* The send queue. */
    int piece, n_pieces;        /* First and end of what is not yet sent. */
};

enum link_state {
    LINK_AGAIN,                 /* No more for now. */
    LINK_HEAD,                  /* link_set_payload() is next. */
    LINK_FRAME,                 /* A whole frame. */
    LINK_END,                   /* Closed or broken. */
};

void link_init(struct link *, int fd);
void link_close(struct link *);

/* Prepares 'fd' for a link: nonblocking, no delay, keepalive, and the
 * congestion control 'congestion' if nonnull.  Returns 0 or an errno. */
int link_tune(int fd, const char *congestion);

/* Makes poll() and recv() of a socket wait for half a megabyte if 'left', the
 * bytes that are missing, are twice as many, otherwise for any data.  A
 * wake-up costs 10 to 100 us, the time of a megabyte.  The kernel never waits
 * for more than half the receive buffer, and reports an end or an error at
 * once.  '*low_water' is what is set, 0 at first. */
void link_set_low_water(int fd, size_t left, int *low_water);

/* Accepts a connection of 'listener' and prepares it for a link.  Returns 0,
 * EAGAIN if no connection waits, or another errno. */
int link_accept(struct link *, int listener, const char *congestion);

/* Marks the traffic of 'fd' as control traffic, if the system allows it. */
void link_mark_control(int fd);

/* '*errorp' is NULL if the connection was closed between two frames. */
enum link_state link_receive(struct link *, char **errorp);

/* Sets where the payload goes.  A payload that is kept has at most
 * FRAME_MAX_UPDATE bytes. */
void link_set_payload(struct link *, void *payload);
void link_keep_payload(struct link *);

/* Whether a frame can be queued if 'copied' of its bytes are copied; always
 * true for up to FRAME_MAX_UPDATE bytes if link_idle(). */
bool link_has_space(const struct link *, size_t copied);

/* Queue a frame. */
void link_send(struct link *, struct frame *, const void *payload);
void link_send_copy(struct link *, struct frame *, const void *payload);

/* Queues a frame and returns the memory, in the link, to which its payload
 * must be written before the next call. */
void *link_send_space(struct link *, struct frame *);

int link_flush(struct link *);          /* 0 even if not all is sent. */
bool link_idle(const struct link *);    /* The send queue is empty. */

/* For a source of an event loop: returns the descriptor and stores the events
 * to poll for, without POLLIN unless the link 'receives'. */
int link_wait(const struct link *, bool receives, short *events);

#endif /* trainer/net/link.h */
