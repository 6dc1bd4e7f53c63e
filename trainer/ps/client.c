/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/control.h"
#include "trainer/message.h"
#include "trainer/ps/address.h"
#include "trainer/ps/link.h"
#include "trainer/ps/shard.h"
#include "trainer/report.h"
#include "trainer/sync/sync.h"

#define CONNECT_US 15000000     /* A server must be there in so long. */
#define RETRY_MS 100
#define MAX_MESSAGES 256        /* That the worker has not asked for yet. */

struct channel {
    struct link link;
    struct shard shard;
    const char *name;           /* The configuration's. */
    bool answered;              /* In this exchange. */
    uint64_t iteration;         /* Of the weights it gave us last. */
    char text[FRAME_MAX_TEXT + 1];      /* Of FRAME_ABORT. */
};

struct ps_client {
    struct ps_client_config config;
    struct channel *channels;
    struct pollfd *fds;         /* Signals, input, channels. */

    /* Of the exchange that is going on. */
    float *weights;             /* NULL if no answer is expected. */
    double loss;                /* Of the iteration before, by the servers. */

    struct sync_message messages[MAX_MESSAGES]; /* A ring. */
    size_t first_message, n_messages;
    struct sync_message incoming;
};

static void
set_failure(char **errorp, const struct channel *ch, const char *why)
{
    *errorp = message("server %s: %s", ch->name, why);
}

/* Connecting. */

/* Waits until the attempt of 'ch' is over, at most until 'deadline'.  Returns
 * 0 or an errno: EINTR if we were told to stop. */
static int
wait_connected(struct ps_client *client, struct channel *ch,
               int64_t deadline)
{
    struct pollfd fds[2] = {
        { .fd = control_signal_fd(client->config.control),
          .events = POLLIN },
        { .fd = ch->link.fd, .events = POLLOUT },
    };

    for (;;) {
        int64_t left = deadline - report_monotonic_us();

        if (left <= 0) {
            return ETIMEDOUT;
        }
        poll(fds, 2, left / 1000 + 1);
        control_run(client->config.control);
        if (control_stopped(client->config.control)) {
            return EINTR;
        }
        if (fds[1].revents) {
            return address_connected(ch->link.fd);
        }
    }
}

static char *
channel_connect(struct ps_client *client, struct channel *ch)
{
    int64_t deadline = report_monotonic_us() + CONNECT_US;

    for (;;) {
        char *error = address_connect(ch->name, &ch->link.fd);
        int status;

        if (error) {
            return error;
        }
        status = wait_connected(client, ch, deadline);
        if (!status) {
            status = link_tune(ch->link.fd, client->config.congestion);
            return status ? message("server %s: connection: %s", ch->name,
                                    strerror(status)) : NULL;
        }
        link_close(&ch->link);
        if (status != ECONNREFUSED || report_monotonic_us() > deadline) {
            return message("server %s: %s", ch->name, strerror(status));
        }
        poll(NULL, 0, RETRY_MS);
    }
}

char *
ps_client_create(const struct ps_client_config *config,
                 struct ps_client **clientp)
{
    struct ps_client *client = allocate(1, sizeof *client);
    char *error = NULL;

    client->config = *config;
    client->channels = allocate(config->n_servers, sizeof *client->channels);
    client->fds = allocate(2 + config->n_servers, sizeof *client->fds);
    for (int i = 0; i < config->n_servers; i++) {
        link_init(&client->channels[i].link, -1);
    }
    for (int i = 0; i < config->n_servers && !error; i++) {
        struct channel *ch = &client->channels[i];

        ch->name = config->servers[i];
        ch->shard = shard_range(config->n_parameters, i, config->n_servers);
        error = channel_connect(client, ch);
    }
    if (error) {
        ps_client_destroy(client);
        client = NULL;
    }
    *clientp = client;
    return error;
}

/* A server that hears a bye tells the other workers; one that does not takes
 * the end of the connection for a failure. */
