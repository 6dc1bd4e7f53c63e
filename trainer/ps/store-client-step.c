/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/store-client-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/net/heartbeat.h"
#include "trainer/net/keys.h"

/* Sending. */

static const float *
part_values(const struct store_part *part, size_t at)
{
    return (part->in ? part->in : part->small) + at * part->width;
}

static void
send_dense(struct link *link, struct frame *frame,
           const struct store_part *part, size_t at)
{
    frame->first = part->first + at;
    link_send(link, frame, part->type == FRAME_UPDATE
                           ? part_values(part, at) : NULL);
}

/* Keys that need all their bytes go from where they are. */
static char *
send_sparse(struct link *link, struct frame *frame,
            const struct store_part *part, size_t at)
{
    const uint64_t *keys = part->keys + at;
    const float *values = NULL;
    int size = keys_choose(keys, frame->n);
    size_t length;

    if (size == KEYS_UNSORTED) {
        return message("keys: do not ascend");
    }
    if (part->type == FRAME_UPDATE_KEYS) {
        frame->width = part->width;
        values = part_values(part, at);
    }
    frame->first = keys[0];
    frame->key_size = size;
    length = keys_length(frame->n, size);
    if (size == 8) {
        link_send_keys(link, frame, keys + 1, length, values);
    } else {
        keys_encode(keys, frame->n, size,
                    link_send_keys(link, frame, NULL, length, values));
    }
    return NULL;
}

/* Queues the next frame of 'part'. */
static char *
send_frame(struct store_server *server, struct store_part *part, bool last)
{
    size_t at = part->n_sent * part->per_frame;
    struct frame frame = {
        .type = part->type, .sequence = part->sequence + part->n_sent,
        .n = part->n - at < part->per_frame ? part->n - at : part->per_frame,
    };

    if (part->out) {
        frame.flags |= FRAME_ANSWER;
    }
    if (!last) {
        frame.flags |= FRAME_MORE;
    }
    part->n_sent++;
    if (part->keys) {
        return send_sparse(&server->channel.link, &frame, part, at);
    }
    send_dense(&server->channel.link, &frame, part, at);
    return NULL;
}

void
store_client_send(struct store_client *client, struct store_server *server)
{
    struct link *link = &server->channel.link;

    do {
        while (server->cursor != server->tail
               && link_has_room(link, FRAME_MAX_UPDATE)) {
            struct store_part *part = store_part_at(server, server->cursor);
            bool last = part->n_sent + 1 == part->n_frames;
            char *error = send_frame(server, part,
                                     last
                                     && server->cursor + 1 == server->tail);

            if (error) {
                store_client_fail(client, error);
                return;
            }
            server->cursor += last;
        }
        link_flush(link);               /* An error shows when receiving. */
    } while (link_idle(link) && server->cursor != server->tail);
    server->queued = 0;
}

/* Receiving. */

/* All frames up to 'sequence' are done.  Returns false if that cannot be,
 * because values of one are awaited. */
static bool
done_to(struct store_server *server, uint64_t sequence)
{
    while (server->head != server->tail) {
        struct store_part *part = store_part_at(server, server->head);
        uint64_t done;

        if (part->sequence + part->n_done > sequence) {
            break;
        }
        done = sequence - part->sequence + 1;
        done = done < part->n_frames ? done : part->n_frames;
        if (part->out || done > part->n_sent) {
            return false;
        }
        part->n_done = done;
        if (done < part->n_frames) {
            break;
        }
        server->head++;
    }
    return true;
}

/* A header has come.  Says where the body belongs; false if it is wrong. */
static bool
begin_values(struct store_server *server)
{
    struct link *link = &server->channel.link;
    const struct frame *frame = &link->frame;
    struct store_part *part;
    size_t at, n;

    if (!frame->sequence || !done_to(server, frame->sequence - 1)
        || server->head == server->tail) {
        return false;
    }
    part = store_part_at(server, server->head);
    at = part->n_done * part->per_frame;
    n = part->n - at < part->per_frame ? part->n - at : part->per_frame;
    if (!part->out || frame->sequence != part->sequence + part->n_done
        || part->n_done >= part->n_sent || frame->n != n * part->width) {
        return false;
    }
    link_set_body(link, part->out + at * part->width);
    return true;
}

