/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/server-private.h"

#include <string.h>

#include "base/memory.h"
#include "trainer/ps/checkpoint.h"

_Static_assert(sizeof(struct sync_message) == FRAME_SCHEME_LENGTH,
               "messages are sent as they lie in memory");

/* Sends the messages of the scheme. */
static void
send_messages(struct server *server)
{
    struct sync_message body;
    int rank;

    while (!server->over && sync_take(server->sync, &rank, &body)) {
        struct conn *conn = server_find_conn(server, rank, false);
        struct frame frame = { .type = FRAME_SCHEME };

        if (!conn || conn->bye) {
            continue;
        }
        if (!link_has_space(&conn->link, sizeof body)) {
            server_fail(server, message("worker %d does not read its "
                                        "messages", rank));
            return;
        }
        link_send_copy(&conn->link, &frame, &body);
    }
}

/* Sends 'conn' the weights from 'first' of the frame on that it does not
 * have. */
static void
send_range(struct server *server, struct conn *conn, struct frame *frame)
{
    const float *weights = sync_weights(server->sync);
    struct frame_weights *w = &frame->weights;

    frame->type = FRAME_WEIGHTS;
    w->n = conn->sent_from - w->first;
    link_send(&conn->link, frame, weights + (w->first - server->shard.first));
    conn->sent_from = w->first;
}

/* Sends the ranges of the next weights that are final already, while the send
 * queue has space for the rest. */
static void
send_fresh(struct server *server, struct conn *conn)
{
    struct frame frame = { .weights.first = server->shard.first };

    frame.weights.first += sync_fresh(server->sync, &frame.weights.iteration);
    if (frame.weights.first < conn->sent_from
        && conn->link.n_pieces < LINK_MAX_PIECES / 2) {
        send_range(server, conn, &frame);
    }
}

/* Sends weights to 'conn' if the scheme lets it have them. */
static void
send_weights(struct server *server, struct conn *conn)
{
    struct frame frame = { .weights.first = server->shard.first };

    if (conn->waiting
        && (!server->central
            || server->config->central->has_group(server, conn->rank))
        && server->class->ready(server->sync, conn->rank,
                                &frame.weights.iteration,
                                &frame.weights.loss)) {
        conn->waiting--;
        send_range(server, conn, &frame);
        conn->sent_from = shard_end(&server->shard);
        if (server->class->sent) {
            server->class->sent(server->sync, conn->rank);
        }
    } else if (server->class->uses_parts) {
        send_fresh(server, conn);
    }
}

static bool
may_go_on(const struct server *server)
{
    return server->begun && !server->ending && server_complete(server);
}

void
training_answer(struct server *server)
{
    if (may_go_on(server)) {
        send_messages(server);
    }
    for (int i = 0; i < server->n_conns; i++) {
        struct conn *conn = &server->conns[i];

        if (conn->rank < 0 || conn->channel != FRAME_TRAINING || conn->bye) {
            continue;
        }
        if (server->ending && (conn->waiting || server->class->message)) {
            conn_send_last(conn, FRAME_BYE, NULL);
        } else if (may_go_on(server)) {
            send_weights(server, conn);
        }
        link_flush(&conn->link);        /* An error shows when receiving. */
    }
}

/* Whether a part of a gradient ends where the one before began, and begins at
 * the shard's first parameter if and only if it is the last one. */
static bool
fits_gradient(const struct server *server, const struct member *member,
              const struct frame_gradient *g, bool last)
{
    return g->n && g->first <= member->from && g->n == member->from - g->first
           && (last ? g->first == server->shard.first
                    : g->first > server->shard.first);
}

static void
write_checkpoint(struct server *server, uint64_t iteration)
{
    const struct ps_server_config *config = server->config;
    char *error = checkpoint_write(config->checkpoint, &server->hello,
                                   server->class, server->sync, iteration);

    if (error) {
        server_fail(server, error);
        return;
    }

    /* Keep the previous checkpoint: another server may not have written its
     * next one. */
    if (server->saved != FRAME_NONE) {
        checkpoint_prune(config->checkpoint, &server->hello, 0, server->saved);
    }
    server->saved = iteration;
}

void
training_keep(struct server *server)
{
    const struct ps_server_config *config = server->config;

    server->iteration = sync_iteration(server->sync);
    if (config->checkpoint && server->iteration != server->saved
        && !(server->iteration % config->checkpoint_every)) {
        write_checkpoint(server, server->iteration);
    }
}

void
training_save(struct server *server)
{
    uint64_t iteration = sync_iteration(server->sync), next;

    if (server->config->checkpoint && server->begun
        && iteration != server->saved
        && sync_fresh(server->sync, &next) == server->shard.n) {
        write_checkpoint(server, iteration);
    }
}

/* A gradient goes directly to the inbox.  A part that a lost connection left
 * unfinished does not count until the worker sends it again. */
