/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/dispatch.h"
#include "trainer/net/server-watch.h"
#include "trainer/process/control.h"

#define RETRY_MS 50

void
channel_init(struct channel *ch, const char *name,
             const struct frame_hello *hello, const char *congestion,
             struct control *control, struct server_watch *watch)
{
    *ch = (struct channel){ .link.fd = -1,
                            .name = duplicate(name),
                            .congestion = congestion,
                            .control = control,
                            .watch = watch,
                            .hello = *hello };
    ch->hello.epoch = ch->hello.rewind = FRAME_NONE;
}

char *
channel_failure(const struct channel *ch, char *why)
{
    char *error = message("server %s: %s", ch->name, why);

    free(why);
    return error;
}

void
channel_end(struct channel *ch)
{
    if (ch->link.fd >= 0 && !link_flush(&ch->link) && link_idle(&ch->link)) {
        struct frame frame = { .type = FRAME_BYE };

        link_send(&ch->link, &frame, NULL);
        link_flush(&ch->link);
    }
    link_close(&ch->link);
    free(ch->name);
    ch->name = NULL;
}

/* Waits for 'events' of 'fd' until 'until_us'.  Returns 0 or an errno:
 * ECANCELED if 'control' was stopped. */
static int
channel_wait(struct control *control, int fd, short events, int64_t until_us)
{
    struct pollfd fds[] = {
        { .fd = fd, .events = events },
        { .fd = control ? control_signal_fd(control) : -1, .events = POLLIN },
    };

    while (!fds[0].revents) {
        int64_t left_us = until_us - clock_monotonic_us();

        if (left_us <= 0) {
            return ETIMEDOUT;
        }
        if (poll(fds, 2, left_us / 1000 + 1) < 0 && errno != EINTR) {
            return errno;
        }
        if (fds[1].revents) {
            control_run(control);
            if (control_stopped(control)) {
                return ECANCELED;
            }
        }
    }
    return 0;
}

/* Receives one frame, of 'type', which is then in the link.  Returns NULL or a
 * message: the text of a FRAME_ABORT, or what was wrong.  Sets '*final' if
 * another attempt is of no use, or if the control was stopped. */
static char *
channel_await(struct control *control, struct link *link,
              enum frame_type type, int64_t until_us, bool *final)
{
    struct dispatch_awaited awaited = { .done = false };
    char *error;

    while (dispatch_await(link, type, &awaited, &error) == DISPATCH_AGAIN) {
        int status;

        if (awaited.done) {
            *final = awaited.refusal;
            return awaited.refusal;
        }
        status = channel_wait(control, link->fd, POLLIN, until_us);
        if (status) {
            *final = status == ECANCELED;
            return duplicate(strerror(status));
        }
    }
    return error ? error : duplicate("closed the connection");
}

/* Tries to connect once.  Sets '*final' if another attempt is of no use. */
static char *
try_connect(struct channel *ch, int64_t deadline, bool *final)
{
    uint64_t n_sent = ch->link.n_sent, n_received = ch->link.n_received;
    char *error;
    int fd, status;

    *final = true;
    error = address_connect(ch->name, &fd);
    if (error) {
        return error;
    }
    status = channel_wait(ch->control, fd, POLLOUT, deadline);
    *final = status != 0;
    status = status ? status : address_connected(fd);
    status = status ? status : link_tune(fd, ch->congestion);
    link_init(&ch->link, fd);
    ch->link.n_sent = n_sent;   /* Of all connections so far. */
    ch->link.n_received = n_received;
    return status ? channel_failure(ch, duplicate(strerror(status))) : NULL;
}

/* Sends the hello and waits for the welcome. */
static char *
try_hello(struct channel *ch, int64_t deadline, bool *final)
{
    struct frame frame = { .type = FRAME_HELLO, .hello = ch->hello };
    char *error;

    link_send(&ch->link, &frame, NULL);
    link_flush(&ch->link);              /* An error shows when receiving. */
    error = channel_await(ch->control, &ch->link, FRAME_WELCOME, deadline,
                          final);
    if (error) {
        return channel_failure(ch, error);
    }
    ch->welcome = ch->link.frame.welcome;
    ch->hello.epoch = ch->welcome.epoch;
    if (ch->watch) {
        server_watch_set(ch->watch, ch->hello.shard, &ch->hello,
                         ch->welcome.control_port);
    }
    return NULL;
}

char *
channel_open(struct channel *ch, int64_t timeout_us)
{
    int64_t deadline = clock_monotonic_us() + timeout_us;
    char *last = NULL;          /* Previous error: better than a timeout. */

    link_close(&ch->link);
    for (;;) {
        bool final;
        char *error = try_connect(ch, deadline, &final);

        if (!error) {
            error = try_hello(ch, deadline, &final);
        }
        if (!error) {
            free(last);
            return NULL;
        }
        link_close(&ch->link);
        if (clock_monotonic_us() >= deadline && last) {
            free(error);
            return last;
        }
        free(last);
        last = error;
        if (final || clock_monotonic_us() >= deadline) {
            return last;
        }
        poll(NULL, 0, RETRY_MS);
    }
}
