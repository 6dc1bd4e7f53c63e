/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/client-private.h"

/* In a frame like 'push', which is of the weights that it gave us last. */
void
client_send_range(const struct ps_client *client,
                  struct client_server *server)
{
    struct frame frame = client->push;

    frame.iteration = server->iteration;
    frame.first = server->shard.first;
    frame.n = server->shard.n;
    frame.sequence = server->n_answers;
    link_send(&server->channel.link, &frame,
              client->gradient + server->shard.first);
    link_flush(&server->channel.link);  /* An error shows when receiving. */
}
