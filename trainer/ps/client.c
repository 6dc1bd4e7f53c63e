/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/net/channel.h"
#include "trainer/net/dispatch.h"
#include "trainer/net/event-loop.h"
#include "trainer/net/frame.h"
#include "trainer/net/server-watch.h"
#include "trainer/net/transfers.h"
#include "trainer/process/control.h"
#include "trainer/ps/group-link.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/shard.h"
#include "trainer/schemes/sync.h"

#define CONNECT_US 15000000     /* Time limit for connecting to a server. */
#define MAX_MESSAGES 256        /* Received and not yet read. */
#define MAX_REWINDS 10          /* More means that servers never agree. */

/* Values of a part of a gradient.  Servers work on the first parts, and answer
 * them, while the rest is sent.  A link has space for MAX_PARTS. */
#define PART_LENGTH ((size_t) 1 << 15)
#define MAX_PARTS 64

struct client_server {
    struct ps_client *client;
    struct channel channel;
    struct shard shard;
    uint64_t n_answers;         /* Answers received in this epoch. */
    uint64_t iteration;         /* Iteration of the last weights. */

    /* In this exchange the gradient is queued from parameter 'sent_from' on,
     * and the next weights have arrived from 'got_from' on, both to the
     * shard's end.  First weights are queued up to 'sent_from'. */
    size_t sent_from, got_from;
    uint64_t old_epoch;         /* Epoch before a rewind. */
    uint64_t next;              /* Iteration of the weights that arrive. */
    uint32_t n_owed;            /* Gradients without an answer. */
    struct transfers transfers;
};

struct ps_client {
    struct ps_client_config config;
    struct client_server *servers;
    struct event_loop loop;
    struct server_watch *watch;
    struct group_link *group;   /* Receives gradients; NULL: servers do. */
    bool pulled;                /* FRAME_PULL was sent in this exchange. */
    bool paused;                /* FRAME_PAUSE was sent. */

    /* The current exchange. */
    struct frame push;          /* Frame to send; 'type' 0: none. */
    const float *gradient;      /* Values of the frame. */
    size_t final_from;          /* 'gradient' is final from here on; first
                                 * weights, up to here. */
    bool complete;              /* All of 'gradient' and 'push' are final. */
    bool offered;               /* ps_client_offer() was called. */
    float *weights;             /* Where answers go; NULL: none is expected. */
    double loss;                /* All workers', of the last iteration. */
    bool rewound;               /* In this exchange, to a checkpoint. */
    bool opened;                /* A connection was opened: its link may hold
                                 * more than the welcome. */
    bool receive_all;           /* 'opened' at the last step. */
    enum ps_result outcome;     /* Of the steps since give_result(). */
    char *why;                  /* Message if 'outcome' is PS_FAILED. */
    uint32_t max_in_flight;     /* Gradients without an answer. */

    struct sync_message messages[MAX_MESSAGES];
    size_t n_messages;
};

#define FOR_EACH_SERVER(S, CLIENT)                              \
    for (struct client_server *S = (CLIENT)->servers;           \
         S < (CLIENT)->servers + (CLIENT)->config.n_servers; S++)

/* Queues a frame like 'push' with a range of the values.  Its iteration
 * follows those of the gradients without an answer. */
static void
send_range(const struct ps_client *client, struct client_server *server,
           enum frame_type type, size_t first, size_t n)
{
    struct frame frame = client->push;

    frame.type = type;
    if (type == FRAME_INIT) {
        frame.range = (struct frame_range) { .first = first, .n = n };
    } else {
        frame.gradient.iteration = server->iteration + server->n_owed - 1;
        frame.gradient.first = first;
        frame.gradient.n = n;
    }
    frame.sequence = server->n_answers + server->n_owed - 1;
    link_send(&server->channel.link, &frame, client->gradient + first);
}

/* Queues the statistics of the worker that evaluates, for checkpoints. */
static void
send_statistics(const struct ps_client *client, struct client_server *server)
{
    struct frame frame = { .type = FRAME_STATISTICS,
                           .values.n = server->channel.hello.n_statistics };

    if (!client->config.rank && frame.values.n) {
        link_send(&server->channel.link, &frame, client->config.statistics);
    }
}

