/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/control.h"
#include "trainer/message.h"
#include "trainer/ps/channel.h"
#include "trainer/ps/group-link.h"
#include "trainer/ps/heartbeat.h"
#include "trainer/ps/optimiser.h"
#include "trainer/ps/shard.h"
#include "trainer/report.h"
#include "trainer/sync/sync.h"

#define CONNECT_US 15000000     /* A server must be there in so long. */
#define MAX_REWINDS 10          /* More is a quarrel among servers. */
#define MAX_MESSAGES 256        /* That the worker has not asked for yet. */
#define N_FIXED 4               /* Descriptors that are not channels'. */

struct server {
    struct channel channel;
    struct shard shard;
    uint64_t n_answers;         /* Weights that have come, in this epoch. */
    bool answered;              /* In this exchange. */
    uint64_t iteration;         /* Of the weights it gave us last. */
};

struct ps_client {
    struct ps_client_config config;
    struct server *servers;
    struct pollfd *fds;         /* Signals, input, heartbeats, group server,
                                 * channels. */
    struct heartbeat *heartbeat;
    struct group_link *group;   /* Where gradients go instead, if nonnull. */
    bool pulled;                /* In this exchange, from the central one. */

    /* Of the exchange that is going on. */
    struct frame push;          /* What we sent; 'type' 0 if nothing. */
    const float *gradient;      /* Its vector. */
    float *weights;             /* NULL if no answer is expected. */
    double loss;                /* Of the iteration before, by the servers. */
    bool gone_back;             /* To a checkpoint. */
    bool opened;                /* A connection: more than the welcome may
                                 * have come with it. */

    struct sync_message messages[MAX_MESSAGES]; /* A ring. */
    size_t first_message, n_messages;
    struct sync_message incoming;
};

static struct server *
end_of_servers(const struct ps_client *client)
{
    return client->servers + client->config.n_servers;
}

static void
watch_heart(struct ps_client *client, const struct server *server)
{
    if (client->heartbeat) {
        heartbeat_watch(client->heartbeat, server - client->servers,
                        &server->channel.hello,
                        server->channel.welcome.control_port);
    }
}

