/* SPDX-License-Identifier: Apache-2.0 */

/* Under the scheme "groups" a gradient goes to the group server, and in one
 * piece: another server may get our group at any time, and a part of a
 * gradient would have been for nothing. */

#include "trainer/ps/client-private.h"

static void
say(struct ps_client *client, enum frame_type type)
{
    struct link *link = &client->servers->channel.link;
    struct frame frame = { .type = type };

    link_send(link, &frame, NULL);
    link_flush(link);                   /* An error shows elsewhere. */
}

/* What we pushed to the last one either counts, and the answer comes from the
 * central server, or goes to the new one. */
void
client_move(struct ps_client *client, struct client_server *server)
{
    const struct frame *move = &server->channel.link.frame;
    bool waits = client->push.type == FRAME_PUSH && client->complete
                 && server->n_owed;
    bool counted = waits && move->sequence > server->iteration;

    if (!client->group) {
        client->group = group_link_create(client->config.rank,
                                          client->config.congestion);
    }
    server->channel.text[move->body_length] = '\0';
    group_link_move(client->group, move->iteration, server->channel.text,
                    counted);
    if (counted && !client->pulled) {
        client->pulled = true;
        say(client, FRAME_PULL);
    }
}

void
client_send_to_group(struct ps_client *client)
{
    struct client_server *central = client->servers;
    struct frame push = client->push;

    push.iteration = central->iteration;
    push.n = client->config.n_parameters;
    push.sequence = central->n_answers;
    central->sent_from = central->shard.first;
    link_flush(&central->channel.link);     /* An error shows elsewhere. */
    group_link_push(client->group, &push, client->gradient);
}

void
client_rest(struct ps_client *client)
{
    if (client->group && !client->rests) {
        client->rests = true;
        say(client, FRAME_REST);
    }
}

enum ps_result
ps_client_resume(struct ps_client *client, float *weights,
                 uint64_t *iteration, char **errorp)
{
    struct client_server *central = client->servers;

    *errorp = NULL;
    if (!client->rests) {
        return PS_OK;
    }
    client->rests = false;
    central->n_owed++;
    central->got_from = shard_end(&central->shard);
    say(client, FRAME_PULL);
    return client_finish(client, weights, iteration, errorp);
}

enum ps_result
client_run_group(struct ps_client *client, char **errorp)
{
    struct client_server *central = client->servers;
    struct frame frame = { .type = FRAME_LOST };

    switch (group_link_run(client->group, client->weights,
                           client->config.n_parameters, &frame, errorp)) {
    case GROUP_LINK_AGAIN:
        break;
    case GROUP_LINK_ANSWER:
        client_take_answer(client, central, &frame);
        break;
    case GROUP_LINK_LOST:
        frame.iteration = client->group->generation;
        link_send(&central->channel.link, &frame, NULL);
        link_flush(&central->channel.link); /* An error shows elsewhere. */
        break;
    case GROUP_LINK_WRONG:
        return PS_FAILED;
    }
    return PS_OK;
}
