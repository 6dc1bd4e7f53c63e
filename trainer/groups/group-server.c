/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/groups/group-server.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/dispatch.h"
#include "trainer/net/event-loop.h"
#include "trainer/net/heartbeat.h"
#include "trainer/net/link.h"
#include "trainer/process/control.h"
#include "trainer/process/report.h"

#define CONNECT_US 15000000     /* Time limit for the first connection. */
#define RETRY_MS 50
#define POLL_US 500000          /* Longest time between checks of timeouts. */
#define JOIN_US 1000000         /* Time limit for a join, */
#define GROUP_US 10000000       /* and for its group. */
#define MAX_UNKNOWN 64          /* Visitors beyond two per seat. */

/* A connection of a worker. */
struct visitor {
    struct group_server *gs;
    struct link link;           /* Closed: the entry is unused. */
    char *name;                 /* HOST:PORT, for messages. */
    int64_t since_us;
    bool joined;
    uint64_t generation;        /* Valid if 'joined', like 'rank'. */
    uint64_t rank;
};

/* A worker of the group, with or without a connection. */
struct seat {
    uint32_t rank;
    struct visitor *visitor;    /* Or NULL. */
    bool paused;                /* The mean does not wait for it. */
    bool pushed;                /* Its gradient for the next mean is here. */
    bool owed;                  /* It waits for the weights of the last
                                 * mean. */
    uint64_t iteration;         /* Of its last push, like the next two. */
    uint32_t n_samples;
    float loss;
    float *gradient;
};

struct group_server {
    const struct group_server_config *config;
    struct link central;
    char *name;                 /* HOST:PORT of this server. */
    int listener;
    struct visitor **visitors;
    int n_visitors;             /* With and without a connection. */
    struct event_loop loop;

    uint64_t generation;        /* Of the group; 0: no group yet. */
    struct seat *seats;
    int n_seats;
    bool owed;                  /* The last mean has no answer yet. */
    size_t n_parameters;
    float *mean, *weights;
    uint64_t n_steps;           /* Means pushed, of all groups. */
    struct heartbeat heartbeat; /* Of the central server. */
    uint64_t n_sent, n_received;        /* Bytes, of closed connections. */
    bool over;
    char *failure;
};

static void
visitor_close(struct group_server *gs, struct visitor *v)
{
    for (int i = 0; i < gs->n_seats; i++) {
        if (gs->seats[i].visitor == v) {
            gs->seats[i].visitor = NULL;
        }
    }
    gs->n_sent += v->link.n_sent;
    gs->n_received += v->link.n_received;
    link_close(&v->link);
    free(v->name);
    memset(v, 0, sizeof *v);
    v->gs = gs;
    v->link.fd = -1;
}

static void
free_group(struct group_server *gs)
{
    for (int i = 0; i < gs->n_seats; i++) {
        free(gs->seats[i].gradient);
    }
    free(gs->seats);
    free(gs->mean);
    free(gs->weights);
    gs->seats = NULL;
    gs->mean = gs->weights = NULL;
    gs->n_seats = 0;
    gs->owed = false;
    gs->generation = 0;
}

static void
clear_seats(struct group_server *gs)
{
    for (int i = 0; i < gs->n_visitors; i++) {
        if (gs->visitors[i]->link.fd >= 0) {
            visitor_close(gs, gs->visitors[i]);
        }
    }
    free_group(gs);
}

/* Whether the mean can be made: all workers that are not paused have pushed,
 * and at least one has. */
static bool
is_complete(const struct group_server *gs)
{
    bool any = false;

    for (int i = 0; i < gs->n_seats; i++) {
        if (!gs->seats[i].pushed && !gs->seats[i].paused) {
            return false;
        }
        any = any || gs->seats[i].pushed;
    }
    return any;
}

