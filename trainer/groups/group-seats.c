/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/groups/group-server-private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/process/report.h"

#define HELLO_US 10000000       /* A stranger must join in so long, and
                                 * the group be here that it joins. */

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

void
group_seats_reserve(struct group_server *gs, int n)
{
    int old = gs->n_visitors;

    if (n <= old) {
        return;
    }
    gs->n_visitors = n;
    gs->visitors = reallocate(gs->visitors, n, sizeof *gs->visitors);
    gs->fds = reallocate(gs->fds, GROUP_FIXED_FDS + n, sizeof *gs->fds);
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

void
group_seats_clear(struct group_server *gs)
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

bool
group_seats_hears(const struct group_server *gs, const struct visitor *v)
{
    return !v->joined || v->generation <= gs->generation;
}

static void
visitor_run(struct group_server *gs, struct visitor *v)
{
    while (v->link.fd >= 0 && group_seats_hears(gs, v)) {
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
char *
group_seats_take_group(struct group_server *gs)
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
    group_seats_reserve(gs, 2 * gs->n_seats + GROUP_MAX_STRANGERS);
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

char *
group_seats_take_rests(struct group_server *gs)
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

void
group_seats_give_weights(struct group_server *gs)
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

struct visitor *
group_seats_unused(struct group_server *gs)
{
    for (int i = 0; i < gs->n_visitors; i++) {
        if (gs->visitors[i].link.fd < 0) {
            return &gs->visitors[i];
        }
    }
    return NULL;
}

void
group_seats_accept(struct group_server *gs, struct visitor *v)
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

void
group_seats_run(struct group_server *gs)
{
    int64_t now = report_monotonic_us();

    for (int i = 0; i < gs->n_visitors; i++) {
        struct visitor *v = &gs->visitors[i];

        if (v->link.fd < 0 || v->link.fd != gs->fds[GROUP_FIXED_FDS + i].fd) {
            continue;
        }
        if (gs->fds[GROUP_FIXED_FDS + i].revents) {
            if (!link_idle(&v->link)) {
                link_flush(&v->link);
            }
            visitor_run(gs, v);
        } else if ((!v->joined || !group_seats_hears(gs, v))
                   && now - v->since_us > HELLO_US) {
            fprintf(stderr, "group server: %s: did not join, closed\n",
                    v->name);
            visitor_close(gs, v);
        }
    }
}
