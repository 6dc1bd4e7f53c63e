/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DISPATCH_H
#define DISPATCH_H 1

/* Gives the frames that a link receives to the functions for their kinds.
 *
 *    static const struct dispatcher dispatcher = {
 *        .may_receive = has_space,
 *        .handlers = {
 *            [FRAME_PUSH] = { begin_push, end_push },
 *            [FRAME_BYE] = { .end = end_bye },
 *        },
 *    };
 *
 *    switch (dispatch_frames(link, &dispatcher, connection, &error)) {
 *    case DISPATCH_AGAIN:
 *        ...poll for its events...
 *    case DISPATCH_CLOSED:
 *        ...'error' is the reason, or NULL for an end between two frames...
 *    case DISPATCH_REFUSED:
 *        ...'error' is what the other end must not send...
 *    }
 *
 * A kind without a handler is refused by one line that names it.  A handler
 * may close the link, and may free neither the link nor 'aux'. */

#include <stdbool.h>

#include "trainer/net/frame.h"
#include "trainer/net/link.h"

struct frame_handler {
    /* The head of a frame has arrived.  Returns NULL or why the frame is not
     * allowed.  Sets where the payload goes, by link_set_payload() or
     * link_keep_payload(), unless the kind has none. */
    char *(*begin)(void *aux, struct link *);

    /* The whole frame has arrived.  Returns NULL or why it is not allowed. */
    char *(*end)(void *aux, struct link *);
};

struct dispatcher {
    /* False: receive nothing more for now.  NULL: always true. */
    bool (*may_receive)(void *aux, const struct link *);

    struct frame_handler handlers[FRAME_N_TYPES];
};

enum dispatch_result {
    DISPATCH_AGAIN,             /* No more for now, or the link was closed by
                                 * a handler. */
    DISPATCH_CLOSED,            /* By the other end, or broken. */
    DISPATCH_REFUSED,           /* A frame was not allowed. */
};

/* Receives until the kernel has no more. */
enum dispatch_result dispatch_frames(struct link *, const struct dispatcher *,
                                     void *aux, char **errorp);

/* Receives one frame of 'type', or a FRAME_ABORT; no other is allowed, and
 * none after it is received.  '*awaited' begins as zeros. */
struct dispatch_awaited {
    bool done;     /* The frame is in the link. */
    char *refusal; /* The text of a FRAME_ABORT, or NULL. */
};

enum dispatch_result dispatch_await(struct link *, enum frame_type type,
                                    struct dispatch_awaited *awaited,
                                    char **errorp);

/* Handlers for many: keeps the body in the link; returns the text of a
 * FRAME_ABORT; does nothing. */
char *dispatch_keep_payload(void *aux, struct link *);
char *dispatch_abort(void *aux, struct link *);
char *dispatch_ignore(void *aux, struct link *);

#endif /* trainer/net/dispatch.h */
