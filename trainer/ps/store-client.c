/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/store-client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/net/channel.h"
#include "trainer/net/dispatch.h"
#include "trainer/net/event-loop.h"
#include "trainer/net/frame.h"
#include "trainer/net/keys.h"
#include "trainer/net/server-watch.h"
#include "trainer/process/control.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/shard.h"

#define CONNECT_US 15000000     /* Time limit for connecting to a server. */
#define EAGER 65536             /* Bytes; queued operations are sent from here
                                 * on. */
#define MAX_PARTS 16384         /* Per server, without an answer; a power of
                                 * 2. */

/* The part of an operation that one server does: one frame or more. */
struct store_part {
    enum frame_type type;
    ps_handle handle;
    uint64_t sequence;          /* Sequence number of the first frame. */
    uint64_t single;            /* What 'keys' points to if 'n' is 1. */
    const uint64_t *keys;
    size_t n;                   /* Keys. */
    size_t per_frame;           /* Keys per frame. */
    uint32_t width;             /* Values per key. */
    const float *in;            /* NULL: in 'small', or none. */
    float *out;                 /* NULL: no values are wanted. */
    uint64_t n_frames, n_sent, n_done;
    float small[STORE_SMALL / sizeof(float)];
};

struct store_server {
    struct store_client *client;
    struct channel channel;
    struct shard keys;
    uint64_t next_sequence;
    struct store_part *parts;   /* A ring. */
    size_t head, cursor, tail;  /* Done, sent, queued; only grow. */
    size_t queued;              /* Approximate bytes from 'cursor' on. */
};

struct store_client {
    struct ps_client_config config;
    struct store_server *servers;
    struct event_loop loop;
    struct server_watch *watch;        /* Or NULL. */
    ps_handle last;
    char *failure;
};

static inline struct store_part *
store_part_at(struct store_server *server, size_t i)
{
    return &server->parts[i & (MAX_PARTS - 1)];
}

/* Keeps the first failure; takes ownership of 'why'. */
static void
store_client_fail(struct store_client *client, char *why)
{
    if (client->failure) {
        free(why);
    } else {
        client->failure = why;
    }
}

/* Sending. */

static const float *
part_values(const struct store_part *part, size_t at)
{
    return (part->in ? part->in : part->small) + at * part->width;
}

/* Queues the next frame of 'part'.  Keys that need 8 bytes are sent from the
 * caller's memory. */
static char *
send_frame(struct store_server *server, struct store_part *part, bool last)
{
    struct link *link = &server->channel.link;
    size_t at = part->n_sent * part->per_frame;
    size_t n = part->n - at < part->per_frame ? part->n - at : part->per_frame;
    const uint64_t *keys = part->keys + at;
    struct frame frame = { .type = part->type,
                           .sequence = part->sequence + part->n_sent };
    const float *values = NULL;
    int size = keys_choose(keys, n);
    size_t length;

    if (size == KEYS_UNSORTED) {
        return message("keys: do not ascend");
    }
    frame.keys = (struct frame_keys){ .first = keys[0],
                                      .n = n,
                                      .key_size = size,
                                      .flags = last ? 0 : FRAME_MORE };
    if (part->type == FRAME_UPDATE_KEYS) {
        frame.keys.width = part->width;
        values = part_values(part, at);
    }
    part->n_sent++;
    length = keys_length(n, size);
    if (size == 8) {
        link_send_keys(link, &frame, keys + 1, length, values);
    } else {
        keys_encode(keys, n, size,
                    link_send_keys(link, &frame, NULL, length, values));
    }
    return NULL;
}