static size_t
part_length(const struct ps_client *client, const struct client_server *server)
{
    size_t n = (server->shard.n + MAX_PARTS - 1) / MAX_PARTS;

    return client->config.whole ? server->shard.n
           : n > PART_LENGTH ? n : PART_LENGTH;
}

/* Queues the first weights that are final, except the last part of a server
 * until ps_client_begin(): it is answered. */
static void
send_first_weights(const struct ps_client *client,
                   struct client_server *server)
{
    size_t n = part_length(client, server), end = shard_end(&server->shard);

    while (server->sent_from < end) {
        size_t left = end - server->sent_from;
        size_t next = left < n ? left : n;

        if (client->final_from < server->sent_from + next
            || (next == left && !client->complete)) {
            break;
        }
        if (next == left) {
            send_statistics(client, server);
        }
        send_range(client, server, FRAME_INIT, server->sent_from, next);
        server->sent_from += next;
    }
}

/* Queues the parts that are final, except what the last frame needs. */
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

static void
client_send(const struct ps_client *client, struct client_server *server)
{
    size_t first = server->shard.first;

    if (client->push.type == FRAME_INIT) {
        send_first_weights(client, server);
    } else {
        send_parts(client, server);
        if (client->complete) {
            send_statistics(client, server);
            send_range(client, server, FRAME_PUSH, first,
                       server->sent_from - first);
            server->sent_from = first;
        }
    }
    link_flush(&server->channel.link);  /* An error shows when receiving. */
}

/* Connects to a server, for the first time or again. */
static char *
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
    if (!error && ch->welcome.epoch != epoch) {
        server->n_answers = 0;
    }
    return error;
}

/* Whether 's' has rewound since 'old_epoch' was set. */
static bool
has_rewound(const struct client_server *s)
{
    return s->channel.welcome.epoch != s->old_epoch;
}

/* Stores the least iteration of the servers that have rewound; they may differ
 * by a checkpoint. */
static char *
find_least_iteration(const struct ps_client *client, uint64_t *least)
{
    *least = FRAME_NONE;
    FOR_EACH_SERVER (s, client) {
        const struct frame_welcome *welcome = &s->channel.welcome;

        if (has_rewound(s) && !welcome->begun) {
            return channel_failure(&s->channel, duplicate(
                "was started again without a checkpoint"));
        }
        if (has_rewound(s) && welcome->iteration < *least) {
            *least = welcome->iteration;
        }
    }
    return NULL;
}

/* Makes all servers rewind to the last checkpoint that all have; at least one
 * has rewound already. */
static char *
rewind_servers(struct ps_client *client)
{
    for (int i = 0; i < MAX_REWINDS; i++) {
        uint64_t least;
        char *error = find_least_iteration(client, &least);
        bool agreed = true;

        FOR_EACH_SERVER (s, client) {
            if (!error && (!has_rewound(s)
                           || s->channel.welcome.iteration != least)) {
                agreed = false;
                s->channel.hello.rewind = least;
                error = client_open(client, s,
                                    client->config.reconnect_timeout_us);
            }
        }
        if (error || agreed) {
            return error;
        }
    }
    return message("servers do not agree on a checkpoint");
}

static char *
client_rewind(struct ps_client *client)
{
    char *error = rewind_servers(client);

    client->rewound = true;
    client->n_messages = client->push.type = 0;
    client->paused = false;
    if (client->group) {
        group_link_move(client->group, 0, "", 0, true);
    }
    FOR_EACH_SERVER (s, client) {
        s->n_owed = 1;
        s->got_from = shard_end(&s->shard);
        s->iteration = s->channel.welcome.iteration;
    }
    return error;
}

/* Whether the server does not have the frame that was sent. */
static bool
client_lacks_push(const struct ps_client *client,
                  const struct client_server *server)
{
    const struct frame_welcome *welcome = &server->channel.welcome;

    return (client->push.type == FRAME_INIT && !welcome->begun)
           || (client->push.type == FRAME_PUSH
               && welcome->sequence < server->n_answers);
}

/* The server is in the same epoch.  Sends again what it does not have, and
 * expects its answers again. */
