/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/client-private.h"

#include <stdlib.h>

#include "base/memory.h"
#include "trainer/net/heartbeat.h"

#define MAX_REWINDS 10          /* More is a quarrel among servers. */

static void
watch_heart(struct ps_client *client, const struct client_server *server)
{
    if (client->heartbeat) {
        heartbeat_watch(client->heartbeat, server - client->servers,
                        &server->channel.hello,
                        server->channel.welcome.control_port);
    }
}

char *
client_open(struct ps_client *client, struct client_server *server,
            int64_t timeout_us)
{
    struct channel *ch = &server->channel;
    uint64_t epoch = ch->hello.epoch;
    char *error;

    ch->hello.sequence = server->n_answers;
    error = channel_open(ch, timeout_us);
    ch->hello.rewind = FRAME_NONE;
    client->opened = true;
    if (!error) {
        if (ch->welcome.epoch != epoch) {
            server->n_answers = 0;
        }
        watch_heart(client, server);
    }
    return error;
}

/* Whether 's' has left the epoch that it has to leave. */
static bool
has_left(const struct ps_client *client, const struct client_server *s,
         const uint64_t epochs[])
{
    return s->channel.welcome.epoch != epochs[s - client->servers];
}

/* The least iteration of those who have gone back, which may be a checkpoint
 * apart. */
static uint64_t
least_iteration(const struct ps_client *client, const uint64_t epochs[])
{
    uint64_t least = FRAME_NONE;

    for (const struct client_server *s = client->servers;
         s < client_end(client); s++) {
        if (has_left(client, s, epochs)
            && s->channel.welcome.iteration < least) {
            least = s->channel.welcome.iteration;
        }
    }
    return least;
}

static char *
check_begun(const struct ps_client *client, const uint64_t epochs[])
{
    for (const struct client_server *s = client->servers;
         s < client_end(client); s++) {
        if (has_left(client, s, epochs) && !s->channel.welcome.begun) {
            return channel_failure(&s->channel, duplicate(
                "was started again without a checkpoint"));
        }
    }
    return NULL;
}

/* Makes all servers go back to the last checkpoint that all have.  'epochs'
 * are those that they have to leave; at least one has. */
static char *
go_back(struct ps_client *client, const uint64_t epochs[])
{
    for (int i = 0; i < MAX_REWINDS; i++) {
        char *error = check_begun(client, epochs);
        uint64_t least = least_iteration(client, epochs);
        bool agreed = true;

        for (struct client_server *s = client->servers;
             s < client_end(client) && !error; s++) {
            if (!has_left(client, s, epochs)
                || s->channel.welcome.iteration != least) {
                agreed = false;
                s->channel.hello.rewind = least;
                error = client_open(client, s, client->config.patience_us);
            }
        }
        if (error || agreed) {
            return error;
        }
    }
    return message("servers do not agree on a checkpoint");
}

char *
client_start_again(struct ps_client *client, const uint64_t epochs[])
{
    char *error = go_back(client, epochs);

    client->gone_back = true;
    client->push.type = 0;
    client->n_messages = 0;
    client->rests = false;
    if (client->group) {
        group_link_move(client->group, 0, "", true);
    }
    for (struct client_server *s = client->servers; s < client_end(client);
         s++) {
        s->n_owed = 1;
        s->got_from = shard_end(&s->shard);
        s->iteration = s->channel.welcome.iteration;
    }
    return error;
}

bool
client_lacks_push(const struct ps_client *client,
                  const struct client_server *server)
{
    switch (client->push.type) {
    case FRAME_INIT:
        return !server->channel.welcome.begun;
    case FRAME_PUSH:
        return server->channel.welcome.sequence < server->n_answers;
    default:
        return false;
    }
}

/* The server is the one that it was.  Sends it what it does not have, and
 * expects again what it has not answered. */
static char *
go_on(struct ps_client *client, struct client_server *server)
{
    const struct frame_welcome *welcome = &server->channel.welcome;

    if (!server->n_owed) {
        return NULL;
    }
    server->got_from = shard_end(&server->shard);
    if (!client_lacks_push(client, server)) {
        return NULL;
    }
    if (client->push.type == FRAME_PUSH) {
        if (welcome->from < server->sent_from
            || welcome->from > shard_end(&server->shard)) {
            return channel_failure(&server->channel, duplicate(
                "has what was not sent"));
        }
        server->sent_from = welcome->from;
    }
    client_send(client, server);
    return NULL;
}

char *
client_reopen(struct ps_client *client, struct client_server *lost)
{
    uint64_t *epochs = allocate(client->config.n_servers, sizeof *epochs);
    char *error;

    for (int i = 0; i < client->config.n_servers; i++) {
        epochs[i] = client->servers[i].channel.hello.epoch;
    }
    error = client_open(client, lost, client->config.patience_us);
    if (!error) {
        error = lost->channel.welcome.epoch != epochs[lost - client->servers]
                ? client_start_again(client, epochs)
                : go_on(client, lost);
    }
    free(epochs);
    return error;
}