static void
store_client_send(struct store_client *client, struct store_server *server)
{
    struct link *link = &server->channel.link;

    do {
        while (server->cursor != server->tail
               && link_has_space(link, FRAME_MAX_UPDATE)) {
            struct store_part *part = store_part_at(server, server->cursor);
            bool last = part->n_sent + 1 == part->n_frames;
            char *error = send_frame(
                server, part, last && server->cursor + 1 == server->tail);

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

/* Marks all frames up to 'sequence' as done.  Returns false if one of them is
 * to be answered by values. */
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

/* Sets where the values go.  Returns false if none are expected. */
static bool
expect_values(struct store_server *server)
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
        || part->n_done >= part->n_sent
        || frame->values.n != n * part->width) {
        return false;
    }
    link_set_payload(link, part->out + at * part->width);
    return true;
}

/* Opens the connection again; all frames without an answer are sent again. */
static void
reopen_server(struct store_client *client, struct store_server *server)
{
    uint64_t epoch = server->channel.welcome.epoch;
    char *error = channel_open(&server->channel,
                               client->config.reconnect_timeout_us);

    if (!error && server->channel.welcome.epoch != epoch) {
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

static char *
unexpected(const struct link *link)
{
    return message("%s %llu: not expected", frame_type_name(link->frame.type),
                   (unsigned long long) link->frame.sequence);
}

static char *
begin_values(void *server_, struct link *link)
{
    struct store_server *server = server_;

    return expect_values(server) ? NULL : unexpected(link);
}

static char *
end_values(void *server_, struct link *link)
{
    struct store_server *server = server_;
    struct store_part *part = store_part_at(server, server->head);

    if (++part->n_done == part->n_frames) {
        server->head++;
    }
    return NULL;
}

static char *
end_ack(void *server_, struct link *link)
{
    struct store_server *server = server_;

    return done_to(server, link->frame.sequence) ? NULL : unexpected(link);
}

static char *
end_bye(void *server, struct link *link)
{
    return duplicate("has ended");
}

static bool
may_receive(void *server_, const struct link *link)
{
    const struct store_server *server = server_;

    return !server->client->failure;
}

static int
server_wait(void *server_, short *events, int64_t *until_us)
{
    const struct store_server *server = server_;

    return link_wait(&server->channel.link, true, events);
}

static void
server_run(void *server_, short revents)
{
    static const struct dispatcher dispatcher = {
        .may_receive = may_receive,
        .handlers = {
            [FRAME_VALUES] = { begin_values, end_values },
            [FRAME_ACK] = { .end = end_ack },
            [FRAME_ABORT] = { dispatch_keep_payload, dispatch_abort },
            [FRAME_BYE] = { .end = end_bye },
        },
    };
    struct store_server *server = server_;
    char *error;

    if (!(revents & ~POLLOUT)) {
        return;
    }
    switch (dispatch_frames(&server->channel.link, &dispatcher, server,
                            &error)) {
    case DISPATCH_AGAIN:
        break;
    case DISPATCH_CLOSED:
        free(error);
        reopen_server(server->client, server);
        break;
    case DISPATCH_REFUSED:
        store_client_fail(server->client,
                          channel_failure(&server->channel, error));
        break;
    }
}

static void
watch_failed(void *client, char *why)
{
    store_client_fail(client, why);
}

void
store_flush(struct store_client *client)
{
    for (int i = 0; i < client->config.n_servers && !client->failure; i++) {
        store_client_send(client, &client->servers[i]);
    }
}

/* Sends, waits for an event, and takes what has come. */
static void
store_client_step(struct store_client *client)
{
    int error;

    store_flush(client);
    if (client->failure) {
        return;
    }
    error = event_loop_run(&client->loop, INT64_MAX);
    if (error) {
        store_client_fail(client, error == ECANCELED
                                      ? message("stopped by a request")
                                      : message("poll: %s", strerror(error)));
    }
}

char *
store_client_create(const struct ps_client_config *config,
                    struct store_client **clientp)
{
    static const struct event_class server_class = { server_wait, server_run };
    struct store_client *client = allocate(1, sizeof *client);
    struct frame_hello hello = {
        .rank = config->rank,
        .n_workers = config->n_workers,
        .n_shards = config->n_servers,
        .key_space = config->key_space,
        .width = config->width,
        .learning_rate = config->learning_rate,
        .momentum = config->momentum,
        .optimiser = optimiser_number(config->optimiser),
        .channel = FRAME_STORE,
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
    for (int i = 0; i < config->n_servers; i++) {
        struct store_server *server = &client->servers[i];

        server->client = client;
        event_loop_add(&client->loop, &server_class, server);
        hello.shard = i;
        channel_init(&server->channel, config->servers[i], &hello,
                     config->congestion, config->control, client->watch);
        server->keys = shard_range(config->key_space, i, config->n_servers);
        server->parts = allocate(MAX_PARTS, sizeof *server->parts);
        server->next_sequence = 1;
    }
    for (int i = 0; i < config->n_servers && !error; i++) {
        error = channel_open(&client->servers[i].channel, CONNECT_US);
    }
    if (error) {
        store_client_destroy(client);
        client = NULL;
    }
    *clientp = client;
    return error;
}

void
store_client_destroy(struct store_client *client)
{
    if (client) {
        server_watch_destroy(client->watch);
        for (int i = 0; i < client->config.n_servers; i++) {
            channel_end(&client->servers[i].channel);
            free(client->servers[i].parts);
        }
        free(client->servers);
        event_loop_uninit(&client->loop);
        free(client->failure);
        free(client);
    }
}

char *
store_wait(struct store_client *client, ps_handle handle)
{
    for (int i = 0; i < client->config.n_servers; i++) {
        struct store_server *server = &client->servers[i];

        while (!client->failure && server->head != server->tail
               && store_part_at(server, server->head)->handle <= handle) {
            store_client_step(client);
        }
    }
    return client->failure ? duplicate(client->failure) : NULL;
}

/* Operations. */

/* Queues a part for 'server'. */
static void
add_part(struct store_client *client, struct store_server *server,
         const struct store_part *part)
{
    size_t bytes = part->in ? part->n * part->width * sizeof(float) : 0;
    struct store_part *added;

    while (server->tail - server->head == MAX_PARTS && !client->failure) {
        store_client_step(client);
    }
    if (client->failure) {
        return;
    }
    added = store_part_at(server, server->tail);
    *added = *part;
    added->sequence = server->next_sequence;
    added->n_frames = (part->n + part->per_frame - 1) / part->per_frame;
    added->n_sent = added->n_done = 0;
    server->next_sequence += added->n_frames;
    if (part->in && bytes <= STORE_SMALL) {
        memcpy(added->small, part->in, bytes);
        added->in = NULL;
    }
    if (part->n == 1) {
        added->single = part->keys[0];
        added->keys = &added->single;
    }
    server->tail++;
    server->queued += FRAME_MAX_HEAD + bytes;
    if (server->queued >= EAGER) {
        store_client_send(client, server);
    }
}

/* Queues an operation on 'n' keys: an update by 'in', or a read into 'out'. */
static ps_handle
add_operation(struct store_client *client, const uint64_t keys[], size_t n,
              const float *in, float *out)
{
    const struct ps_client_config *c = &client->config;
    struct store_part part = {
        .type = in ? FRAME_UPDATE_KEYS : FRAME_READ_KEYS,
        .handle = ++client->last,
        .width = c->width,
        .per_frame = FRAME_MAX_UPDATE / (sizeof *keys + c->width * sizeof *in),
    };

    if (n && keys[n - 1] >= c->key_space) {
        store_client_fail(client, message("key %" PRIu64
                                          ": expected at most %" PRIu64 "",
                                          keys[n - 1], c->key_space - 1));
    }
    for (int i = 0; i < c->n_servers && n; i++) {
        struct store_server *server = &client->servers[i];

        part.n = keys_find(keys, 0, n, shard_end(&server->keys));
        if (!part.n) {
            continue;
        }
        part.keys = keys;
        part.in = in;
        part.out = out;
        add_part(client, server, &part);
        n -= part.n;
        keys += part.n;
        in = in ? in + part.n * c->width : NULL;
        out = out ? out + part.n * c->width : NULL;
    }
    if (n) {
        store_client_fail(client, message("keys: do not ascend"));
    }
    return part.handle;
}

char *
store_idle(struct store_client *client)
{
    client->loop.input = true;
    if (!client->failure) {
        store_client_step(client);
    }
    client->loop.input = false;
    return client->failure ? duplicate(client->failure) : NULL;
}

ps_handle
store_push_keys(struct store_client *client, const uint64_t keys[], size_t n,
                const float *gradients)
{
    return add_operation(client, keys, n, gradients, NULL);
}

ps_handle
store_pull_keys(struct store_client *client, const uint64_t keys[], size_t n,
                float *values)
{
    return add_operation(client, keys, n, NULL, values);
}

void
store_client_bytes(const struct store_client *client, uint64_t *sent,
                   uint64_t *received)
{
    *sent = *received = 0;
    for (int i = 0; i < client->config.n_servers; i++) {
        *sent += client->servers[i].channel.link.n_sent;
        *received += client->servers[i].channel.link.n_received;
    }
}
