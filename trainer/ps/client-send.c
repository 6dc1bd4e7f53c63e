/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/client-private.h"

/* A gradient leaves in parts of so many values, so that servers work on what
 * is there, and answer it, while the rest is on its way; but not in more parts
 * than a link has room for. */
#define PART_LENGTH ((size_t) 1 << 15)
#define MAX_PARTS 64

/* In a frame like 'push', which is of the iteration that follows those whose
 * answers are to come, but for the answer to this. */
static void
send_range(const struct ps_client *client, struct client_server *server,
           enum frame_type type, size_t first, size_t n)
{
    struct frame frame = client->push;

    frame.type = type;
    frame.iteration = server->iteration + server->n_owed - 1;
    frame.first = first;
    frame.n = n;
    frame.sequence = server->n_answers + server->n_owed - 1;
    link_send(&server->channel.link, &frame, client->gradient + first);
}

static size_t
part_length(const struct ps_client *client,
            const struct client_server *server)
{
    size_t n = (server->shard.n + MAX_PARTS - 1) / MAX_PARTS;

    return client->config.whole ? server->shard.n
           : n > PART_LENGTH ? n : PART_LENGTH;
}

/* What is final, but for what the last frame is to have. */
static void
send_parts(const struct ps_client *client, struct client_server *server)
{
    size_t n = part_length(client, server);

    while (server->sent_from >= client->final_from + n
           && server->sent_from >= server->shard.first + 2 * n) {
        server->sent_from -= n;
        send_range(client, server, FRAME_PART, server->sent_from, n);
    }
}

void
client_send(const struct ps_client *client, struct client_server *server)
{
    size_t first = server->shard.first;

    if (client->push.type == FRAME_INIT) {
        send_range(client, server, FRAME_INIT, first, server->shard.n);
    } else {
        send_parts(client, server);
        if (client->complete) {
            send_range(client, server, FRAME_PUSH, first,
                       server->sent_from - first);
            server->sent_from = first;
        }
    }
    link_flush(&server->channel.link);  /* An error shows when receiving. */
}