static void
end_values(struct store_server *server)
{
    struct store_part *part = store_part_at(server, server->head);

    if (++part->n_done == part->n_frames) {
        server->head++;
    }
}

/* Opens the connection again and makes everything that was not answered be
 * sent again. */
static void
reopen(struct store_client *client, struct store_server *server)
{
    char *error = store_client_open(client, server,
                                    client->config.patience_us);

    if (!error && server->channel.welcome.epoch != server->epoch) {
        error = channel_failure(&server->channel, duplicate(
            "was started again, what it had is lost"));
    }
    if (error) {
        store_client_fail(client, error);
        return;
    }
    for (size_t i = server->head; i != server->tail; i++) {
        store_part_at(server, i)->n_sent = store_part_at(server, i)->n_done;
    }
    server->cursor = server->head;
}

/* What is wrong with the frame, or NULL. */
static char *
begin_answer(struct store_server *server)
{
    struct channel *ch = &server->channel;
    const struct frame *frame = &ch->link.frame;
    bool right = false;

    switch (frame->type) {
    case FRAME_ACK:
        right = done_to(server, frame->sequence);
        break;
    case FRAME_VALUES:
        right = begin_values(server);
        break;
    case FRAME_ABORT:
        link_set_body(&ch->link, ch->text);
        right = true;
        break;
    case FRAME_BYE:
        right = true;
        break;
    default:
        break;
    }
    return right ? NULL : channel_failure(ch, message(
        "frame of type %d, sequence %llu: not expected", frame->type,
        (unsigned long long) frame->sequence));
}

static void
end_answer(struct store_client *client, struct store_server *server)
{
    struct channel *ch = &server->channel;

    switch (ch->link.frame.type) {
    case FRAME_VALUES:
        end_values(server);
        break;
    case FRAME_ABORT:
        ch->text[ch->link.frame.body_length] = '\0';
        store_client_fail(client, channel_failure(ch, duplicate(ch->text)));
        break;
    case FRAME_BYE:
        store_client_fail(client, channel_failure(ch, duplicate("has ended")));
        break;
    default:
        break;
    }
}

static void
server_receive(struct store_client *client, struct store_server *server)
{
    while (!client->failure) {
        char *error;

        switch (link_receive(&server->channel.link, &error)) {
        case LINK_AGAIN:
            return;
        case LINK_HEADER:
            error = begin_answer(server);
            if (error) {
                store_client_fail(client, error);
            }
            break;
        case LINK_FRAME:
            end_answer(client, server);
            break;
        case LINK_END:
            free(error);
            reopen(client, server);
            return;
        }
    }
}

void
store_client_step(struct store_client *client)
{
    struct control *control = client->config.control;
    struct pollfd *fds = client->fds;

    fds[0].fd = control ? control_signal_fd(control) : -1;
    fds[1].fd = client->heartbeat ? heartbeat_fd(client->heartbeat) : -1;
    for (int i = 0; i < STORE_N_FIXED; i++) {
        fds[i].events = POLLIN;
        fds[i].revents = 0;
    }
    for (int i = 0; i < client->config.n_servers; i++) {
        struct store_server *server = &client->servers[i];

        store_client_send(client, server);
        fds[STORE_N_FIXED + i].fd = server->channel.link.fd;
        fds[STORE_N_FIXED + i].events = link_events(&server->channel.link);
        fds[STORE_N_FIXED + i].revents = 0;
    }
    if (client->failure) {
        return;
    }
    if (poll(fds, STORE_N_FIXED + client->config.n_servers, -1) < 0
        && errno != EINTR) {
        store_client_fail(client, message("poll: %s", strerror(errno)));
        return;
    }
    if (fds[0].revents) {
        control_run(control);
        if (control_stopped(control)) {
            store_client_fail(client, message("told to stop"));
        }
    }
    if (fds[1].revents) {
        store_client_fail(client, heartbeat_failure(client->heartbeat));
    }
    for (int i = 0; i < client->config.n_servers; i++) {
        if (fds[STORE_N_FIXED + i].revents & ~POLLOUT) {
            server_receive(client, &client->servers[i]);
        }
    }
}
