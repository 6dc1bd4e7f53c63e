/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/client-private.h"

#include <stdlib.h>

#include "base/memory.h"
#include "trainer/net/heartbeat.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/process/report.h"

#define CONNECT_US 15000000     /* A server must be there in so long. */

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
    client->fds = allocate(CLIENT_N_FIXED + config->n_servers,
                           sizeof *client->fds);
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
        error = client_open(client, &client->servers[i], CONNECT_US);
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
        group_link_destroy(client->group);
        for (int i = 0; i < client->config.n_servers; i++) {
            channel_end(&client->servers[i].channel);
        }
        free(client->servers);
        free(client->fds);
        free(client->error);
        free(client);
    }
}

/* Whether 's' owes us weights that we cannot do without.  Those that have
 * come in part are as good as there, and nothing follows a way back but the
 * weights there. */
static bool
is_awaiting(const struct ps_client *client, const struct client_server *s)
{
    return s->n_owed > (client->gone_back ? 0 : client->ahead)
           || (s->n_owed && s->channel.link.in_body);
}

static bool
is_finished(const struct ps_client *client)
{
    for (const struct client_server *s = client->servers;
         s < client_end(client); s++) {
        if (!link_idle(&s->channel.link)
            || (client->weights && is_awaiting(client, s))) {
            return false;
        }
    }
    return true;
}

/* Where nobody waits for all, one server's checkpoint may have more of our
 * gradients than another's: those are pushed to all again. */
static void
go_on_together(struct ps_client *client)
{
    uint64_t least = UINT64_MAX;

    for (const struct client_server *s = client->servers;
         s < client_end(client); s++) {
        least = s->iteration < least ? s->iteration : least;
    }
    for (struct client_server *s = client->servers; s < client_end(client);
         s++) {
        s->iteration = least;
    }
}

enum ps_result
client_finish(struct ps_client *client, float *weights, uint64_t *iteration,
              char **errorp)
{
    const struct client_server *first = client->servers;
    enum ps_result result = PS_OK;

    client->weights = weights;
    if (client->ahead) {                /* Takes what is there. */
        result = client_step(client, false, 0, errorp);
    }
    while (result == PS_OK && !is_finished(client)) {
        result = client_step(client, false, INT64_MAX, errorp);
    }
    client->weights = NULL;
    client->push.type = 0;
    if (client->gone_back) {
        go_on_together(client);
    }
    client->gone_back = client->pulled = false;

    /* Gradients whose answers are to come count, but for one that we waited
     * for in vain. */
    *iteration = first->iteration + first->n_owed
                 - (result != PS_OK && first->n_owed);
    return result;
}

/* Another answer is to come of each server; nothing of it has. */
static void
expect_answers(struct ps_client *client)
{
    for (struct client_server *s = client->servers; s < client_end(client);
         s++) {
        s->n_owed++;
        s->sent_from = s->got_from = shard_end(&s->shard);
    }
}

/* Whether the servers go on from a checkpoint. */
static bool
is_resumed(const struct ps_client *client)
{
    for (const struct client_server *s = client->servers;
         s < client_end(client); s++) {
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
        *errorp = client_start_again(client, none);
    }
    free(none);
    if (*errorp) {
        return PS_FAILED;
    }
    if (!client->config.rank) {
        client->push = (struct frame) { .type = FRAME_INIT };
        client->gradient = weights;
    }
    for (struct client_server *s = client->servers; s < client_end(client);
         s++) {
        if (client_lacks_push(client, s)) {
            client_send(client, s);
        }
    }
    return client_finish(client, weights, iteration, errorp);
}

void
ps_client_offer(struct ps_client *client, uint64_t iteration,
                const float *gradient, uint32_t n_samples, float *weights)
{
    client->offered = true;
    client->result = PS_OK;
    client->weights = weights;
    if (client->heartbeat) {
        heartbeat_set_iteration(client->heartbeat, iteration);
    }
    if (client->gone_back) {
        return;                 /* The gradient is of other weights. */
    }
    client->gradient = gradient;
    client->final_from = client->config.n_parameters;
    client->complete = false;
    client->push = (struct frame) {
        .type = FRAME_PUSH, .samples = n_samples,
    };
    expect_answers(client);
}

