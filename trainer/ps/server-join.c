/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "trainer/ps/checkpoint.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/ps/store.h"
#include "trainer/process/report.h"

#define HELLO_US 10000000       /* A stranger must say hello in so long. */
#define JOIN_US 60000000        /* After the first hello all must come. */

/* All but the rank and the state must be the same; heartbeats say nothing
 * about the kind of job. */
static bool
hello_agrees(const struct frame_hello *a, const struct frame_hello *b)
{
    struct frame_hello same = *a;
    uint8_t x[FRAME_HELLO_LENGTH], y[FRAME_HELLO_LENGTH];

    same.rank = b->rank;
    same.epoch = b->epoch;
    same.sequence = b->sequence;
    same.rewind = b->rewind;
    same.channel = a->channel == FRAME_CONTROL ? b->channel : a->channel;
    frame_hello_encode(&same, x);
    frame_hello_encode(b, y);
    return !memcmp(x, y, sizeof x);
}

/* A number that no earlier state of this or another server had. */
static void
new_epoch(struct server *server)
{
    do {
        if (getrandom(&server->epoch, sizeof server->epoch, 0)
            != sizeof server->epoch) {
            server->epoch = report_monotonic_us();
        }
    } while (server->epoch == FRAME_NONE);
}

/* Everybody has to join anew, and begins to count anew. */
static void
begin_epoch(struct server *server, int64_t lost_us)
{
    new_epoch(server);
    server->first_hello_us = report_monotonic_us();
    for (int i = 0; i < server->config->n_workers; i++) {
        struct member *member = &server->members[i];

        member->joined = member->present = false;
        member->sequence = 0;
        member->from = shard_end(&server->shard);
        member->lost_us = lost_us;
        member->heard_us = 0;
    }
}

static char *
prepare_training(struct server *server)
{
    const struct ps_server_config *config = server->config;
    const struct frame_hello *hello = &server->hello;
    uint64_t last = FRAME_NONE;
    char *error;

    if (server->central && hello->n_shards > 1) {
        return message("scheme %s: one server is allowed",
                       server->class->name);
    }
    server->sync = server->class->create(&(struct sync_config) {
        .backend = server->backend,
        .n_workers = config->n_workers,
        .n = server->shard.n,
        .optimiser = optimiser_defaults(
            optimiser_by_number(hello->optimiser), hello->learning_rate,
            hello->momentum),
        .spec = config->sync,
        .follows = hello->shard > 0,
    });
    if (config->resume) {
        last = checkpoint_last(config->checkpoint, hello->shard,
                               hello->n_shards);
    }
    if (last == FRAME_NONE) {
        return NULL;
    }
    error = checkpoint_read(config->checkpoint, hello, last, server->class,
                            server->sync);
    if (!error) {
        server->begun = true;
        server->iteration = server->saved = last;
        fprintf(stderr, "server: goes on from iteration %"PRIu64"\n", last);
    }
    return error;
}

static char *
prepare_store(struct server *server)
{
    const struct frame_hello *hello = &server->hello;
    struct optimiser_config optimiser = optimiser_defaults(
        optimiser_by_number(hello->optimiser), hello->learning_rate,
        hello->momentum);

    if (server->config->checkpoint) {
        return message("a store has no checkpoints");
    }
    server->keys = shard_range(hello->key_space, hello->shard,
                               hello->n_shards);
    server->store = store_create(server->shard, hello->width, &optimiser);
    server->begun = true;
    return NULL;
}

static char *
prepare(struct server *server, const struct frame_hello *hello)
{
    server->hello = *hello;
    server->prepared = true;
    server->shard = shard_range(hello->n_parameters, hello->shard,
                                hello->n_shards);
    begin_epoch(server, 0);
    return hello->channel == FRAME_STORE ? prepare_store(server)
                                         : prepare_training(server);
}

bool
server_complete(const struct server *server)
{
    for (int i = 0; i < server->config->n_workers; i++) {
        if (!server->members[i].joined) {
            return false;
        }
    }
    return true;
}

/* Goes back to the checkpoint of 'iteration'.  All workers are to come again
 * and are told that the epoch is another one. */