/* Connects to a server for the first time or again. */
static char *
open_server(struct ps_client *client, struct server *server,
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

char *
ps_client_create(const struct ps_client_config *config,
                 struct ps_client **clientp)
{
    struct ps_client *client = allocate(1, sizeof *client);
    struct frame_hello hello = {
        .rank = config->rank, .n_workers = config->n_workers,
        .n_shards = config->n_servers, .n_parameters = config->n_parameters,
        .seed = config->seed, .learning_rate = config->learning_rate,
        .momentum = config->momentum,
        .optimiser = optimiser_number(config->optimiser),
        .width = 1, .channel = FRAME_TRAINING,
    };
    char *error = NULL;

    client->config = *config;
    client->servers = allocate(config->n_servers, sizeof *client->servers);
    client->fds = allocate(N_FIXED + config->n_servers, sizeof *client->fds);
    for (int i = 0; i < config->n_servers; i++) {
        hello.shard = i;
        channel_init(&client->servers[i].channel, config->servers[i], &hello,
                     config->congestion, config->control);
        client->servers[i].shard = shard_range(config->n_parameters, i,
                                               config->n_servers);
    }
    if (config->deadline_us) {
        error = heartbeat_create(config->servers, config->n_servers,
                                 config->deadline_us, &client->heartbeat);
    }
    for (int i = 0; i < config->n_servers && !error; i++) {
        error = open_server(client, &client->servers[i], CONNECT_US);
    }
    if (error) {
        ps_client_destroy(client);
        client = NULL;
    }
    *clientp = client;
    return error;
}

/* A server that hears a bye tells the other workers; one that does not waits
 * for the worker to come back. */
void
ps_client_destroy(struct ps_client *client)
{
    if (client) {
        heartbeat_destroy(client->heartbeat);
        if (client->group) {
            group_link_uninit(client->group);
            free(client->group);
        }
        for (int i = 0; i < client->config.n_servers; i++) {
            channel_end(&client->servers[i].channel);
        }
        free(client->servers);
        free(client->fds);
        free(client);
    }
}

/* Sending. */

/* Sends 'server' its range of 'vector' in a frame like 'prototype', which is
 * of the weights that it gave us last. */
static void
send_range(struct server *server, struct frame prototype,
           const float *vector)
{
    prototype.iteration = server->iteration;
    prototype.first = server->shard.first;
    prototype.n = server->shard.n;
    prototype.sequence = server->n_answers;
    link_send(&server->channel.link, &prototype,
              vector + server->shard.first);
    link_flush(&server->channel.link);  /* An error shows when receiving. */
}

/* Coming back. */

/* Whether 's' has left the epoch that it has to leave. */
static bool
has_left(const struct ps_client *client, const struct server *s,
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

    for (const struct server *s = client->servers;
         s < end_of_servers(client); s++) {
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
    for (const struct server *s = client->servers;
         s < end_of_servers(client); s++) {
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

        for (struct server *s = client->servers;
             s < end_of_servers(client) && !error; s++) {
            if (!has_left(client, s, epochs)
                || s->channel.welcome.iteration != least) {
                agreed = false;
                s->channel.hello.rewind = least;
                error = open_server(client, s, client->config.patience_us);
            }
        }
        if (error || agreed) {
            return error;
        }
    }
    return message("servers do not agree on a checkpoint");
}

/* All servers and we are to begin again at the same iteration. */
static char *
start_again(struct ps_client *client, const uint64_t epochs[])
{
    char *error = go_back(client, epochs);

    client->gone_back = true;
    client->push.type = 0;
    for (struct server *s = client->servers; s < end_of_servers(client);
         s++) {
        s->answered = false;
        s->iteration = s->channel.welcome.iteration;
    }
    return error;
}

static bool
lacks_push(const struct ps_client *client, const struct server *server)
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

/* The connection to 'lost' is broken.  Opens it again, and sends again what
 * the server does not have. */
static char *
reopen(struct ps_client *client, struct server *lost)
{
    uint64_t *epochs = allocate(client->config.n_servers, sizeof *epochs);
    char *error;

    for (int i = 0; i < client->config.n_servers; i++) {
        epochs[i] = client->servers[i].channel.hello.epoch;
    }
    error = open_server(client, lost, client->config.patience_us);
    if (!error) {
        const struct frame_welcome *welcome = &lost->channel.welcome;

        if (welcome->epoch != epochs[lost - client->servers]) {
            error = start_again(client, epochs);
        } else if (!lost->answered && lacks_push(client, lost)) {
            send_range(lost, client->push, client->gradient);
        }
    }
    free(epochs);
    return error;
}

/* Receiving. */

/* Weights may be of any iteration that follows the gradient's: a scheme may
 * have let others go on without us. */
static bool
is_awaited(const struct ps_client *client, const struct server *server)
{
    const struct frame *frame = &server->channel.link.frame;
    uint64_t least = server->iteration + (client->push.type == FRAME_PUSH);

    return frame->type == FRAME_WEIGHTS && client->weights
           && !server->answered && frame->iteration >= least
           && frame->first == server->shard.first
           && frame->n == server->shard.n;
}

/* A header has come.  Says where the body belongs, or what is wrong. */
static char *
begin_answer(struct ps_client *client, struct server *server)
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
        && client->n_messages < MAX_MESSAGES) {
        link_set_body(&ch->link, &client->incoming);
        return NULL;
    }
    if (!is_awaited(client, server)) {
        return message("frame of type %d, %u values of iteration %llu: not "
                       "expected", frame->type, frame->n,
                       (unsigned long long) frame->iteration);
    }
    link_set_body(&ch->link, client->weights + server->shard.first);
    return NULL;
}

/* Another group server has our group.  What we pushed to the last one either
 * counts, and the answer comes from the central server, or goes to the new
 * one. */
static void
take_move(struct ps_client *client, struct server *server)
{
    const struct frame *move = &server->channel.link.frame;
    bool waits = client->push.type == FRAME_PUSH && !server->answered;
    bool counted = waits && move->sequence >= server->n_answers;
    struct frame pull = { .type = FRAME_PULL };

    if (!client->group) {
        client->group = allocate(1, sizeof *client->group);
        group_link_init(client->group, client->config.rank,
                        client->config.congestion);
    }
    server->channel.text[move->body_length] = '\0';
    group_link_move(client->group, move->iteration, server->channel.text,
                    counted);
    if (counted && !client->pulled) {
        client->pulled = true;
        link_send(&server->channel.link, &pull, NULL);
        link_flush(&server->channel.link);  /* An error shows elsewhere. */
    }
}

