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

#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/link.h"
#include "trainer/process/control.h"
#include "trainer/process/report.h"

#define CONNECT_US 15000000     /* The central server must be there by then. */
#define RETRY_MS 50
#define HEARTBEAT_US 1000000    /* From one sign of life to the next. */
#define HELLO_US 10000000       /* A stranger must join in so long, and
                                 * the group be here that it joins. */
#define N_FIXED 4       /* Descriptors that are not visitors'. */
#define MAX_UNKNOWN 8   /* Visitors, more than two a seat. */

/* A worker's connection. */
struct visitor {
    struct link link;           /* Without a socket if it is unused. */
    char *name;                 /* For messages. */
    int64_t since_us;
    bool joined;
    uint64_t generation;        /* These two once it has joined. */
    uint64_t rank;
};

/* A worker's place in the group. */
struct seat {
    uint32_t rank;
    int visitor;                /* Or -1. */
    bool rests;                 /* It is not waited for. */
    bool pushed;                /* For the mean that comes next. */
    bool owed;                  /* It gets weights, for the last mean. */
    uint64_t iteration;         /* These three of its last push. */
    uint32_t n_samples;
    float loss;
    float *gradient;
};

struct group_server {
    const struct group_server_config *config;
    struct link central;
    char *name;                 /* "HOST:PORT" of ours. */
    int listener;
    struct visitor *visitors;
    struct pollfd *fds;
    int n_visitors;             /* Places for them. */

    uint64_t generation;        /* Of the group; 0: there is none yet. */
    struct seat *seats;
    int n_seats;
    bool owed;                  /* We get weights for our last mean. */
    size_t n_parameters;
    float *mean, *weights;
    uint64_t n_steps;           /* Of all groups. */
    int64_t beat_us, heard_us;  /* Heartbeats to and of the central server. */
    uint64_t n_sent, n_received;        /* Bytes, of closed connections. */
    bool over;
    char *failure;
};

static void
visitor_close(struct group_server *gs, struct visitor *v)
{
    for (int i = 0; i < gs->n_seats; i++) {
        if (gs->seats[i].visitor == v - gs->visitors) {
            gs->seats[i].visitor = -1;
        }
    }
    gs->n_sent += v->link.n_sent;
    gs->n_received += v->link.n_received;
    link_close(&v->link);
    free(v->name);
    memset(v, 0, sizeof *v);
    v->link.fd = -1;
}

static void
reserve_visitors(struct group_server *gs, int n)
{
    int old = gs->n_visitors;

    if (n <= old) {
        return;
    }
    gs->n_visitors = n;
    gs->visitors = reallocate(gs->visitors, n, sizeof *gs->visitors);
    gs->fds = reallocate(gs->fds, N_FIXED + n, sizeof *gs->fds);
    for (int i = old; i < n; i++) {
        memset(&gs->visitors[i], 0, sizeof gs->visitors[i]);
        gs->visitors[i].link.fd = -1;
    }
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
        if (gs->visitors[i].link.fd >= 0) {
            visitor_close(gs, &gs->visitors[i]);
        }
    }
    free_group(gs);
}

/* Whether nobody is waited for: one that rests has no samples in this step,
 * but if all rest there is none. */
static bool
is_complete(const struct group_server *gs)
{
    bool any = false;

    for (int i = 0; i < gs->n_seats; i++) {
        if (!gs->seats[i].pushed && !gs->seats[i].rests) {
            return false;
        }
        any = any || gs->seats[i].pushed;
    }
    return any;
}

/* The mean of those who have pushed goes to the central server.  It may get
 * there before a worker that has just woken knows that its next push is for
 * the mean after this one. */