void
ps_client_part(struct ps_client *client, size_t first, size_t n)
{
    if (!client->push.type || client->result != PS_OK || client->ahead
        || client->group || first + n != client->final_from) {
        return;                 /* Leaves in the end, if at all. */
    }
    client->final_from = first;
    for (struct client_server *s = client->servers; s < client_end(client);
         s++) {
        client_send(client, s);
    }
    client->result = client_step(client, false, 0, &client->error);
}

/* Pushes what has not left yet. */
static void
complete(struct ps_client *client, float loss)
{
    client->final_from = 0;
    client->complete = true;
    client->push.value = loss;
    if (client->group) {
        client_send_to_group(client);
        return;
    }
    for (struct client_server *s = client->servers; s < client_end(client);
         s++) {
        transfers_begin(&s->transfers, s->channel.link.fd);
        client_send(client, s);
    }
}

enum ps_result
ps_client_exchange(struct ps_client *client, uint64_t *iteration,
                   const float *gradient, uint32_t n_samples, double *loss,
                   float *weights, char **errorp)
{
    enum ps_result result;

    *errorp = NULL;
    if (!client->offered) {
        ps_client_offer(client, *iteration, gradient, n_samples, weights);
    }
    client->offered = false;
    if (client->result != PS_OK) {
        *errorp = client->error;
        client->error = NULL;
        return client->result;
    }
    if (client->push.type) {
        complete(client, *loss);
    }
    result = client_finish(client, weights, iteration, errorp);
    *loss = client->loss;
    return result;
}

void
ps_client_run_ahead(struct ps_client *client, uint32_t n)
{
    client->ahead = n;
}

bool
ps_client_receive(struct ps_client *client, struct sync_message *m)
{
    if (!client->n_messages) {
        return false;
    }
    *m = client->messages[client->first_message];
    client->first_message = (client->first_message + 1) % CLIENT_MAX_MESSAGES;
    client->n_messages--;
    return true;
}

/* There is room: what we send is little, and each exchange empties it.  What
 * was to be said of an iteration that is no more is not said. */
void
ps_client_send(struct ps_client *client, const struct sync_message *m)
{
    struct frame frame = { .type = FRAME_SCHEME };

    if (!client->gone_back) {
        link_send_copy(&client->servers->channel.link, &frame, m);
    }
}

bool
ps_client_has_gone_back(const struct ps_client *client)
{
    return client->gone_back;
}

enum ps_result
ps_client_wait(struct ps_client *client, int64_t until_us, char **errorp)
{
    enum ps_result result;

    *errorp = NULL;
    do {
        result = client_step(client, false, until_us, errorp);
    } while (result == PS_OK && !client->n_messages && !client->gone_back
             && report_monotonic_us() < until_us);
    return result;
}

enum ps_result
ps_client_idle(struct ps_client *client, float *weights, uint64_t *iteration,
               char **errorp)
{
    enum ps_result result;

    *errorp = NULL;
    client_rest(client);
    client->weights = client->ahead ? weights : NULL;
    result = client_step(client, true, INT64_MAX, errorp);
    client->weights = NULL;
    if (result == PS_OK && client->gone_back) {
        result = client_finish(client, weights, iteration, errorp);
    }
    return result;
}

double
ps_client_transfer_s(const struct ps_client *client)
{
    double seconds = 0;

    if (client->group) {
        return client->group->transfers.seconds;
    }
    for (const struct client_server *s = client->servers;
         s < client_end(client); s++) {
        seconds = s->transfers.seconds > seconds ? s->transfers.seconds
                                                 : seconds;
    }
    return seconds;
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