static char *
server_rewind(struct server *server, uint64_t iteration)
{
    const struct ps_server_config *config = server->config;
    char *error = NULL;

    if (!config->checkpoint || !server->sync) {
        return message("there are no checkpoints to go back to");
    }

    /* Another server may be ahead of us: then it is to go back further. */
    if (server->saved != FRAME_NONE && iteration > server->saved) {
        iteration = server->saved;
    }
    error = checkpoint_read(config->checkpoint, &server->hello, iteration,
                            server->class, server->sync);
    if (error) {
        return error;
    }
    fprintf(stderr, "server: goes back to iteration %"PRIu64"\n", iteration);
    checkpoint_remove(config->checkpoint, &server->hello,
                      iteration + config->checkpoint_every);
    server->begun = true;
    server->iteration = server->saved = iteration;
    begin_epoch(server, report_monotonic_us());
    if (server->central) {
        central_rewind(server);
    }
    for (int i = 0; i < server->n_peers; i++) {
        if (server->peers[i].rank >= 0
            && server->peers[i].channel == FRAME_TRAINING) {
            peer_close(server, &server->peers[i]);
        }
    }
    return NULL;
}

/* The connection that 'rank' has for heartbeats if 'control', else for data,
 * or NULL. */
struct peer *
server_find_peer(struct server *server, int rank, bool control)
{
    for (int i = 0; i < server->n_peers; i++) {
        struct peer *peer = &server->peers[i];

        if (peer->link.fd >= 0 && peer->rank == rank
            && (peer->channel == FRAME_CONTROL) == control) {
            return peer;
        }
    }
    return NULL;
}

/* Whether the scheme has said, or may have, what it does not say again, unless
 * all begin again at a checkpoint. */
static bool
cannot_lose(const struct server *server)
{
    return server->sync && server->class->take
           && !server->class->may_be_missed;
}

static bool
has_checkpoints(const struct server *server)
{
    return server->sync && server->config->checkpoint;
}

/* Makes 'hello' be one of our epoch, or says why it cannot. */
static char *
reconcile(struct server *server, const struct frame_hello *hello)
{
    const struct member *member = &server->members[hello->rank];
    bool ours = hello->epoch == server->epoch;
    struct peer *other = server_find_peer(server, hello->rank, false);

    if (ours && hello->rewind != FRAME_NONE) {
        return server_rewind(server, hello->rewind);
    }
    if (ours && cannot_lose(server) && has_checkpoints(server)) {
        return server_rewind(server, server->saved);
    }
    if (ours && cannot_lose(server)) {
        return message("hello: worker %u lost its connection, which scheme "
                       "%s cannot bear", hello->rank, server->class->name);
    }
    if (ours && hello->sequence > member->sequence + 1) {
        return message("hello: worker %u has answers that were not given",
                       hello->rank);
    }
    if (!ours && other) {
        return message("hello: there is a worker %u already", hello->rank);
    }
    if (!ours && member->joined) {
        /* The worker was started again and knows nothing. */
        return has_checkpoints(server)
               ? server_rewind(server, server->saved)
               : message("hello: worker %u was started again, and there are "
                         "no checkpoints", hello->rank);
    }
    if (other) {
        peer_close(server, other);      /* It knows better than we. */
    }
    return NULL;
}

static void
send_welcome(struct server *server, struct peer *peer)
{
    struct frame frame = { .type = FRAME_WELCOME };
    struct frame_welcome welcome = {
        .epoch = server->epoch,
        .sequence = server->members[peer->rank].sequence,
        .iteration = server->iteration,
        .from = server->members[peer->rank].from,
        .begun = server->begun,
        .control_port = server->control_port,
    };
    uint8_t body[FRAME_WELCOME_LENGTH];

    frame_welcome_encode(&welcome, body);
    link_send_copy(&peer->link, &frame, body);
    link_flush(&peer->link);            /* An error shows when receiving. */
}

static char *
join_control(struct server *server, struct peer *peer,
             const struct frame_hello *hello)
{
    struct peer *other = server_find_peer(server, hello->rank, true);

    if (hello->epoch != server->epoch || !server->prepared) {
        return message("hello: heartbeats of a worker that is not known");
    }
    if (other) {
        peer_close(server, other);
    }
    peer->rank = hello->rank;
    peer->channel = FRAME_CONTROL;
    if (server->members[hello->rank].present) {
        server->members[hello->rank].heard_us = report_monotonic_us();
    }
    link_mark_control(peer->link.fd);
    return NULL;
}

