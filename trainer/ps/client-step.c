/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/client-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/net/heartbeat.h"
#include "trainer/process/report.h"

/* Weights may be of any iteration that follows the gradient's: a scheme may
 * have let others go on without us.  But they must not come before what was
 * sent for them, since we may still compute with the old ones. */
static bool
is_awaited(const struct ps_client *client, const struct client_server *server)
{
    const struct frame *frame = &server->channel.link.frame;
    bool pushes = client->push.type == FRAME_PUSH;
    bool begins = server->got_from == shard_end(&server->shard);

    return frame->type == FRAME_WEIGHTS && client->weights
           && server->n_owed && frame->n
           && frame->first >= (pushes ? server->sent_from
                                      : server->shard.first)
           && frame->first <= server->got_from
           && frame->n == server->got_from - frame->first
           && (begins ? frame->iteration >= server->iteration + pushes
                      : frame->iteration == server->next);
}

/* A header has come.  Says where the body belongs, or what is wrong. */
static char *
begin_answer(struct ps_client *client, struct client_server *server)
{
    struct channel *ch = &server->channel;
    const struct frame *frame = &ch->link.frame;

    if (frame->type == FRAME_ABORT) {
        link_set_body(&ch->link, ch->text);
        return NULL;
    }
    if (frame->type == FRAME_BYE) {
        return NULL;
    }
    if (frame->type == FRAME_MOVE && server == client->servers) {
        link_set_body(&ch->link, ch->text);
        return NULL;
    }
    if (frame->type == FRAME_SCHEME && server == client->servers
        && client->n_messages < CLIENT_MAX_MESSAGES) {
        link_set_body(&ch->link, &client->incoming);
        return NULL;
    }
    if (!is_awaited(client, server)) {
        return message("frame of type %d, %u values of iteration %llu: not "
                       "expected", frame->type, frame->n,
                       (unsigned long long) frame->iteration);
    }
    transfers_header(&server->transfers, ch->link.fd);
    link_set_body(&ch->link, client->weights + frame->first);
    return NULL;
}

void
client_take_answer(struct ps_client *client, struct client_server *server,
                   const struct frame *last)
{
    server->got_from = shard_end(&server->shard);
    server->n_owed--;
    server->n_answers++;
    server->iteration = last->iteration;
    client->loss = last->value;
}

/* A whole frame has come. */
static enum ps_result
end_answer(struct ps_client *client, struct client_server *server,
           char **errorp)
{
    struct channel *ch = &server->channel;
    const struct frame *frame = &ch->link.frame;

    switch (frame->type) {
    case FRAME_WEIGHTS:
        server->got_from = frame->first;
        server->next = frame->iteration;
        transfers_end(&server->transfers, ch->link.fd);
        if (frame->first == server->shard.first) {
            client_take_answer(client, server, frame);
        }
        return PS_OK;
    case FRAME_MOVE:
        client_move(client, server);
        return PS_OK;
    case FRAME_SCHEME:
        client->messages[(client->first_message + client->n_messages++)
                         % CLIENT_MAX_MESSAGES] = client->incoming;
        return PS_OK;
    case FRAME_ABORT:
        ch->text[frame->body_length] = '\0';
        *errorp = channel_failure(ch, duplicate(ch->text));
        return PS_FAILED;
    default:
        return PS_ENDED;
    }
}

static enum ps_result
server_run(struct ps_client *client, struct client_server *server,
           char **errorp)
{
    struct channel *ch = &server->channel;

    for (;;) {
        enum ps_result result = PS_OK;
        char *error;

        switch (link_receive(&ch->link, &error)) {
        case LINK_AGAIN:
            return PS_OK;
        case LINK_HEADER:
            error = begin_answer(client, server);
            if (error) {
                *errorp = channel_failure(ch, error);
                return PS_FAILED;
            }
            break;
        case LINK_FRAME:
            result = end_answer(client, server, errorp);
            break;
        case LINK_END:
            free(error);
            *errorp = client_reopen(client, server);
            return *errorp ? PS_FAILED : PS_OK;
        }
        if (result != PS_OK) {
            return result;
        }
    }
}

static void
fill_fds(struct ps_client *client, bool input)
{
    struct control *control = client->config.control;
    struct pollfd *fds = client->fds;

    fds[0].fd = control ? control_signal_fd(control) : -1;
    fds[1].fd = control && input ? control_input_fd(control) : -1;
    fds[2].fd = client->heartbeat ? heartbeat_fd(client->heartbeat) : -1;
    fds[3].fd = client->group ? group_link_fd(client->group) : -1;
    for (int i = 0; i < CLIENT_N_FIXED; i++) {
        fds[i].events = POLLIN;
        fds[i].revents = 0;
    }
    if (client->group) {
        fds[3].events = group_link_events(client->group);
    }
    for (int i = 0; i < client->config.n_servers; i++) {
        const struct link *link = &client->servers[i].channel.link;

        fds[CLIENT_N_FIXED + i].fd = link->fd;
        fds[CLIENT_N_FIXED + i].events = link_events(link);
        fds[CLIENT_N_FIXED + i].revents = 0;
    }
}

static int
poll_until(struct pollfd *fds, int n, int64_t until_us)
{
    int64_t left = until_us - report_monotonic_us();
    struct timespec ts = { .tv_sec = 0 };

    if (until_us == INT64_MAX) {
        return poll(fds, n, -1);
    }
    if (left > 0) {
        ts.tv_sec = left / 1000000;
        ts.tv_nsec = left % 1000000 * 1000;
    }
    return ppoll(fds, n, &ts, NULL);
}

enum ps_result
client_step(struct ps_client *client, bool input, int64_t until_us,
            char **errorp)
{
    struct control *control = client->config.control;
    struct pollfd *fds = client->fds;
    bool all = client->opened, gone_back = client->gone_back;
    bool waits = !client->group || group_link_waits(client->group);

    client->opened = false;
    fill_fds(client, input);
    if (poll_until(fds, CLIENT_N_FIXED + client->config.n_servers,
                   all || !waits ? 0 : until_us) < 0 && errno != EINTR) {
        *errorp = message("poll: %s", strerror(errno));
        return PS_FAILED;
    }
    if (fds[0].revents) {
        control_run(control);
        if (control_stopped(control)) {
            return PS_ENDED;
        }
    }
    if (fds[2].revents) {
        *errorp = heartbeat_failure(client->heartbeat);
        return PS_FAILED;
    }
    if (client->group && (fds[3].revents || !waits)) {
        enum ps_result result = client_run_group(client, errorp);

        if (result != PS_OK) {
            return result;
        }
    }
    for (int i = 0; i < client->config.n_servers; i++) {
        struct client_server *server = &client->servers[i];
        enum ps_result result = PS_OK;

        if (fds[CLIENT_N_FIXED + i].revents & POLLOUT) {
            link_flush(&server->channel.link);  /* An error shows below. */
        }
        if (all || fds[CLIENT_N_FIXED + i].revents & ~POLLOUT) {
            result = server_run(client, server, errorp);
        }
        if (result != PS_OK || client->gone_back != gone_back) {
            return result;      /* The other connections are others now. */
        }
    }
    return PS_OK;
}