static char *
resend(struct ps_client *client, struct client_server *server)
{
    bool pushes = client->push.type == FRAME_PUSH;
    size_t end = shard_end(&server->shard);
    size_t from = pushes ? server->channel.welcome.from : server->shard.first;

    if (!server->n_owed) {
        return NULL;
    }
    server->got_from = end;
    if (!client_lacks_push(client, server)) {
        return NULL;
    }
    if (pushes && (from < server->sent_from || from > end)) {
        return channel_failure(&server->channel,
                               duplicate("has received what was not sent"));
    }
    server->sent_from = from;
    client_send(client, server);
    return NULL;
}

static char *
client_reopen(struct ps_client *client, struct client_server *lost)
{
    char *error;

    FOR_EACH_SERVER (s, client) {
        s->old_epoch = s->channel.hello.epoch;
    }
    error = client_open(client, lost, client->config.reconnect_timeout_us);
    return error ? error
           : has_rewound(lost) ? client_rewind(client)
           : resend(client, lost);
}

/* All weights that answer a gradient have arrived, from 'server' or its group
 * server; 'last' is the body of the last frame. */
static void
client_take_answer(struct ps_client *client, struct client_server *server,
                   const struct frame_weights *last)
{
    server->got_from = shard_end(&server->shard);
    server->n_owed--;
    server->n_answers++;
    server->iteration = last->iteration;
    client->loss = last->loss;
}

/* Under the scheme "groups" a gradient goes to the group server in one piece:
 * the group may get another server at any time, and parts would be lost. */

/* Sends to the central server. */
static void
send_to_central(struct ps_client *client, struct frame frame)
{
    struct link *link = &client->servers->channel.link;

    link_send(link, &frame, NULL);
    link_flush(link);                   /* An error shows elsewhere. */
}

/* Uses another group server.  A gradient that was pushed to the old one either
 * counts, and the central server sends the answer, or is pushed again. */
static char *
client_move(void *server_, struct link *link)
{
    struct client_server *server = server_;
    struct ps_client *client = server->client;
    const struct frame *frame = &link->frame;
    bool counted = client->push.type == FRAME_PUSH && client->complete
                   && server->n_owed
                   && frame->move.n_counted > server->iteration;

    if (!client->group) {
        client->group = group_link_create(client->config.rank,
                                          client->config.congestion);
    }
    group_link_move(client->group, frame->move.generation,
                    (const char *) link->payload, frame->payload_length,
                    counted);
    if (counted && !client->pulled) {
        client->pulled = true;
        send_to_central(client, (struct frame){ .type = FRAME_PULL });
    }
    return NULL;
}

static void
client_send_to_group(struct ps_client *client)
{
    struct client_server *central = client->servers;
    struct frame push = client->push;

    push.gradient.iteration = central->iteration;
    push.gradient.n = client->config.n_parameters;
    push.sequence = central->n_answers;
    central->sent_from = central->shard.first;
    send_statistics(client, central);
    link_flush(&central->channel.link);     /* An error shows elsewhere. */
    group_link_push(client->group, &push, client->gradient);
}

/* Ends the step: the job has ended or failed. */
static void
end_step(struct ps_client *client, enum ps_result outcome, char *why)
{
    client->outcome = outcome;
    client->why = why;
    event_loop_break(&client->loop);
}

static int
group_wait(void *client_, short *events, int64_t *until_us)
{
    const struct ps_client *client = client_;

    return client->group ? group_link_wait(client->group, events, until_us)
                         : -1;
}

static void
group_run(void *client_, short revents)
{
    struct ps_client *client = client_;
    char *error;

    switch (group_link_run(client->group, client->weights, &error)) {
    case GROUP_LINK_AGAIN:
        break;
    case GROUP_LINK_ANSWER:
        client_take_answer(client, client->servers,
                           &client->group->link.frame.weights);
        break;
    case GROUP_LINK_LOST:
        send_to_central(
            client,
            (struct frame){ .type = FRAME_LOST,
                            .lost.generation = client->group->generation });
        break;
    case GROUP_LINK_WRONG:
        end_step(client, PS_FAILED, error);
        break;
    }
}

/* Weights may be of any iteration after the gradient's: a scheme may have let
 * others go on without this worker.  But they must not arrive before the
 * gradient was sent, since the worker may still compute with the old ones. */