void
ps_client_destroy(struct ps_client *client)
{
    if (!client) {
        return;
    }
    for (int i = 0; i < client->config.n_servers; i++) {
        struct link *link = &client->channels[i].link;

        if (link->fd >= 0 && link_idle(link)) {
            struct frame frame = { .type = FRAME_BYE };

            link_send(link, &frame, NULL);
            link_flush(link);
        }
        link_close(link);
    }
    free(client->channels);
    free(client->fds);
    free(client);
}

/* Exchanging. */

/* A header has come.  Says where the body belongs, or what is wrong. */
static char *
begin_answer(struct ps_client *client, struct channel *ch)
{
    const struct frame *frame = &ch->link.frame;

    if (frame->type == FRAME_ABORT) {
        link_set_body(&ch->link, ch->text);
        return NULL;
    }
    if (frame->type == FRAME_BYE) {
        return NULL;
    }
    if (frame->type == FRAME_SCHEME && ch == client->channels
        && client->n_messages < MAX_MESSAGES) {
        link_set_body(&ch->link, &client->incoming);
        return NULL;
    }
    if (frame->type != FRAME_WEIGHTS || !client->weights || ch->answered
        || frame->iteration < ch->iteration
        || frame->first != ch->shard.first || frame->n != ch->shard.n) {
        return message("frame of type %d, %u values of iteration %llu: not "
                       "expected", frame->type, frame->n,
                       (unsigned long long) frame->iteration);
    }
    link_set_body(&ch->link, client->weights + ch->shard.first);
    return NULL;
}

/* A whole frame has come. */
static enum ps_result
end_answer(struct ps_client *client, struct channel *ch, char **errorp)
{
    const struct frame *frame = &ch->link.frame;

    switch (frame->type) {
    case FRAME_WEIGHTS:
        ch->answered = true;
        ch->iteration = frame->iteration;
        client->loss = frame->value;
        return PS_OK;
    case FRAME_SCHEME:
        client->messages[(client->first_message + client->n_messages++)
                         % MAX_MESSAGES] = client->incoming;
        return PS_OK;
    case FRAME_ABORT:
        ch->text[frame->body_length] = '\0';
        set_failure(errorp, ch, ch->text);
        return PS_FAILED;
    default:
        return PS_ENDED;
    }
}

static enum ps_result
channel_run(struct ps_client *client, struct channel *ch, char **errorp)
{
    for (;;) {
        enum ps_result result = PS_OK;
        char *error;

        switch (link_receive(&ch->link, &error)) {
        case LINK_AGAIN:
            return PS_OK;
        case LINK_HEADER:
            error = begin_answer(client, ch);
            break;
        case LINK_FRAME:
            result = end_answer(client, ch, errorp);
            break;
        case LINK_END:
            error = error ? error : duplicate("closed the connection");
            break;
        }
        if (error) {
            set_failure(errorp, ch, error);
            free(error);
            return PS_FAILED;
        }
        if (result != PS_OK) {
            return result;
        }
    }
}

