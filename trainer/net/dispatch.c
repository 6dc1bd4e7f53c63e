/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/dispatch.h"

#include <stddef.h>

#include "base/memory.h"

static char *
handle_head(struct link *link, const struct dispatcher *dispatcher, void *aux)
{
    const struct frame_handler *handler
        = &dispatcher->handlers[link->frame.type];

    if (!handler->begin && !handler->end) {
        return message("%s: not expected here",
                       frame_type_name(link->frame.type));
    }
    return handler->begin ? handler->begin(aux, link) : NULL;
}

static char *
handle_frame(struct link *link, const struct dispatcher *dispatcher,
             void *aux)
{
    const struct frame_handler *handler
        = &dispatcher->handlers[link->frame.type];

    return handler->end ? handler->end(aux, link) : NULL;
}

enum dispatch_result
dispatch_frames(struct link *link, const struct dispatcher *dispatcher,
                void *aux, char **errorp)
{
    *errorp = NULL;
    while (link->fd >= 0 && (!dispatcher->may_receive
                             || dispatcher->may_receive(aux, link))) {
        switch (link_receive(link, errorp)) {
        case LINK_AGAIN:
            return DISPATCH_AGAIN;
        case LINK_HEAD:
            *errorp = handle_head(link, dispatcher, aux);
            break;
        case LINK_FRAME:
            *errorp = handle_frame(link, dispatcher, aux);
            break;
        case LINK_END:
            return DISPATCH_CLOSED;
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
