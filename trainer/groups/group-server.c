/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/groups/group-server-private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/process/report.h"

#define CONNECT_US 15000000     /* The central server must be there by then. */
#define RETRY_MS 50
#define HEARTBEAT_US 1000000    /* From one sign of life to the next. */

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
        group_seats_give_weights(gs);
        break;
    case FRAME_GROUP:
        error = group_seats_take_group(gs);
        break;
    case FRAME_RESTS:
        error = group_seats_take_rests(gs);
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
    fds[2].fd = group_seats_unused(gs) ? gs->listener : -1;
    for (int i = 0; i < 3; i++) {
        fds[i].events = POLLIN;
    }
    fds[3].fd = gs->central.fd;
    fds[3].events = link_events(&gs->central);
    for (int i = 0; i < gs->n_visitors; i++) {
        const struct visitor *v = &gs->visitors[i];

        fds[GROUP_FIXED_FDS + i].fd = v->link.fd;
        fds[GROUP_FIXED_FDS + i].events = link_events(&v->link);
        if (!group_seats_hears(gs, v)) {
            fds[GROUP_FIXED_FDS + i].events &= ~POLLIN;
        }
    }
}

static void
loop(struct group_server *gs)
{
    struct control *control = gs->config->control;

    while (!gs->over) {
        fill_fds(gs);
        if (poll(gs->fds, GROUP_FIXED_FDS + gs->n_visitors, 500) < 0) {
            continue;           /* The descriptors say nothing. */
        }
        if (gs->fds[0].revents || gs->fds[1].revents) {
            control_run(control);
        }
        if (control_ended(control)) {
            break;
        }
        group_seats_run(gs);
        if (gs->fds[2].revents) {
            group_seats_accept(gs, group_seats_unused(gs));
        }
        if (gs->fds[3].revents) {
            if (!link_idle(&gs->central)) {
                link_flush(&gs->central);
            }
            if (!central_run(gs)) {
                group_seats_clear(gs);
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
    group_seats_reserve(&gs, GROUP_MAX_STRANGERS);
    gs.name = message(strchr(config->address, ':') ? "[%s]:%u" : "%s:%u",
                      config->address, port);
    report_listening(config->address, port);
    connect_central(&gs, CONNECT_US);
    loop(&gs);
    group_seats_clear(&gs);
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