static bool
is_finished(const struct ps_client *client)
{
    for (int i = 0; i < client->config.n_servers; i++) {
        const struct channel *ch = &client->channels[i];

        if (!link_idle(&ch->link) || (client->weights && !ch->answered)) {
            return false;
        }
    }
    return true;
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

/* Waits for the control, if 'input' for its input too, and for the channels,
 * at most until 'until_us'.  Sends and receives what can be. */
static enum ps_result
client_step(struct ps_client *client, bool input, int64_t until_us,
            char **errorp)
{
    struct control *control = client->config.control;
    int n = client->config.n_servers;
    struct pollfd *fds = client->fds;

    fds[0].fd = control_signal_fd(control);
    fds[1].fd = input ? control_input_fd(control) : -1;
    fds[0].events = fds[1].events = POLLIN;
    for (int i = 0; i < n; i++) {
        fds[2 + i].fd = client->channels[i].link.fd;
        fds[2 + i].events = link_events(&client->channels[i].link);
        fds[2 + i].revents = 0;
    }
    if (poll_until(fds, 2 + n, until_us) < 0 && errno != EINTR) {
        *errorp = message("poll: %s", strerror(errno));
        return PS_FAILED;
    }
    if (fds[0].fd >= 0 && fds[0].revents) {
        control_run(control);
        if (control_stopped(control)) {
            return PS_ENDED;
        }
    }
    for (int i = 0; i < n; i++) {
        struct channel *ch = &client->channels[i];
        enum ps_result result = PS_OK;
        int error = 0;

        if (fds[2 + i].revents & (POLLIN | POLLERR | POLLHUP)) {
            result = channel_run(client, ch, errorp);
        }
        if (result == PS_OK && fds[2 + i].revents & POLLOUT) {
            error = link_flush(&ch->link);
        }
        if (error) {
            set_failure(errorp, ch, strerror(error));
            result = PS_FAILED;
        }
        if (result != PS_OK) {
            return result;
        }
    }
    return PS_OK;
}

/* Sends what the links have; if 'weights' is nonnull, also waits for all
 * servers' ranges of it. */
static enum ps_result
client_finish(struct ps_client *client, float *weights, char **errorp)
{
    enum ps_result result = PS_OK;

    client->weights = weights;
    for (int i = 0; i < client->config.n_servers; i++) {
        client->channels[i].answered = false;
        link_flush(&client->channels[i].link);  /* An error shows below. */
    }
    while (result == PS_OK && !is_finished(client)) {
        result = client_step(client, false, INT64_MAX, errorp);
    }
    client->weights = NULL;
    return result;
}

/* Sends each server its range of 'vector' in a frame like 'prototype'. */
static void
send_ranges(struct ps_client *client, struct frame prototype,
            const float *vector)
{
    for (int i = 0; i < client->config.n_servers; i++) {
        struct channel *ch = &client->channels[i];
        struct frame frame = prototype;

        frame.iteration = ch->iteration;
        frame.first = ch->shard.first;
        frame.n = ch->shard.n;
        link_send(&ch->link, &frame, vector + ch->shard.first);
    }
}

enum ps_result
ps_client_begin(struct ps_client *client, float *weights, char **errorp)
{
    const struct ps_client_config *c = &client->config;
    uint8_t (*hellos)[FRAME_HELLO_LENGTH] = allocate(c->n_servers,
                                                     sizeof *hellos);
    enum ps_result result;

    *errorp = NULL;
    for (int i = 0; i < c->n_servers; i++) {
        struct frame frame = { .type = FRAME_HELLO };
        struct frame_hello hello = {
            .rank = c->rank, .n_workers = c->n_workers,
            .shard = i, .n_shards = c->n_servers,
            .n_parameters = c->n_parameters, .seed = c->seed,
            .learning_rate = c->learning_rate, .momentum = c->momentum,
        };

        frame_hello_encode(&hello, hellos[i]);
        link_send(&client->channels[i].link, &frame, hellos[i]);
    }
    result = client_finish(client, NULL, errorp);
    free(hellos);
    if (result == PS_OK) {
        if (!c->rank) {
            send_ranges(client, (struct frame) { .type = FRAME_INIT },
                        weights);
        }
        result = client_finish(client, weights, errorp);
    }
    return result;
}

enum ps_result
ps_client_exchange(struct ps_client *client, const float *gradient,
                   uint32_t n_samples, uint64_t *iteration, double *loss,
                   float *weights, char **errorp)
{
    enum ps_result result;

    *errorp = NULL;
    send_ranges(client, (struct frame) {
        .type = FRAME_PUSH, .samples = n_samples, .value = *loss,
    }, gradient);
    result = client_finish(client, weights, errorp);
    *iteration = client->channels->iteration;
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
    struct frame frame = {
        .type = FRAME_SCHEME, .body_length = sizeof *m,
    };

    link_post(&client->channels->link, &frame, m);
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
ps_client_idle(struct ps_client *client, char **errorp)
{
    *errorp = NULL;
    return client_step(client, true, INT64_MAX, errorp);
}

uint64_t
ps_client_bytes_sent(const struct ps_client *client)
{
    uint64_t n = 0;

    for (int i = 0; i < client->config.n_servers; i++) {
        n += client->channels[i].link.n_sent;
    }
    return n;
}

uint64_t
ps_client_bytes_received(const struct ps_client *client)
{
    uint64_t n = 0;

    for (int i = 0; i < client->config.n_servers; i++) {
        n += client->channels[i].link.n_received;
    }
    return n;
}