char *
server_take_hello(struct server *server, struct peer *peer)
{
    struct frame_hello hello;
    struct member *member;
    char *error = frame_hello_decode(peer->hello, &hello);

    if (!error && hello.channel == FRAME_PEERS) {
        error = message("hello: of a peer, which trains without servers");
    }
    if (!error && hello.n_workers != server->config->n_workers) {
        error = message("hello: one of %u workers, %d are expected",
                        hello.n_workers, server->config->n_workers);
    }
    if (!error && hello.channel > FRAME_CONTROL) {
        error = message("hello: this is a server, not a peer or a node");
    }
    if (!error && hello.channel == FRAME_CONTROL) {
        return join_control(server, peer, &hello);
    }
    if (!error && server->prepared && !hello_agrees(&hello, &server->hello)) {
        error = message("hello: worker %u's model, data or servers differ "
                        "from those of worker %u", hello.rank,
                        server->hello.rank);
    }
    if (error) {
        return error;
    }
    if (!server->prepared) {
        error = prepare(server, &hello);
        if (error) {
            server_fail(server, duplicate(error));
            return error;
        }
    }
    error = reconcile(server, &hello);
    if (error) {
        return error;
    }
    member = &server->members[hello.rank];
    member->joined = member->present = true;
    member->lost_us = 0;
    peer->rank = hello.rank;
    peer->channel = hello.channel;
    peer->waiting = hello.channel == FRAME_TRAINING
                    && (hello.epoch != server->epoch
                        || hello.rewind != FRAME_NONE
                        || hello.sequence <= member->sequence);
    peer->sent_from = shard_end(&server->shard);
    send_welcome(server, peer);
    return NULL;
}

/* The connection of 'peer', a worker's, has ended; it may come back. */
void
server_lose(struct server *server, struct peer *peer, char *why)
{
    struct member *member = &server->members[peer->rank];

    if (cannot_lose(server) && !has_checkpoints(server)) {
        server_fail(server, message(
            "worker %d at %s lost its connection (%s) at iteration %"PRIu64
            ", which scheme %s cannot bear", peer->rank, peer->name,
            why ? why : "closed", server->iteration, server->class->name));
        peer_close(server, peer);
        free(why);
        return;
    }
    member->present = false;
    member->lost_us = report_monotonic_us();
    member->heard_us = 0;               /* Its heartbeats begin again too. */
    fprintf(stderr, "server: worker %d at %s is away (%s), waiting %"PRId64
            " s for it\n", peer->rank, peer->name, why ? why : "closed",
            server->config->patience_us / 1000000);
    peer_close(server, peer);
    free(why);
}

static void
expire_member(struct server *server, int rank, int64_t now)
{
    const struct ps_server_config *config = server->config;
    struct member *member = &server->members[rank];

    if (member->lost_us && now - member->lost_us > config->patience_us) {
        server_fail(server, message("worker %d is gone at iteration %"PRIu64,
                                    rank, server->iteration));
    } else if (member->heard_us && config->deadline_us
               && now - member->heard_us > config->deadline_us) {
        server_fail(server, message("worker %d is silent for %"PRId64" s at "
                                    "iteration %"PRIu64, rank,
                                    (now - member->heard_us) / 1000000,
                                    server->iteration));
    }
}

/* Ends strangers that say nothing, workers that do not come back, and a job
 * that never becomes complete. */
void
server_expire(struct server *server)
{
    int64_t now = report_monotonic_us();
    int n_joined = 0;

    for (int i = 0; i < server->n_peers; i++) {
        struct peer *peer = &server->peers[i];

        if (peer->link.fd >= 0 && peer->rank < 0 && !peer->host
            && now - peer->since_us > HELLO_US) {
            fprintf(stderr, "server: %s: no hello, closed\n", peer->name);
            peer_close(server, peer);
        }
    }
    for (int i = 0; i < server->config->n_workers && !server->ending; i++) {
        expire_member(server, i, now);
        n_joined += server->members[i].joined;
    }
    if (server->prepared && !server->over && !server->ending
        && n_joined < server->config->n_workers
        && now - server->first_hello_us > JOIN_US) {
        server_fail(server, message("only %d of %d workers came in %d s",
                                    n_joined, server->config->n_workers,
                                    JOIN_US / 1000000));
    }
}
