/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/store-client-private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/net/heartbeat.h"
#include "trainer/schemes/optimiser.h"

#define CONNECT_US 15000000     /* A server must be there in so long. */
#define EAGER 65536             /* Bytes that are worth a system call. */

void
store_client_fail(struct store_client *client, char *why)
{
    if (client->failure) {
        free(why);
    } else {
        client->failure = why;
    }
}

char *
store_client_open(struct store_client *client, struct store_server *server,
                  int64_t timeout_us)
{
    struct channel *ch = &server->channel;
    char *error = channel_open(ch, timeout_us);

    if (!error && client->heartbeat) {
        heartbeat_watch(client->heartbeat, server - client->servers,
                        &ch->hello, ch->welcome.control_port);
    }
    return error;
}

char *
store_client_create(const struct store_client_config *config,
                    struct store_client **clientp)
{
    struct store_client *client = allocate(1, sizeof *client);
    struct frame_hello hello = {
        .rank = config->rank, .n_workers = config->n_workers,
        .n_shards = config->n_servers, .n_parameters = config->n_parameters,
        .key_space = config->key_space, .width = config->width,
        .learning_rate = config->learning_rate, .momentum = config->momentum,
        .optimiser = optimiser_number(config->optimiser),
        .channel = FRAME_STORE,
    };
    char *error = NULL;

    client->config = *config;
    client->servers = allocate(config->n_servers, sizeof *client->servers);
    client->fds = allocate(STORE_N_FIXED + config->n_servers,
                           sizeof *client->fds);
    for (int i = 0; i < config->n_servers; i++) {
        struct store_server *server = &client->servers[i];

        hello.shard = i;
        channel_init(&server->channel, config->servers[i], &hello,
                     config->congestion, config->control);
        server->shard = shard_range(config->n_parameters, i,
                                    config->n_servers);
        server->keys = shard_range(config->key_space, i, config->n_servers);
        server->parts = allocate(STORE_MAX_PARTS, sizeof *server->parts);
        server->next_sequence = 1;
    }
    if (config->deadline_us) {
        error = heartbeat_create(config->servers, config->n_servers,
                                 config->deadline_us, &client->heartbeat);
    }
    for (int i = 0; i < config->n_servers && !error; i++) {
        error = store_client_open(client, &client->servers[i], CONNECT_US);
        client->servers[i].epoch = client->servers[i].channel.welcome.epoch;
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
        heartbeat_destroy(client->heartbeat);
        for (int i = 0; i < client->config.n_servers; i++) {
            channel_end(&client->servers[i].channel);
            free(client->servers[i].parts);
        }
        free(client->servers);
        free(client->fds);
        free(client->failure);
        free(client);
    }
}

void
store_flush(struct store_client *client)
{
    for (int i = 0; i < client->config.n_servers && !client->failure; i++) {
        store_client_send(client, &client->servers[i]);
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

/* Queues a part for 'server'; '*part' has everything but its place. */
static void
add_part(struct store_client *client, struct store_server *server,
         const struct store_part *part)
{
    size_t bytes = part->in ? part->n * part->width * sizeof(float) : 0;
    struct store_part *added;

    while (server->tail - server->head == STORE_MAX_PARTS
           && !client->failure) {
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
    if (part->keys && part->n == 1) {
        added->first = part->keys[0];
        added->keys = &added->first;
    }
    server->tail++;
    server->queued += FRAME_HEADER_LENGTH + bytes;
    if (server->queued >= EAGER) {
        store_client_send(client, server);
    }
}

static ps_handle
add_dense(struct store_client *client, size_t first, size_t n,
          const float *in, float *out)
{
    struct store_part part = {
        .type = in ? FRAME_UPDATE : FRAME_READ,
        .handle = ++client->last, .width = 1,
    };

    assert(n <= client->config.n_parameters
           && first <= client->config.n_parameters - n);
    for (int i = 0; i < client->config.n_servers && n; i++) {
        struct store_server *server = &client->servers[i];
        size_t end = server->shard.first + server->shard.n;

        if (first >= end) {
            continue;
        }
        part.first = first;
        part.n = n < end - first ? n : end - first;
        part.per_frame = in ? FRAME_MAX_UPDATE / sizeof *in : part.n;
        part.in = in;
        part.out = out;
        add_part(client, server, &part);
        first += part.n;
        n -= part.n;
        in = in ? in + part.n : NULL;
        out = out ? out + part.n : NULL;
    }
    return part.handle;
}

/* The number of keys at the beginning that are less than 'end'. */
static size_t
keys_before(const uint64_t keys[], size_t n, uint64_t end)
{
    size_t low = 0;

    while (low < n) {
        size_t middle = low + (n - low) / 2;

        if (keys[middle] < end) {
            low = middle + 1;
        } else {
            n = middle;
        }
    }
    return low;
}

static ps_handle
add_sparse(struct store_client *client, const uint64_t keys[], size_t n,
           const float *in, float *out)
{
    uint32_t width = client->config.width;
    size_t value = width * sizeof *in;
    struct store_part part = {
        .type = in ? FRAME_UPDATE_KEYS : FRAME_READ_KEYS,
        .handle = ++client->last, .width = width,
        .per_frame = FRAME_MAX_UPDATE / (sizeof *keys + value),
    };

    if (n && keys[n - 1] >= client->config.key_space) {
        store_client_fail(client, message("key %llu: at most %llu are allowed",
                             (unsigned long long) keys[n - 1],
                             (unsigned long long) client->config.key_space
                             - 1));
    }
    for (int i = 0; i < client->config.n_servers && n; i++) {
        struct store_server *server = &client->servers[i];

        part.n = keys_before(keys, n, server->keys.first + server->keys.n);
        if (!part.n) {
            continue;
        }
        part.keys = keys;
        part.in = in;
        part.out = out;
        add_part(client, server, &part);
        keys += part.n;
        n -= part.n;
        in = in ? in + part.n * width : NULL;
        out = out ? out + part.n * width : NULL;
    }
    if (n) {
        store_client_fail(client, message("keys: do not ascend"));
    }
    return part.handle;
}

ps_handle
store_push(struct store_client *client, size_t first, size_t n,
           const float *gradients)
{
    return add_dense(client, first, n, gradients, NULL);
}

ps_handle
store_pull(struct store_client *client, size_t first, size_t n,
           float *values)
{
    return add_dense(client, first, n, NULL, values);
}

ps_handle
store_push_pull(struct store_client *client, size_t first, size_t n,
                const float *gradients, float *values)
{
    return add_dense(client, first, n, gradients, values);
}

ps_handle
store_push_keys(struct store_client *client, const uint64_t keys[], size_t n,
                const float *gradients)
{
    return add_sparse(client, keys, n, gradients, NULL);
}

ps_handle
store_pull_keys(struct store_client *client, const uint64_t keys[], size_t n,
                float *values)
{
    return add_sparse(client, keys, n, NULL, values);
}

ps_handle
store_push_pull_keys(struct store_client *client, const uint64_t keys[],
                     size_t n, const float *gradients, float *values)
{
    return add_sparse(client, keys, n, gradients, values);
}