/* Pushes the mean of the gradients to the central server. */
static void
push_mean(struct group_server *gs)
{
    struct frame frame = {
        .type = FRAME_MEAN, .sequence = ++gs->n_steps,
        .mean = { .generation = gs->generation, .n = gs->n_parameters },
    };
    struct frame_mean *mean = &frame.mean;
    double loss = 0;

    for (int i = 0; i < gs->n_seats; i++) {
        struct seat *seat = &gs->seats[i];

        seat->owed = seat->pushed;
        seat->pushed = false;
        seat->n_samples = seat->owed ? seat->n_samples : 0;
        mean->n_samples += seat->n_samples;
        loss += (double) seat->loss * seat->n_samples;
    }
    mean->loss = mean->n_samples ? loss / mean->n_samples : 0;
    memset(gs->mean, 0, gs->n_parameters * sizeof *gs->mean);
    for (int i = 0; i < gs->n_seats && mean->n_samples; i++) {
        float share = (double) gs->seats[i].n_samples / mean->n_samples;
        const float *gradient = gs->seats[i].gradient;

        for (size_t k = 0; k < gs->n_parameters && share > 0; k++) {
            gs->mean[k] += share * gradient[k];
        }
    }
    gs->owed = true;
    link_send(&gs->central, &frame, gs->mean);
    link_flush(&gs->central);           /* An error shows when receiving. */
}

static void
push_mean_if_complete(struct group_server *gs)
{
    if (!gs->owed && is_complete(gs)) {
        push_mean(gs);
    }
}

static struct seat *
find_seat(struct group_server *gs, const struct visitor *v)
{
    for (int i = 0; i < gs->n_seats; i++) {
        if (v->joined && v->generation == gs->generation
            && gs->seats[i].rank == v->rank) {
            return &gs->seats[i];
        }
    }
    return NULL;
}

/* Gives 'v' its seat, unless its group is not here yet. */
static char *
take_seat(struct group_server *gs, struct visitor *v)
{
    struct seat *seat = find_seat(gs, v);

    if (v->generation > gs->generation) {
        return NULL;
    }
    if (!seat || seat->visitor) {
        return message("worker %"PRIu64" of generation %"PRIu64": not of "
                       "this group", v->rank, v->generation);
    }
    seat->visitor = v;
    return NULL;
}

static char *
begin_join(void *v_, struct link *link)
{
    const struct visitor *v = v_;

    return v->joined ? message("join: not allowed twice") : NULL;
}

static char *
end_join(void *v_, struct link *link)
{
    struct visitor *v = v_;

    v->joined = true;
    v->generation = link->frame.join.generation;
    v->rank = link->frame.join.rank;
    return take_seat(v->gs, v);
}

static char *
begin_push(void *v_, struct link *link)
{
    const struct visitor *v = v_;
    struct seat *seat = find_seat(v->gs, v);

    if (!seat || seat->pushed || link->frame.gradient.first
        || link->frame.gradient.n != v->gs->n_parameters) {
        return message("gradient of %u values from %"PRIu64": not allowed "
                       "now", link->frame.gradient.n,
                       link->frame.gradient.first);
    }
    link_set_payload(link, seat->gradient);
    return NULL;
}

static char *
end_push(void *v_, struct link *link)
{
    const struct visitor *v = v_;
    struct seat *seat = find_seat(v->gs, v);

    seat->pushed = true;
    seat->iteration = link->frame.gradient.iteration;
    seat->n_samples = link->frame.gradient.n_samples;
    seat->loss = link->frame.gradient.loss;
    push_mean_if_complete(v->gs);
    return NULL;
}

/* Frames for a group that is not here yet wait in the link. */
static bool
hears_visitor(void *v_, const struct link *link)
{
    const struct visitor *v = v_;

    return !v->joined || v->generation <= v->gs->generation;
}

/* Closes 'v' with a line on standard error; takes ownership of 'why'. */
static void
refuse_visitor(struct visitor *v, char *why)
{
    fprintf(stderr, "group server: %s: %s, closed\n", v->name, why);
    free(why);
    visitor_close(v->gs, v);
}

static int
visitor_wait(void *v_, short *events, int64_t *until_us)
{
    const struct visitor *v = v_;

    return link_wait(&v->link, hears_visitor(v_, &v->link), events);
}

/* The central server tells a worker that has lost its connection what to
 * do. */
static void
visitor_run(void *v_, short revents)
{
    static const struct dispatcher dispatcher = {
        .may_receive = hears_visitor,
        .handlers = {
            [FRAME_JOIN] = { begin_join, end_join },
            [FRAME_PUSH] = { begin_push, end_push },
        },
    };
    struct visitor *v = v_;
    char *error;

    if (!link_idle(&v->link)) {
        link_flush(&v->link);
    }
    switch (dispatch_frames(&v->link, &dispatcher, v, &error)) {
    case DISPATCH_AGAIN:
        break;
    case DISPATCH_CLOSED:
        free(error);
        visitor_close(v->gs, v);
        break;
    case DISPATCH_REFUSED:
        refuse_visitor(v, error);
        break;
    }
}

