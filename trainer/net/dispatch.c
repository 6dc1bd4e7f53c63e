/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/dispatch.h"

#include <stddef.h>

#include "base/memory.h"

enum dispatch_result
dispatch_frames(struct link *link, const struct dispatcher *dispatcher,
                void *aux, char **errorp)
{
    *errorp = NULL;
    while (link->fd >= 0 && (!dispatcher->may_receive
                             || dispatcher->may_receive(aux, link))) {
        enum link_state state = link_receive(link, errorp);
        const struct frame_handler *handler;

        if (state == LINK_AGAIN) {
            return DISPATCH_AGAIN;
        }
        if (state == LINK_END) {
            return DISPATCH_CLOSED;
        }
        handler = &dispatcher->handlers[link->frame.type];
        if (!handler->begin && !handler->end) {
            *errorp = message("%s: not expected here",
                              frame_type_name(link->frame.type));
        } else if (state == LINK_HEAD && handler->begin) {
            *errorp = handler->begin(aux, link);
        } else if (state == LINK_FRAME && handler->end) {
            *errorp = handler->end(aux, link);
        }
        if (*errorp) {
            return DISPATCH_REFUSED;
        }
    }
    return DISPATCH_AGAIN;
}

char *
dispatch_keep_payload(void *aux, struct link *link)
{
    link_keep_payload(link);
    return NULL;
}

char *
dispatch_abort(void *aux, struct link *link)
{
    return message("%.*s", (int) link->frame.payload_length,
                   (const char *) link->payload);
}

char *
dispatch_ignore(void *aux, struct link *link)
{
    return NULL;
}

static bool
is_awaited(void *awaited_, const struct link *link)
{
    const struct dispatch_awaited *awaited = awaited_;

    return !awaited->done;
}

static char *
end_awaited(void *awaited_, struct link *link)
{
    struct dispatch_awaited *awaited = awaited_;

    awaited->done = true;
    awaited->refusal =
        link->frame.type == FRAME_ABORT ? dispatch_abort(NULL, link) : NULL;
    return NULL;
}

enum dispatch_result
dispatch_await(struct link *link, enum frame_type type,
               struct dispatch_awaited *awaited, char **errorp)
{
    struct dispatcher dispatcher = {
        .may_receive = is_awaited,
        .handlers = {
            [FRAME_ABORT] = { dispatch_keep_payload, end_awaited },
        },
    };

    dispatcher.handlers[type].end = end_awaited;
    return dispatch_frames(link, &dispatcher, awaited, errorp);
}