static char *
begin_push(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;
    const struct frame_gradient *g = &link->frame.gradient;
    const struct member *member = &server->members[conn->rank];
    uint32_t max = server->class->max_in_flight
                   ? server->class->max_in_flight(server->sync) : 0;

    if (!server->begun || server->central || conn->waiting > max
        || link->frame.sequence != member->sequence + 1
        || !fits_gradient(server, member, g, link->frame.type == FRAME_PUSH)) {
        return message("gradient %llu of %u values from %llu: not allowed "
                       "now", (unsigned long long) link->frame.sequence, g->n,
                       (unsigned long long) g->first);
    }
    link_set_payload(link, sync_inbox(server->sync, conn->rank)
                        + (g->first - server->shard.first));
    return NULL;
}

/* Sends the answers that a frame has made possible, unless it was wrong. */
static char *
answer_unless(struct server *server, char *error)
{
    if (!error && !server->over) {
        training_answer(server);
    }
    return error;
}

static char *
end_part(void *conn_, struct link *link)
{
    const struct conn *conn = conn_;
    struct server *server = conn->server;
    const struct frame_gradient *g = &link->frame.gradient;

    server->members[conn->rank].from = g->first;
    return answer_unless(
        server, server->ending || !server->class->uses_parts ? NULL
        : sync_part(server->sync, conn->rank, g->iteration, g->n_samples,
                    g->first - server->shard.first));
}

static char *
end_push(void *conn_, struct link *link)
{
    struct conn *conn = conn_;
    struct server *server = conn->server;
    const struct frame_gradient *g = &link->frame.gradient;
    struct member *member = &server->members[conn->rank];
    char *error = NULL;

    conn->waiting += !conn->bye;
    member->sequence++;
    member->from = shard_end(&server->shard);
    if (!server->ending) {
        error = server->class->push(server->sync, conn->rank, g->iteration,
                                    g->n_samples, g->loss);
    }
    if (!error) {
        training_keep(server);
    }
    return answer_unless(server, error);
}

/* A part of the first weights.  Over a new connection they come from the
 * first one on. */
static char *
begin_init(void *conn_, struct link *link)
{
    const struct conn *conn = conn_;
    struct server *server = conn->server;
    const struct frame_range *range = &link->frame.range;
    size_t at = range->first - server->shard.first;

    if (conn->rank || server->begun || !range->n
        || (at && at != server->n_first) || range->n > server->shard.n - at) {
        return message("init: %u values of worker %d: not allowed now",
                       range->n, conn->rank);
    }
    server->n_first = at;
    link_set_payload(link, sync_weights(server->sync) + at);
    return NULL;
}

static char *
end_init(void *conn_, struct link *link)
{
    struct server *server = ((struct conn *) conn_)->server;

    server->n_first += link->frame.range.n;
    if (server->n_first < server->shard.n) {
        return NULL;
    }
    server->begun = true;
    training_keep(server);
    return answer_unless(server, NULL);
}

/* The model's statistics, of the worker that evaluates. */
static char *
begin_statistics(void *conn_, struct link *link)
{
    const struct conn *conn = conn_;
    uint32_t n = link->frame.values.n;

    if (conn->rank || !n || n != conn->server->hello.n_statistics) {
        return message("statistics: %u values of worker %d: not allowed here",
                       n, conn->rank);
    }
    link_keep_payload(link);
    return NULL;
}

static char *
end_statistics(void *conn_, struct link *link)
{
    const struct conn *conn = conn_;

    memcpy(sync_statistics(conn->server->sync), link->payload,
           link->frame.payload_length);
    return NULL;
}

static char *
begin_scheme(void *conn_, struct link *link)
{
    const struct server *server = ((struct conn *) conn_)->server;

    link_keep_payload(link);
    return server->begun && server->class->message && server_complete(server)
           ? NULL : message("scheme: not allowed now");
}

static char *
end_scheme(void *conn_, struct link *link)
{
    const struct conn *conn = conn_;
    struct server *server = conn->server;
    struct sync_message body;

    memcpy(&body, link->payload, sizeof body);
    return answer_unless(
        server, server->ending ? NULL
        : server->class->message(server->sync, conn->rank, &body));
}

const struct dispatcher training_dispatcher = {
    .may_receive = conn_may_receive,
    .handlers = {
        [FRAME_PART] = { begin_push, end_part },
        [FRAME_PUSH] = { begin_push, end_push },
        [FRAME_INIT] = { begin_init, end_init },
        [FRAME_STATISTICS] = { begin_statistics, end_statistics },
        [FRAME_SCHEME] = { begin_scheme, end_scheme },
        [FRAME_BYE] = { .end = conn_end_bye },
        [FRAME_LOST] = { conn_begin_central, conn_end_central },
        [FRAME_PULL] = { conn_begin_central, conn_end_central },
        [FRAME_PAUSE] = { conn_begin_central, conn_end_central },
    },
};