/* Makes 'n' entries for visitors, each a source of the loop. */
static void
reserve_visitors(struct group_server *gs, int n)
{
    static const struct event_class class = { visitor_wait, visitor_run };

    if (n <= gs->n_visitors) {
        return;
    }
    gs->visitors = reallocate(gs->visitors, n, sizeof *gs->visitors);
    while (gs->n_visitors < n) {
        struct visitor *v = allocate(1, sizeof *v);

        v->gs = gs;
        v->link.fd = -1;
        event_loop_add(&gs->loop, &class, v);
        gs->visitors[gs->n_visitors++] = v;
    }
}

/* Handles the visitors that came before their group. */
static void
hear_early_visitors(struct group_server *gs)
{
    for (int i = 0; i < gs->n_visitors; i++) {
        struct visitor *v = gs->visitors[i];
        char *error = v->link.fd >= 0 && v->joined ? take_seat(gs, v) : NULL;

        if (error) {
            refuse_visitor(v, error);
        } else if (v->link.fd >= 0) {
            visitor_run(v, 0);
        }
    }
}

/* The central server assigns a group.  It also sends the workers of the last
 * group elsewhere. */
static char *
end_group(void *gs_, struct link *link)
{
    struct group_server *gs = gs_;
    const struct frame_group *group = &link->frame.group;
    const uint8_t *ranks = link->payload;

    if (group->generation <= gs->generation || !group->n
        || !group->n_parameters || group->n_parameters > FRAME_MAX_FLOATS
        || (gs->owed && !link_idle(link))) {
        return message("group of %u workers, %"PRIu64" parameters: not "
                       "allowed", group->n, group->n_parameters);
    }
    for (int i = 0; i < gs->n_visitors; i++) {
        struct visitor *v = gs->visitors[i];

        if (v->link.fd >= 0 && v->joined
            && v->generation < group->generation) {
            visitor_close(gs, v);
        }
    }
    free_group(gs);
    gs->generation = group->generation;
    gs->n_parameters = group->n_parameters;
    gs->n_seats = group->n;
    gs->seats = allocate(gs->n_seats, sizeof *gs->seats);
    gs->mean = allocate(gs->n_parameters, sizeof *gs->mean);
    gs->weights = allocate(gs->n_parameters, sizeof *gs->weights);
    for (int i = 0; i < gs->n_seats; i++) {
        memcpy(&gs->seats[i].rank, ranks + 4 * i, 4);
        gs->seats[i].gradient = allocate(gs->n_parameters, sizeof(float));
    }
    reserve_visitors(gs, 2 * gs->n_seats + MAX_UNKNOWN);
    hear_early_visitors(gs);
    return NULL;
}

static bool
is_among(uint32_t rank, const uint8_t *ranks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!memcmp(ranks + 4 * i, &rank, 4)) {
            return true;
        }
    }
    return false;
}

static char *
end_rests(void *gs_, struct link *link)
{
    struct group_server *gs = gs_;
    const struct frame_paused *paused = &link->frame.paused;
    const uint8_t *ranks = link->payload;

    if (paused->generation != gs->generation
        || paused->n > (uint32_t) gs->n_seats) {
        return message("%u paused workers of generation %"PRIu64": not "
                       "allowed",
                       paused->n, paused->generation);
    }
    for (int i = 0; i < gs->n_seats; i++) {
        gs->seats[i].paused = is_among(gs->seats[i].rank, ranks, paused->n);
    }
    push_mean_if_complete(gs);
    return NULL;
}

/* Sends the weights to the workers that contributed to the mean gradient. */
static char *
end_weights(void *gs_, struct link *link)
{
    struct group_server *gs = gs_;

    gs->owed = false;
    for (int i = 0; i < gs->n_seats; i++) {
        struct seat *seat = &gs->seats[i];
        struct frame frame = {
            .type = FRAME_WEIGHTS,
            .weights = {
                .iteration = seat->iteration + 1, .n = gs->n_parameters,
                .loss = link->frame.weights.loss,
            },
        };
        struct visitor *v = seat->visitor;

        if (v && seat->owed && link_has_space(&v->link, 0)) {
            link_send(&v->link, &frame, gs->weights);
            link_flush(&v->link);       /* An error shows when receiving. */
        }
        seat->owed = false;
    }
    push_mean_if_complete(gs);
    return NULL;
}