static bool
is_awaited(const struct client_server *server)
{
    const struct frame_weights *w = &server->channel.link.frame.weights;
    const struct ps_client *client = server->client;
    bool pushes = client->push.type == FRAME_PUSH;
    bool begins = server->got_from == shard_end(&server->shard);

    return client->weights && server->n_owed && w->n
           && w->first >= (pushes ? server->sent_from : server->shard.first)
           && w->first <= server->got_from
           && w->n == server->got_from - w->first
           && (begins ? w->iteration >= server->iteration + pushes
                      : w->iteration == server->next);
}

static char *
begin_weights(void *server_, struct link *link)
{
    struct client_server *server = server_;

    if (!is_awaited(server)) {
        return message("weights: %u values of iteration %llu: not expected",
                       link->frame.weights.n,
                       (unsigned long long) link->frame.weights.iteration);
    }
    transfers_header(&server->transfers, link->fd);
    link_set_payload(link,
                     server->client->weights + link->frame.weights.first);
    return NULL;
}

static char *
end_weights(void *server_, struct link *link)
{
    const struct frame_weights *w = &link->frame.weights;
    struct client_server *server = server_;

    server->got_from = w->first;
    server->next = w->iteration;
    transfers_end(&server->transfers, link->fd);
    if (w->first == server->shard.first) {
        client_take_answer(server->client, server, w);
    }
    return NULL;
}

static char *
begin_statistics(void *server_, struct link *link)
{
    const struct client_server *server = server_;
    uint32_t n = link->frame.values.n;

    if (!n || n != server->channel.hello.n_statistics) {
        return message("statistics: %u values: not expected", n);
    }
    link_set_payload(link, server->client->config.statistics);
    return NULL;
}

/* Frames that only the first server sends, which leads. */
static char *
begin_of_first(void *server_, struct link *link)
{
    const struct client_server *server = server_;

    if (server != server->client->servers
        || server->client->n_messages == MAX_MESSAGES) {
        return message("%s: not expected", frame_type_name(link->frame.type));
    }
    link_keep_payload(link);
    return NULL;
}

static char *
end_scheme(void *server_, struct link *link)
{
    const struct client_server *server = server_;
    struct ps_client *client = server->client;

    memcpy(&client->messages[client->n_messages++], link->payload,
           sizeof client->messages[0]);
    return NULL;
}

static char *
end_bye(void *server_, struct link *link)
{
    struct client_server *server = server_;

    end_step(server->client, PS_ENDED, NULL);
    return NULL;
}

static bool
may_receive(void *server_, const struct link *link)
{
    const struct client_server *server = server_;

    return server->client->outcome == PS_OK;
}

static int
server_wait(void *server_, short *events, int64_t *until_us)
{
    const struct client_server *server = server_;

    if (server->client->receive_all) {
        *until_us = 0;
    }
    return link_wait(&server->channel.link, true, events);
}

/* Opens a connection that has ended.  After a rewind all connections are
 * new. */
static void
server_closed(struct ps_client *client, struct client_server *server)
{
    bool rewound = client->rewound;
    char *error = client_reopen(client, server);

    if (error) {
        end_step(client, PS_FAILED, error);
    } else if (client->rewound != rewound) {
        event_loop_break(&client->loop);
    }
}

static void
server_run(void *server_, short revents)
{
    static const struct dispatcher dispatcher = {
        .may_receive = may_receive,
        .handlers = {
            [FRAME_WEIGHTS] = { begin_weights, end_weights },
            [FRAME_STATISTICS] = { .begin = begin_statistics },
            [FRAME_MOVE] = { begin_of_first, client_move },
            [FRAME_SCHEME] = { begin_of_first, end_scheme },
            [FRAME_ABORT] = { dispatch_keep_payload, dispatch_abort },
            [FRAME_BYE] = { .end = end_bye },
        },
    };
    struct client_server *server = server_;
    struct ps_client *client = server->client;
    char *error;

    if (revents & POLLOUT) {
        link_flush(&server->channel.link);      /* An error shows below. */
    }
    if (revents == POLLOUT && !client->receive_all) {
        return;
    }
    switch (dispatch_frames(&server->channel.link, &dispatcher, server,
                            &error)) {
    case DISPATCH_AGAIN:
        break;
    case DISPATCH_CLOSED:
        free(error);
        server_closed(client, server);
        break;
    case DISPATCH_REFUSED:
        end_step(client, PS_FAILED, channel_failure(&server->channel, error));
        break;
    }
}