/* A whole frame has come. */
static enum ps_result
end_answer(struct ps_client *client, struct server *server, char **errorp)
{
    struct channel *ch = &server->channel;
    const struct frame *frame = &ch->link.frame;

    switch (frame->type) {
    case FRAME_WEIGHTS:
        server->answered = true;
        server->n_answers++;
        server->iteration = frame->iteration;
        client->loss = frame->value;
        return PS_OK;
    case FRAME_MOVE:
        take_move(client, server);
        return PS_OK;
    case FRAME_SCHEME:
        client->messages[(client->first_message + client->n_messages++)
                         % MAX_MESSAGES] = client->incoming;
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
server_run(struct ps_client *client, struct server *server, char **errorp)
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
            *errorp = reopen(client, server);
            return *errorp ? PS_FAILED : PS_OK;
        }
        if (result != PS_OK) {
            return result;
        }
    }
}

/* Talks to the group server. */
static enum ps_result
group_run(struct ps_client *client, char **errorp)
{
    struct server *central = client->servers;
    struct frame frame = { .type = FRAME_LOST };

    switch (group_link_run(client->group, client->weights,
                           client->config.n_parameters, &frame, errorp)) {
    case GROUP_LINK_AGAIN:
        break;
    case GROUP_LINK_ANSWER:
        central->answered = true;
        central->n_answers++;
        central->iteration = frame.iteration;
        client->loss = frame.value;
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

static bool
is_finished(const struct ps_client *client)
{
    for (const struct server *s = client->servers;
         s < end_of_servers(client); s++) {
        if (!link_idle(&s->channel.link)
            || (client->weights && !s->answered)) {
            return false;
        }
    }
    return true;
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
    for (int i = 0; i < N_FIXED; i++) {
        fds[i].events = POLLIN;
        fds[i].revents = 0;
    }
    if (client->group) {
        fds[3].events = group_link_events(client->group);
    }
    for (int i = 0; i < client->config.n_servers; i++) {
        const struct link *link = &client->servers[i].channel.link;

        fds[N_FIXED + i].fd = link->fd;
        fds[N_FIXED + i].events = link_events(link);
        fds[N_FIXED + i].revents = 0;
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

/* Waits for the control, if 'input' for its input too, and for the servers,
 * at most until 'until_us'.  Sends and receives what can be. */
static enum ps_result
client_step(struct ps_client *client, bool input, int64_t until_us,
            char **errorp)
{
    struct control *control = client->config.control;
    struct pollfd *fds = client->fds;
    bool all = client->opened;
    bool waits = !client->group || group_link_waits(client->group);

    client->opened = false;
    fill_fds(client, input);
    if (poll_until(fds, N_FIXED + client->config.n_servers,
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
        enum ps_result result = group_run(client, errorp);

        if (result != PS_OK) {
            return result;
        }
    }
    for (int i = 0; i < client->config.n_servers; i++) {
        struct server *server = &client->servers[i];
        enum ps_result result = PS_OK;

        if (fds[N_FIXED + i].revents & POLLOUT) {
            link_flush(&server->channel.link);  /* An error shows below. */
        }
        if (all || fds[N_FIXED + i].revents & ~POLLOUT) {
            result = server_run(client, server, errorp);
        }
        if (result != PS_OK) {
            return result;
        }
    }
    return PS_OK;
}

/* Waits until everything is sent and all servers' ranges of 'weights' are
 * there.  '*iteration' becomes the one that the first server has us begin. */
static enum ps_result
client_finish(struct ps_client *client, float *weights, uint64_t *iteration,
              char **errorp)
{
    enum ps_result result = PS_OK;

    client->weights = weights;
    while (result == PS_OK && !is_finished(client)) {
        result = client_step(client, false, INT64_MAX, errorp);
    }
    client->weights = NULL;
    client->push.type = 0;
    client->gone_back = client->pulled = false;
    *iteration = client->servers->iteration;
    return result;
}

/* Nothing of this exchange has come. */
static void
expect_answers(struct ps_client *client)
{
    for (struct server *s = client->servers; s < end_of_servers(client);
         s++) {
        s->answered = false;
    }
}

/* Whether the servers go on from a checkpoint. */
static bool
is_resumed(const struct ps_client *client)
{
    for (const struct server *s = client->servers;
         s < end_of_servers(client); s++) {
        if (s->channel.welcome.iteration) {
            return true;
        }
    }
    return false;
}

enum ps_result
ps_client_begin(struct ps_client *client, float *weights,
                uint64_t *iteration, char **errorp)
{
    uint64_t *none = allocate(client->config.n_servers, sizeof *none);

    *errorp = NULL;
    expect_answers(client);
    if (is_resumed(client)) {
        for (int i = 0; i < client->config.n_servers; i++) {
            none[i] = FRAME_NONE;
        }
        *errorp = start_again(client, none);
    }
    free(none);
    if (*errorp) {
        return PS_FAILED;
    }
    if (!client->config.rank) {
        client->push = (struct frame) { .type = FRAME_INIT };
        client->gradient = weights;
    }
    for (struct server *s = client->servers; s < end_of_servers(client);
         s++) {
        if (lacks_push(client, s)) {
            send_range(s, client->push, weights);
        }
    }
    return client_finish(client, weights, iteration, errorp);
}

/* To the servers; or to the group server, after what the scheme is to know
 * before. */
static void
send_gradient(struct ps_client *client)
{
    struct server *first = client->servers;
    struct frame push = client->push;

    if (client->group) {
        push.iteration = first->iteration;
        push.n = client->config.n_parameters;
        push.sequence = first->n_answers;
        link_flush(&first->channel.link);   /* An error shows elsewhere. */
        group_link_push(client->group, &push, client->gradient);
        return;
    }
    for (struct server *s = first; s < end_of_servers(client); s++) {
        send_range(s, client->push, client->gradient);
    }
}

enum ps_result
ps_client_exchange(struct ps_client *client, uint64_t *iteration,
                   const float *gradient, uint32_t n_samples, double *loss,
                   float *weights, char **errorp)
{
    enum ps_result result;

    *errorp = NULL;
    client->gradient = gradient;
    client->push = (struct frame) {
        .type = FRAME_PUSH, .samples = n_samples, .value = *loss,
    };
    if (client->heartbeat) {
        heartbeat_set_iteration(client->heartbeat, *iteration);
    }
    expect_answers(client);
    send_gradient(client);
    result = client_finish(client, weights, iteration, errorp);
    *loss = client->loss;
    return result;
}

bool
ps_client_receive(struct ps_client *client, struct sync_message *m)
{
    if (!client->n_messages) {
        return false;
    }
    *m = client->messages[client->first_message];
    client->first_message = (client->first_message + 1) % MAX_MESSAGES;
    client->n_messages--;
    return true;
}

/* There is room: what we send is little, and each exchange empties it. */
void
ps_client_send(struct ps_client *client, const struct sync_message *m)
{
    struct frame frame = { .type = FRAME_SCHEME };

    link_send_copy(&client->servers->channel.link, &frame, m);
}

enum ps_result
ps_client_wait(struct ps_client *client, int64_t until_us, char **errorp)
{
    enum ps_result result;

    *errorp = NULL;
    do {
        result = client_step(client, false, until_us, errorp);
    } while (result == PS_OK && !client->n_messages
             && report_monotonic_us() < until_us);
    return result;
}

enum ps_result
ps_client_idle(struct ps_client *client, float *weights, uint64_t *iteration,
               char **errorp)
{
    enum ps_result result;

    *errorp = NULL;
    result = client_step(client, true, INT64_MAX, errorp);
    if (result == PS_OK && client->gone_back) {
        result = client_finish(client, weights, iteration, errorp);
    }
    return result;
}

uint64_t
ps_client_bytes_sent(const struct ps_client *client)
{
    uint64_t n = client->group
                 ? client->group->n_sent + client->group->link.n_sent : 0;

    for (int i = 0; i < client->config.n_servers; i++) {
        n += client->servers[i].channel.link.n_sent;
    }
    return n;
}

uint64_t
ps_client_bytes_received(const struct ps_client *client)
{
    uint64_t n = client->group
                 ? client->group->n_received + client->group->link.n_received
                 : 0;

    for (int i = 0; i < client->config.n_servers; i++) {
        n += client->servers[i].channel.link.n_received;
    }
    return n;
}