/* Returns an entry for a visitor.  If all are taken, the oldest connection
 * that has not joined is closed, or the oldest if all have: a worker joins at
 * once. */
static struct visitor *
make_place(struct group_server *gs)
{
    struct visitor *oldest = NULL;

    for (int i = 0; i < gs->n_visitors; i++) {
        struct visitor *v = gs->visitors[i];

        if (v->link.fd < 0) {
            return v;
        }
        if (!oldest || (oldest->joined && !v->joined)
            || (oldest->joined == v->joined
                && v->since_us < oldest->since_us)) {
            oldest = v;
        }
    }
    visitor_close(gs, oldest);
    return oldest;
}

static int
listener_wait(void *gs_, short *events, int64_t *until_us)
{
    const struct group_server *gs = gs_;

    return gs->listener;
}

static void
listener_run(void *gs_, short revents)
{
    struct group_server *gs = gs_;
    struct link link;

    if (!link_accept(&link, gs->listener, gs->config->congestion)) {
        struct visitor *v = make_place(gs);

        v->link = link;
        v->name = address_of_peer(link.fd);
        v->since_us = clock_monotonic_us();
    }
}

/* Closes connections that have not joined in time. */
static void
expire_visitors(struct group_server *gs)
{
    int64_t now = clock_monotonic_us();

    for (int i = 0; i < gs->n_visitors; i++) {
        struct visitor *v = gs->visitors[i];

        if (v->link.fd >= 0
            && ((!v->joined && now - v->since_us > JOIN_US)
                || (!hears_visitor(v, &v->link)
                    && now - v->since_us > GROUP_US))) {
            refuse_visitor(v, duplicate("did not join"));
        }
    }
}

static char *
begin_weights(void *gs_, struct link *link)
{
    const struct group_server *gs = gs_;

    if (!gs->owed || link->frame.weights.n != gs->n_parameters) {
        return message("weights: %u values: not expected",
                       link->frame.weights.n);
    }
    link_set_payload(link, gs->weights);
    return NULL;
}

static char *
begin_ranks(void *gs, struct link *link)
{
    if (link->frame.payload_length > FRAME_MAX_UPDATE) {
        return message("%s: %zu bytes: not allowed",
                       frame_type_name(link->frame.type),
                       link->frame.payload_length);
    }
    link_keep_payload(link);
    return NULL;
}

static char *
end_bye(void *gs_, struct link *link)
{
    struct group_server *gs = gs_;

    gs->over = true;
    return NULL;
}

static bool
may_receive(void *gs_, const struct link *link)
{
    const struct group_server *gs = gs_;

    return !gs->over;
}

/* Tries to connect once.  Returns NULL or a message. */
static char *
try_central(struct group_server *gs)
{
    struct frame frame = {
        .type = FRAME_ENLIST, .enlist.pid = getpid(),
        .payload_length = strlen(gs->name),
    };
    struct pollfd writable = { .events = POLLOUT };
    int fd, status;
    char *error = address_connect(gs->config->central, &fd);

    if (error) {
        return error;
    }
    writable.fd = fd;
    status = poll(&writable, 1, 1000) > 0 ? address_connected(fd) : ETIMEDOUT;
    status = status ? status : link_tune(fd, gs->config->congestion);
    if (status) {
        close(fd);
        return message("server %s: %s", gs->config->central, strerror(status));
    }
    link_init(&gs->central, fd);
    heartbeat_start(&gs->heartbeat, gs->config->heartbeat_timeout_us,
                    clock_monotonic_us());
    link_send_copy(&gs->central, &frame, gs->name);
    link_flush(&gs->central);           /* An error shows when receiving. */
    return NULL;
}

static void
connect_central(struct group_server *gs, int64_t timeout_us)
{
    int64_t deadline = clock_monotonic_us() + timeout_us;

    while (!gs->over) {
        char *error = try_central(gs);

        if (!error) {
            return;
        }
        control_run(gs->config->control);
        if (control_ended(gs->config->control)) {
            gs->over = true;
        } else if (clock_monotonic_us() >= deadline) {
            gs->failure = error;
            gs->over = true;
            return;
        } else {
            poll(NULL, 0, RETRY_MS);
        }
        free(error);
    }
}