static void
watch_failed(void *client, char *why)
{
    end_step(client, PS_FAILED, why);
}

/* Polls the servers and the control, with its input if 'input' is true, at
 * most until 'until_us', and sends and receives what is possible.  Returns
 * and keeps the outcome. */
static enum ps_result
client_step(struct ps_client *client, bool input, int64_t until_us)
{
    int error;

    client->receive_all = client->opened;
    client->opened = false;
    client->outcome = PS_OK;
    client->loop.input = input;
    error = event_loop_run(&client->loop, until_us);
    if (error == ECANCELED) {
        client->outcome = PS_ENDED;
    } else if (error) {
        end_step(client, PS_FAILED, message("poll: %s", strerror(error)));
    }
    return client->outcome;
}

/* Returns the outcome of all steps of a call, and its message. */
static enum ps_result
give_result(struct ps_client *client, char **errorp)
{
    enum ps_result result = client->outcome;

    *errorp = client->why;
    client->why = NULL;
    client->outcome = PS_OK;
    return result;
}

char *
ps_client_create(const struct ps_client_config *config,
                 struct ps_client **clientp)
{
    static const struct event_class server_class = { server_wait, server_run };
    static const struct event_class group_class = { group_wait, group_run };
    struct ps_client *client = allocate(1, sizeof *client);
    struct frame_hello hello = {
        .rank = config->rank,
        .n_workers = config->n_workers,
        .n_shards = config->n_servers,
        .n_parameters = config->n_parameters,
        .seed = config->seed,
        .learning_rate = config->learning_rate,
        .momentum = config->momentum,
        .optimiser = optimiser_number(config->optimiser),
        .schedule = config->schedule,
        .channel = FRAME_TRAINING,
    };
    char *error = NULL;

    client->config = *config;
    client->servers = allocate(config->n_servers, sizeof *client->servers);
    event_loop_init(&client->loop, config->control, control_stopped);
    if (config->heartbeat_timeout_us) {
        error = server_watch_create(
            config->servers, config->n_servers, config->heartbeat_timeout_us,
            &client->loop, watch_failed, client, &client->watch);
    }
    event_loop_add(&client->loop, &group_class, client);
    for (int i = 0; i < config->n_servers; i++) {
        struct client_server *server = &client->servers[i];

        server->client = client;
        event_loop_add(&client->loop, &server_class, server);
        hello.shard = i;
        server->old_epoch = FRAME_NONE;
        hello.n_statistics = i ? 0 : config->n_statistics;
        channel_init(&server->channel, config->servers[i], &hello,
                     config->congestion, config->control, client->watch);
        server->shard = shard_range(config->n_parameters, i,
                                    config->n_servers);
    }
    for (int i = 0; i < config->n_servers && !error; i++) {
        error = client_open(client, &client->servers[i], CONNECT_US);
    }
    if (error) {
        ps_client_destroy(client);
        client = NULL;
    }
    *clientp = client;
    return error;
}

/* A server that receives a bye ends the other workers; otherwise it waits for
 * the worker to come back. */
void
ps_client_destroy(struct ps_client *client)
{
    if (client) {
        server_watch_destroy(client->watch);
        group_link_destroy(client->group);
        for (int i = 0; i < client->config.n_servers; i++) {
            channel_end(&client->servers[i].channel);
        }
        free(client->servers);
        event_loop_uninit(&client->loop);
        free(client->why);
        free(client);
    }
}

/* The exchange waits for weights of all servers after a rewind, otherwise
 * while more than 'max_in_flight' gradients have no answer, or an answer has
 * arrived in part. */
static bool
is_finished(const struct ps_client *client)
{
    uint32_t max = client->rewound ? 0 : client->max_in_flight;

    FOR_EACH_SERVER (s, client) {
        const struct link *link = &s->channel.link;

        if (!link_idle(link)
            || (client->weights && s->n_owed
                && (s->n_owed > max || link->in_payload))) {
            return false;
        }
    }
    return true;
}