static void
push_mean(struct group_server *gs)
{
    struct frame frame = {
        .type = FRAME_PUSH, .iteration = gs->generation,
        .sequence = ++gs->n_steps, .n = gs->n_parameters,
    };
    double loss = 0;

    for (int i = 0; i < gs->n_seats; i++) {
        struct seat *seat = &gs->seats[i];

        seat->owed = seat->pushed;
        seat->pushed = false;
        seat->n_samples = seat->owed ? seat->n_samples : 0;
        frame.samples += seat->n_samples;
        loss += (double) seat->loss * seat->n_samples;
    }
    frame.value = frame.samples ? loss / frame.samples : 0;
    memset(gs->mean, 0, gs->n_parameters * sizeof *gs->mean);
    for (int i = 0; i < gs->n_seats && frame.samples; i++) {
        float share = (double) gs->seats[i].n_samples / frame.samples;
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

/* A header has come.  Says where the body belongs, or what is wrong. */
static char *
begin_frame(struct group_server *gs, struct visitor *v)
{
    const struct frame *frame = &v->link.frame;
    struct seat *seat = find_seat(gs, v);

    if (frame->type == FRAME_JOIN && !v->joined) {
        return NULL;
    }
    if (frame->type == FRAME_PUSH && seat && !seat->pushed && !frame->first
        && frame->n == gs->n_parameters) {
        link_set_body(&v->link, seat->gradient);
        return NULL;
    }
    return message("frame of type %d, %u values from %"PRIu64": not allowed "
                   "now", frame->type, frame->n, frame->first);
}

/* Gives 'v' its seat once the group that it comes for is here. */
static char *
take_seat(struct group_server *gs, struct visitor *v)
{
    struct seat *seat = find_seat(gs, v);

    if (v->generation > gs->generation) {
        return NULL;
    }
    if (!seat || seat->visitor >= 0) {
        return message("worker %"PRIu64" of generation %"PRIu64": not of "
                       "this group", v->rank, v->generation);
    }
    seat->visitor = v - gs->visitors;
    return NULL;
}

/* A whole frame has come. */
static char *
end_frame(struct group_server *gs, struct visitor *v)
{
    const struct frame *frame = &v->link.frame;
    struct seat *seat;

    if (frame->type == FRAME_JOIN) {
        v->joined = true;
        v->generation = frame->iteration;
        v->rank = frame->first;
        return take_seat(gs, v);
    }
    seat = find_seat(gs, v);
    seat->pushed = true;
    seat->iteration = frame->iteration;
    seat->n_samples = frame->samples;
    seat->loss = frame->value;
    push_mean_if_complete(gs);
    return NULL;
}

static bool
hears_visitor(const struct group_server *gs, const struct visitor *v)
{
    return !v->joined || v->generation <= gs->generation;
}

static void
visitor_run(struct group_server *gs, struct visitor *v)
{
    while (v->link.fd >= 0 && hears_visitor(gs, v)) {
        char *error = NULL;

        switch (link_receive(&v->link, &error)) {
        case LINK_AGAIN:
            return;
        case LINK_HEADER:
            error = begin_frame(gs, v);
            break;
        case LINK_FRAME:
            error = end_frame(gs, v);
            break;
        case LINK_END:
            free(error);        /* The central server will say what next. */
            visitor_close(gs, v);
            return;
        }
        if (error) {
            fprintf(stderr, "group server: %s: %s, closed\n", v->name, error);
            free(error);
            visitor_close(gs, v);
        }
    }
}

/* Those who came for the group before it did. */
static void
hear_early_visitors(struct group_server *gs)
{
    for (int i = 0; i < gs->n_visitors; i++) {
        struct visitor *v = &gs->visitors[i];
        char *error = v->link.fd >= 0 && v->joined ? take_seat(gs, v) : NULL;

        if (error) {
            fprintf(stderr, "group server: %s: %s, closed\n", v->name, error);
            free(error);
            visitor_close(gs, v);
        }
        visitor_run(gs, v);
    }
}

/* The workers of the last group are told by the central server where to go. */
static char *
take_group(struct group_server *gs)
{
    const struct frame *frame = &gs->central.frame;
    const uint8_t *ranks = gs->central.body;

    if (frame->iteration <= gs->generation || !frame->n
        || !frame->first || frame->first > FRAME_MAX_FLOATS
        || (gs->owed && !link_idle(&gs->central))) {
        return message("group of %u workers, %"PRIu64" parameters: not "
                       "allowed", frame->n, frame->first);
    }
    for (int i = 0; i < gs->n_visitors; i++) {
        struct visitor *v = &gs->visitors[i];

        if (v->link.fd >= 0 && v->joined
            && v->generation < frame->iteration) {
            visitor_close(gs, v);
        }
    }
    free_group(gs);
    gs->generation = frame->iteration;
    gs->n_parameters = frame->first;
    gs->n_seats = frame->n;
    gs->seats = allocate(gs->n_seats, sizeof *gs->seats);
    gs->mean = allocate(gs->n_parameters, sizeof *gs->mean);
    gs->weights = allocate(gs->n_parameters, sizeof *gs->weights);
    for (int i = 0; i < gs->n_seats; i++) {
        memcpy(&gs->seats[i].rank, ranks + 4 * i, 4);
        gs->seats[i].visitor = -1;
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
take_rests(struct group_server *gs)
{
    const struct frame *frame = &gs->central.frame;
    const uint8_t *ranks = gs->central.body;

    if (frame->iteration != gs->generation
        || frame->n > (uint32_t) gs->n_seats) {
        return message("%u workers of generation %"PRIu64" rest: not allowed",
                       frame->n, frame->iteration);
    }
    for (int i = 0; i < gs->n_seats; i++) {
        gs->seats[i].rests = is_among(gs->seats[i].rank, ranks, frame->n);
    }
    push_mean_if_complete(gs);
    return NULL;
}

static void
give_weights(struct group_server *gs)
{
    gs->owed = false;
    for (int i = 0; i < gs->n_seats; i++) {
        struct seat *seat = &gs->seats[i];
        struct frame frame = {
            .type = FRAME_WEIGHTS, .iteration = seat->iteration + 1,
            .n = gs->n_parameters, .value = gs->central.frame.value,
        };
        struct visitor *v = seat->visitor < 0 ? NULL
                            : &gs->visitors[seat->visitor];

        if (v && seat->owed && link_has_room(&v->link, 0)) {
            link_send(&v->link, &frame, gs->weights);
            link_flush(&v->link);       /* An error shows when receiving. */
        }
        seat->owed = false;
    }
    push_mean_if_complete(gs);
}

static struct visitor *
unused_visitor(struct group_server *gs)
{
    for (int i = 0; i < gs->n_visitors; i++) {
        if (gs->visitors[i].link.fd < 0) {
            return &gs->visitors[i];
        }
    }
    return NULL;
}

static void
accept_visitor(struct group_server *gs, struct visitor *v)
{
    int fd = accept4(gs->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0) {
        return;
    }
    if (link_tune(fd, gs->config->congestion)) {
        close(fd);
        return;
    }
    link_init(&v->link, fd);
    v->name = address_peer(fd);
    v->since_us = report_monotonic_us();
}

static void
run_visitors(struct group_server *gs)
{
    int64_t now = report_monotonic_us();

    for (int i = 0; i < gs->n_visitors; i++) {
        struct visitor *v = &gs->visitors[i];

        if (v->link.fd < 0 || v->link.fd != gs->fds[N_FIXED + i].fd) {
            continue;
        }
        if (gs->fds[N_FIXED + i].revents) {
            if (!link_idle(&v->link)) {
                link_flush(&v->link);
            }
            visitor_run(gs, v);
        } else if ((!v->joined || !hears_visitor(gs, v))
                   && now - v->since_us > HELLO_US) {
            fprintf(stderr, "group server: %s: did not join, closed\n",
                    v->name);
            visitor_close(gs, v);
        }
    }
}

static char *
begin_answer(struct group_server *gs)
{
    const struct frame *frame = &gs->central.frame;

    switch (frame->type) {
    case FRAME_WEIGHTS:
        if (gs->owed && frame->n == gs->n_parameters) {
            link_set_body(&gs->central, gs->weights);
            return NULL;
        }
        break;
    case FRAME_GROUP:
    case FRAME_RESTS:
    case FRAME_ABORT:
        if (frame->body_length <= FRAME_MAX_UPDATE) {
            link_keep_body(&gs->central);
            return NULL;
        }
        break;
    case FRAME_BYE:
    case FRAME_HEARTBEAT:
        return NULL;
    default:
        break;
    }
    return message("frame of type %d, %u values: not expected", frame->type,
                   frame->n);
}

static char *
end_answer(struct group_server *gs)
{
    const struct frame *frame = &gs->central.frame;
    char *error = NULL;

    gs->heard_us = report_monotonic_us();
    switch (frame->type) {
    case FRAME_WEIGHTS:
        give_weights(gs);
        break;
    case FRAME_GROUP:
        error = take_group(gs);
        break;
    case FRAME_RESTS:
        error = take_rests(gs);
        break;
    case FRAME_ABORT:
        error = message("%.*s", (int) frame->body_length,
                        (const char *) gs->central.body);
        break;
    case FRAME_BYE:
        gs->over = true;
        break;
    default:
        break;
    }
    return error;
}

/* Returns false when the connection has ended. */
static bool
central_run(struct group_server *gs)
{
    while (!gs->over) {
        char *error = NULL;

        switch (link_receive(&gs->central, &error)) {
        case LINK_AGAIN:
            return true;
        case LINK_HEADER:
            error = begin_answer(gs);
            break;
        case LINK_FRAME:
            error = end_answer(gs);
            break;
        case LINK_END:
            free(error);
            return false;
        }
        if (error) {
            gs->failure = message("server %s: %s", gs->config->central,
                                  error);
            free(error);
            gs->over = true;
        }
    }
    return true;
}

static void
beat(struct group_server *gs)
{
    int64_t now = report_monotonic_us();
    struct frame frame = { .type = FRAME_HEARTBEAT };

    if (now - gs->beat_us >= HEARTBEAT_US && link_has_room(&gs->central, 0)) {
        gs->beat_us = now;
        link_send(&gs->central, &frame, NULL);
        link_flush(&gs->central);
    }
    if (gs->config->deadline_us
        && now - gs->heard_us > gs->config->deadline_us) {
        gs->failure = message("server %s: silent for %"PRId64" s",
                              gs->config->central,
                              (now - gs->heard_us) / 1000000);
        gs->over = true;
    }
}

/* The loop. */

/* One attempt to connect.  NULL, or why not. */
static char *
try_central(struct group_server *gs)
{
    struct frame frame = {
        .type = FRAME_ENLIST, .first = getpid(),
        .body_length = strlen(gs->name),
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
        return message("server %s: %s", gs->config->central,
                       strerror(status));
    }
    link_init(&gs->central, fd);
    gs->beat_us = gs->heard_us = report_monotonic_us();
    link_send_copy(&gs->central, &frame, gs->name);
    link_flush(&gs->central);           /* An error shows when receiving. */
    return NULL;
}

static void
connect_central(struct group_server *gs, int64_t timeout_us)
{
    int64_t deadline = report_monotonic_us() + timeout_us;

    for (;;) {
        char *error = try_central(gs);

        if (!error) {
            return;
        }
        control_run(gs->config->control);
        if (control_ended(gs->config->control)) {
            free(error);
            gs->over = true;
            return;
        }
        if (report_monotonic_us() >= deadline) {
            gs->failure = error;
            gs->over = true;
            return;
        }
        free(error);
        poll(NULL, 0, RETRY_MS);
    }
}

static void
fill_fds(struct group_server *gs)
{
    struct control *control = gs->config->control;
    struct pollfd *fds = gs->fds;

    fds[0].fd = control_signal_fd(control);
    fds[1].fd = control_input_fd(control);
    fds[2].fd = unused_visitor(gs) ? gs->listener : -1;
    for (int i = 0; i < 3; i++) {
        fds[i].events = POLLIN;
    }
    fds[3].fd = gs->central.fd;
    fds[3].events = link_events(&gs->central);
    for (int i = 0; i < gs->n_visitors; i++) {
        const struct visitor *v = &gs->visitors[i];

        fds[N_FIXED + i].fd = v->link.fd;
        fds[N_FIXED + i].events = link_events(&v->link);
        if (!hears_visitor(gs, v)) {
            fds[N_FIXED + i].events &= ~POLLIN;
        }
    }
}

static void
loop(struct group_server *gs)
{
    struct control *control = gs->config->control;

    while (!gs->over) {
        fill_fds(gs);
        if (poll(gs->fds, N_FIXED + gs->n_visitors, 500) < 0) {
            continue;           /* The descriptors say nothing. */
        }
        if (gs->fds[0].revents || gs->fds[1].revents) {
            control_run(control);
        }
        if (control_ended(control)) {
            break;
        }
        run_visitors(gs);
        if (gs->fds[2].revents) {
            accept_visitor(gs, unused_visitor(gs));
        }
        if (gs->fds[3].revents) {
            if (!link_idle(&gs->central)) {
                link_flush(&gs->central);
            }
            if (!central_run(gs)) {
                clear_seats(gs);
                link_close(&gs->central);
                connect_central(gs, gs->config->patience_us);
            }
        }
        if (!gs->over) {
            beat(gs);
        }
    }
}

char *
group_server_run(const struct group_server_config *config)
{
    struct group_server gs = { .config = config, .listener = -1 };
    uint16_t port;
    char *error = address_listen(config->address, config->port, &gs.listener,
                                 &port);

    if (error) {
        return error;
    }
    link_init(&gs.central, -1);
    reserve_visitors(&gs, MAX_UNKNOWN);
    gs.name = message(strchr(config->address, ':') ? "[%s]:%u" : "%s:%u",
                      config->address, port);
    report_listening(config->address, port);
    connect_central(&gs, CONNECT_US);
    loop(&gs);
    clear_seats(&gs);
    gs.n_sent += gs.central.n_sent;
    gs.n_received += gs.central.n_received;
    link_close(&gs.central);
    close(gs.listener);
    free(gs.visitors);
    free(gs.fds);
    free(gs.name);
    if (!gs.failure) {
        report_done(&(struct report_progress) {
            .iteration = gs.n_steps, .loss = NAN, .accuracy = NAN,
        }, gs.n_sent, gs.n_received);
    }
    return gs.failure;
}