static int
central_wait(void *gs_, short *events, int64_t *until_us)
{
    const struct group_server *gs = gs_;

    return link_wait(&gs->central, true, events);
}

static void
central_run(void *gs_, short revents)
{
    static const struct dispatcher dispatcher = {
        .may_receive = may_receive,
        .handlers = {
            [FRAME_WEIGHTS] = { begin_weights, end_weights },
            [FRAME_GROUP] = { begin_ranks, end_group },
            [FRAME_PAUSED] = { begin_ranks, end_rests },
            [FRAME_ABORT] = { dispatch_keep_payload, dispatch_abort },
            [FRAME_BYE] = { .end = end_bye },
            [FRAME_HEARTBEAT] = { .end = dispatch_ignore },
        },
    };
    struct group_server *gs = gs_;
    uint64_t n_received = gs->central.n_received;
    char *error;

    if (!link_idle(&gs->central)) {
        link_flush(&gs->central);
    }
    switch (dispatch_frames(&gs->central, &dispatcher, gs, &error)) {
    case DISPATCH_AGAIN:
        if (gs->central.n_received != n_received) {
            heartbeat_heard(&gs->heartbeat, clock_monotonic_us());
        }
        break;
    case DISPATCH_CLOSED:
        free(error);
        clear_seats(gs);
        link_close(&gs->central);
        connect_central(gs, gs->config->reconnect_timeout_us);
        break;
    case DISPATCH_REFUSED:
        gs->failure = message("server %s: %s", gs->config->central, error);
        free(error);
        gs->over = true;
        break;
    }
    if (gs->over) {
        event_loop_break(&gs->loop);
    }
}

static void
send_heartbeat(struct group_server *gs)
{
    int64_t now = clock_monotonic_us();
    struct frame frame = { .type = FRAME_HEARTBEAT };

    if (heartbeat_due(&gs->heartbeat, now)
        && link_has_space(&gs->central, 0)) {
        link_send(&gs->central, &frame, NULL);
        link_flush(&gs->central);
    }
    if (heartbeat_is_silent(&gs->heartbeat, now)) {
        gs->failure = message("server %s: silent for %"PRId64" s",
                              gs->config->central,
                              heartbeat_silence_s(&gs->heartbeat, now));
        gs->over = true;
    }
}

static void
group_server_loop(struct group_server *gs)
{
    while (!gs->over) {
        int64_t until_us = clock_monotonic_us() + POLL_US;
        int64_t beat_us = heartbeat_next_us(&gs->heartbeat);

        if (event_loop_run(&gs->loop, beat_us < until_us ? beat_us : until_us)
            == ECANCELED) {
            break;
        }
        expire_visitors(gs);
        if (!gs->over) {
            send_heartbeat(gs);
        }
    }
}

char *
group_server_run(const struct group_server_config *config)
{
    static const struct event_class central_class = {
        central_wait, central_run,
    };
    static const struct event_class listener_class = {
        listener_wait, listener_run,
    };
    struct group_server gs = { .config = config, .listener = -1 };
    uint16_t port;
    char *error = address_listen(config->address, config->port, &gs.listener,
                                 &port);

    if (error) {
        return error;
    }
    link_init(&gs.central, -1);
    event_loop_init(&gs.loop, config->control, control_ended);
    gs.loop.input = true;
    event_loop_add(&gs.loop, &listener_class, &gs);
    event_loop_add(&gs.loop, &central_class, &gs);
    reserve_visitors(&gs, MAX_UNKNOWN);
    gs.name = message(strchr(config->address, ':') ? "[%s]:%u" : "%s:%u",
                      config->address, port);
    report_listening(config->address, port);
    connect_central(&gs, CONNECT_US);
    group_server_loop(&gs);
    clear_seats(&gs);
    gs.n_sent += gs.central.n_sent;
    gs.n_received += gs.central.n_received;
    link_close(&gs.central);
    close(gs.listener);
    for (int i = 0; i < gs.n_visitors; i++) {
        free(gs.visitors[i]);
    }
    free(gs.visitors);
    event_loop_uninit(&gs.loop);
    free(gs.name);
    if (!gs.failure) {
        report_done(&(struct report_progress){ .iteration = gs.n_steps,
                                               .loss = NAN,
                                               .accuracy = NAN },
                    gs.n_sent, gs.n_received, NAN);
    }
    return gs.failure;
}