/* Under asynchronous schemes the checkpoints of servers may include different
 * numbers of this worker's gradients.  Restarts from the smallest: the others
 * are pushed to all servers again, and a server does not apply one twice. */
static void
go_on_together(struct ps_client *client)
{
    uint64_t least = UINT64_MAX;

    FOR_EACH_SERVER (s, client) {
        least = s->iteration < least ? s->iteration : least;
    }
    FOR_EACH_SERVER (s, client) {
        s->iteration = least;
    }
}

static void
client_finish(struct ps_client *client, float *weights, uint64_t *iteration)
{
    const struct client_server *first = client->servers;

    client->weights = weights;
    if (client->max_in_flight) {        /* Takes what has arrived. */
        client_step(client, false, 0);
    }
    while (client->outcome == PS_OK && !is_finished(client)) {
        client_step(client, false, INT64_MAX);
    }
    client->weights = NULL;
    client->push.type = 0;
    if (client->rewound) {
        go_on_together(client);
    }
    client->rewound = client->pulled = false;

    /* Gradients without an answer count, except the one that failed. */
    *iteration = first->iteration + first->n_owed
                 - (client->outcome != PS_OK && first->n_owed);
}

/* Each server is to send another answer. */
static void
expect_answers(struct ps_client *client)
{
    FOR_EACH_SERVER (s, client) {
        s->n_owed++;
        s->sent_from = s->got_from = shard_end(&s->shard);
    }
}

/* Whether servers have continued from a checkpoint. */
static bool
have_resumed(const struct ps_client *client)
{
    FOR_EACH_SERVER (s, client) {
        if (s->channel.welcome.iteration) {
            return true;
        }
    }
    return false;
}

bool
ps_client_lacks_weights(const struct ps_client *client)
{
    FOR_EACH_SERVER (s, client) {
        if (!client->config.rank && !s->channel.welcome.begun) {
            return !have_resumed(client);
        }
    }
    return false;
}

/* Sends first weights, which are final before parameter 'end', or all of them
 * if 'complete'. */
static void
send_first(struct ps_client *client, const float *weights, size_t end,
           bool complete)
{
    if (!client->push.type) {
        client->push.type = FRAME_INIT;
        client->gradient = weights;
        FOR_EACH_SERVER (s, client) {
            s->sent_from = s->shard.first;
        }
    }
    client->final_from = end;
    client->complete = complete;
    FOR_EACH_SERVER (s, client) {
        if (client_lacks_push(client, s)) {
            client_send(client, s);
        }
    }
}

void
ps_client_first_part(struct ps_client *client, const float *weights,
                     size_t first, size_t n)
{
    if (!client->push.type) {
        expect_answers(client);
    }
    if (client->outcome == PS_OK) {
        send_first(client, weights, first + n, false);
        client_step(client, false, 0);
    }
}

enum ps_result
ps_client_begin(struct ps_client *client, float *weights,
                uint64_t *iteration, char **errorp)
{
    if (client->outcome == PS_OK && !client->push.type) {
        expect_answers(client);
        client->why = have_resumed(client) ? client_rewind(client) : NULL;
        client->outcome = client->why ? PS_FAILED : PS_OK;
    }
    if (client->outcome == PS_OK) {
        if (!client->config.rank) {
            send_first(client, weights, client->config.n_parameters, true);
        }
        client_finish(client, weights, iteration);
    }
    return give_result(client, errorp);
}

void
ps_client_offer(struct ps_client *client, uint64_t iteration,
                const float *gradient, uint32_t n_samples, float *weights)
{
    client->offered = true;
    client->weights = weights;
    if (client->watch) {
        server_watch_set_iteration(client->watch, iteration);
    }
    if (client->rewound) {
        return; /* The gradient is of weights before the rewind. */
    }
    client->gradient = gradient;
    client->final_from = client->config.n_parameters;
    client->complete = false;
    client->push =
        (struct frame){ .type = FRAME_PUSH, .gradient.n_samples = n_samples };
    expect_answers(client);
}

