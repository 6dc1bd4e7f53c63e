/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/process/report.h"

#define RETRY_MS 50

void
channel_init(struct channel *ch, const char *name,
             const struct frame_hello *hello, const char *congestion,
             struct control *control)
{
    memset(ch, 0, sizeof *ch);
    link_init(&ch->link, -1);
    ch->name = duplicate(name);
    ch->congestion = congestion;
    ch->control = control;
    ch->hello = *hello;
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
channel_close(struct channel *ch)
{
    link_close(&ch->link);
}

void
channel_end(struct channel *ch)
{
    if (ch->link.fd >= 0 && link_idle(&ch->link)) {
        struct frame frame = { .type = FRAME_BYE };

        link_send(&ch->link, &frame, NULL);
        link_flush(&ch->link);
    }
    channel_close(ch);
    free(ch->name);
    ch->name = NULL;
}

int
channel_wait(struct control *control, int fd, short events, int64_t deadline)
{
    struct pollfd fds[2] = {
        { .fd = control ? control_signal_fd(control) : -1, .events = POLLIN },
        { .fd = fd, .events = events },
    };

    for (;;) {
        int64_t left = deadline - report_monotonic_us();

        if (control) {
            control_run(control);
            if (control_stopped(control)) {
                return EINTR;
            }
        }
        if (fds[1].revents) {
            return 0;
        }
        if (left <= 0) {
            return ETIMEDOUT;
        }
        poll(fds, 2, left / 1000 + 1);
    }
}

/* One attempt to connect.  '*final' is set if another one is no use. */
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
    ch->link.n_sent = n_sent;           /* Those of all connections. */
    ch->link.n_received = n_received;
    return status ? channel_failure(ch, duplicate(strerror(status))) : NULL;
}

/* Receives one frame of 'n' bytes at most into 'body'. */
static char *
receive_frame(struct channel *ch, void *body, size_t n, int64_t deadline,
              bool *final)
{
    for (;;) {
        char *error;

        switch (link_receive(&ch->link, &error)) {
        case LINK_HEADER:
            if (ch->link.frame.body_length > n) {
                return duplicate("unexpected frame");
            }
            link_set_body(&ch->link, body);
            break;
        case LINK_FRAME:
            return NULL;
        case LINK_END:
            return error ? error : duplicate("closed the connection");
        case LINK_AGAIN: {
            int status = channel_wait(ch->control, ch->link.fd, POLLIN,
                                      deadline);

            if (status) {
                *final = status == EINTR;
                return duplicate(strerror(status));
            }
            break;
        }
        }
    }
}

/* Says hello and waits for the welcome. */
static char *
try_hello(struct channel *ch, int64_t deadline, bool *final)
{
    struct frame frame = { .type = FRAME_HELLO };
    uint8_t body[FRAME_HELLO_LENGTH], answer[FRAME_MAX_TEXT + 1];
    char *error;

    frame_hello_encode(&ch->hello, body);
    link_send_copy(&ch->link, &frame, body);
    link_flush(&ch->link);              /* An error shows when receiving. */
    error = receive_frame(ch, answer, FRAME_MAX_TEXT, deadline, final);
    if (error) {
        return channel_failure(ch, error);
    }
    *final = true;
    switch (ch->link.frame.type) {
    case FRAME_WELCOME:
        error = frame_welcome_decode(answer, &ch->welcome);
        ch->hello.epoch = ch->welcome.epoch;
        return error ? channel_failure(ch, error) : NULL;
    case FRAME_ABORT:
        answer[ch->link.frame.body_length] = '\0';
        return channel_failure(ch, duplicate((char *) answer));
    default:
        return channel_failure(ch, duplicate("did not answer a hello"));
    }
}

char *
channel_open(struct channel *ch, int64_t timeout_us)
{
    int64_t deadline = report_monotonic_us() + timeout_us;
    char *last = NULL;          /* Says more than that time is over. */

    for (;;) {
        bool final;
        char *error;

        channel_close(ch);
        error = try_connect(ch, deadline, &final);
        if (!error) {
            error = try_hello(ch, deadline, &final);
        }
        if (!error) {
            free(last);
            return NULL;
        }
        channel_close(ch);
        if (report_monotonic_us() >= deadline && last) {
            free(error);
            return last;
        }
        free(last);
        last = error;
        if (final || report_monotonic_us() >= deadline) {
            return last;
        }
        poll(NULL, 0, RETRY_MS);
    }
}