void
ps_client_part(struct ps_client *client, size_t first, size_t n)
{
    if (!client->push.type || client->outcome != PS_OK || client->max_in_flight
        || client->group || first + n != client->final_from) {
        return;                 /* Sent by ps_client_exchange(), if at all. */
    }
    client->final_from = first;
    FOR_EACH_SERVER (s, client) {
        client_send(client, s);
    }
    client_step(client, false, 0);
}

/* Sends the rest of the gradient. */
static void
send_rest(struct ps_client *client, float loss)
{
    client->final_from = 0;
    client->complete = true;
    client->push.gradient.loss = loss;
    if (client->group) {
        client_send_to_group(client);
        return;
    }
    FOR_EACH_SERVER (s, client) {
        transfers_begin(&s->transfers, s->channel.link.fd);
        client_send(client, s);
    }
}

enum ps_result
ps_client_exchange(struct ps_client *client, uint64_t *iteration,
                   const float *gradient, uint32_t n_samples, double *loss,
                   float *weights, char **errorp)
{
    if (!client->offered) {
        ps_client_offer(client, *iteration, gradient, n_samples, weights);
    }
    client->offered = false;
    if (client->outcome == PS_OK) {
        if (client->push.type) {
            send_rest(client, *loss);
        }
        client_finish(client, weights, iteration);
        *loss = client->loss;
    }
    return give_result(client, errorp);
}

void
ps_client_set_max_in_flight(struct ps_client *client, uint32_t n)
{
    client->max_in_flight = n;
}

bool
ps_client_receive(struct ps_client *client, struct sync_message *m)
{
    if (!client->n_messages) {
        return false;
    }
    *m = client->messages[0];
    client->n_messages--;
    memmove(client->messages, client->messages + 1,
            client->n_messages * sizeof *m);
    return true;
}

/* The link has space: messages are short, and each exchange flushes it.
 * Messages of iterations before a rewind are dropped. */
void
ps_client_send(struct ps_client *client, const struct sync_message *m)
{
    struct frame frame = { .type = FRAME_SCHEME };

    if (!client->rewound) {
        link_send_copy(&client->servers->channel.link, &frame, m);
    }
}

bool
ps_client_has_rewound(const struct ps_client *client)
{
    return client->rewound;
}

enum ps_result
ps_client_wait(struct ps_client *client, int64_t until_us, char **errorp)
{
    while (client_step(client, false, until_us) == PS_OK && !client->n_messages
           && !client->rewound && clock_monotonic_us() < until_us) {
        continue;
    }
    return give_result(client, errorp);
}

enum ps_result
ps_client_idle(struct ps_client *client, float *weights, uint64_t *iteration,
               char **errorp)
{
    if (client->group && !client->paused) {
        client->paused = true;
        send_to_central(client, (struct frame){ .type = FRAME_PAUSE });
    }
    client->weights = client->max_in_flight ? weights : NULL;
    client_step(client, true, INT64_MAX);
    client->weights = NULL;
    if (client->outcome == PS_OK && client->rewound) {
        client_finish(client, weights, iteration);
    }
    return give_result(client, errorp);
}

enum ps_result
ps_client_resume(struct ps_client *client, float *weights,
                 uint64_t *iteration, char **errorp)
{
    struct client_server *central = client->servers;

    if (client->paused) {
        client->paused = false;
        central->n_owed++;
        central->got_from = shard_end(&central->shard);
        send_to_central(client, (struct frame){ .type = FRAME_PULL });
        client_finish(client, weights, iteration);
    }
    return give_result(client, errorp);
}

double
ps_client_transfer_s(const struct ps_client *client)
{
    double seconds = 0;

    if (client->group) {
        return client->group->transfers.seconds;
    }
    FOR_EACH_SERVER (s, client) {
        seconds = s->transfers.seconds > seconds ? s->transfers.seconds
                                                 : seconds;
    }
    return seconds;
}

void
ps_client_bytes(const struct ps_client *client, uint64_t *sent,
                uint64_t *received)
{
    const struct group_link *gl = client->group;

    *sent = gl ? gl->n_sent + gl->link.n_sent : 0;
    *received = gl ? gl->n_received + gl->link.n_received : 0;
    FOR_EACH_SERVER (s, client) {
        *sent += s->channel.link.n_sent;
        *received += s->channel.link.n_received;
    }
}
