/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/group-link.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/dispatch.h"

struct group_link *
group_link_create(int rank, const char *congestion)
{
    struct group_link *gl = allocate(1, sizeof *gl);

    link_init(&gl->link, -1);
    gl->rank = rank;
    gl->congestion = congestion;
    return gl;
}

static void
close_group_link(struct group_link *gl)
{
    gl->n_sent += gl->link.n_sent;
    gl->n_received += gl->link.n_received;
    link_close(&gl->link);
    link_init(&gl->link, -1);
    gl->connecting = false;
}

void
group_link_destroy(struct group_link *gl)
{
    if (gl) {
        close_group_link(gl);
        free(gl);
    }
}

static void
send_push(struct group_link *gl)
{
    if (gl->push.type) {
        transfers_begin(&gl->transfers, gl->link.fd);
        link_send(&gl->link, &gl->push, gl->gradient);
        link_flush(&gl->link);          /* An error shows when receiving. */
    }
}

/* An error is seen when the link is run. */
static void
begin_connection(struct group_link *gl)
{
    int fd;
    char *error = address_connect(gl->address, &fd);

    free(error);
    if (!error) {
        link_init(&gl->link, fd);
        gl->connecting = true;
    }
}

void
group_link_move(struct group_link *gl, uint64_t generation,
                const char *address, size_t n, bool counted)
{
    close_group_link(gl);
    gl->generation = generation;
    gl->lost = false;
    snprintf(gl->address, sizeof gl->address, "%.*s", (int) n, address);
    if (counted) {
        gl->push.type = 0;
    }
    if (gl->push.type) {
        begin_connection(gl);
    }
}

void
group_link_push(struct group_link *gl, const struct frame *push,
                const float *gradient)
{
    gl->push = *push;
    gl->gradient = gradient;
    if (gl->link.fd >= 0 && !gl->connecting) {
        send_push(gl);
    } else if (gl->link.fd < 0 && !gl->lost) {
        begin_connection(gl);
    }
}

int
group_link_wait(const struct group_link *gl, short *events, int64_t *until_us)
{
    if (gl->link.fd < 0 && !gl->lost && gl->push.type) {
        *until_us = 0;
    }
    link_wait(&gl->link, true, events);
    if (gl->connecting) {
        *events = POLLOUT;
    }
    return gl->link.fd;
}

static enum group_link_state
lose_group_link(struct group_link *gl)
{
    bool known = gl->lost;

    close_group_link(gl);
    gl->lost = true;
    return known ? GROUP_LINK_AGAIN : GROUP_LINK_LOST;
}

/* Joins the group if the connection is there.  Returns false if it failed. */
static bool
connect_run(struct group_link *gl)
{
    struct frame join = {
        .type = FRAME_JOIN,
        .join = { .generation = gl->generation, .rank = gl->rank },
    };
    struct pollfd fd = { .fd = gl->link.fd, .events = POLLOUT };

    if (poll(&fd, 1, 0) <= 0) {
        return true;
    }
    if (address_connected(gl->link.fd)
        || link_tune(gl->link.fd, gl->congestion)) {
        return false;
    }
    gl->connecting = false;
    link_send(&gl->link, &join, NULL);
    link_flush(&gl->link);              /* An error shows when receiving. */
    send_push(gl);
    return true;
}

static bool
may_receive(void *gl_, const struct link *link)
{
    const struct group_link *gl = gl_;

    return !gl->answered;
}

static char *
begin_weights(void *gl_, struct link *link)
{
    const struct frame_weights *w = &link->frame.weights;
    struct group_link *gl = gl_;

    if (!gl->push.type || !gl->weights || w->first
        || w->n != gl->push.gradient.n
        || w->iteration != gl->push.gradient.iteration + 1) {
        return message("weights: %u values of iteration %llu: not expected",
                       w->n, (unsigned long long) w->iteration);
    }
    transfers_header(&gl->transfers, link->fd);
    link_set_payload(link, gl->weights);
    return NULL;
}

static char *
end_weights(void *gl_, struct link *link)
{
    struct group_link *gl = gl_;

    transfers_end(&gl->transfers, link->fd);
    gl->push.type = 0;
    gl->answered = true;
    return NULL;
}

enum group_link_state
group_link_run(struct group_link *gl, float *weights, char **errorp)
{
    static const struct dispatcher dispatcher = {
        .may_receive = may_receive,
        .handlers = { [FRAME_WEIGHTS] = { begin_weights, end_weights } },
    };
    char *error;

    gl->weights = weights;
    gl->answered = false;
    if (gl->link.fd < 0 || (gl->connecting && !connect_run(gl))) {
        return lose_group_link(gl);
    }
    if (gl->connecting) {
        return GROUP_LINK_AGAIN;
    }
    if (!link_idle(&gl->link)) {
        link_flush(&gl->link);          /* An error shows when receiving. */
    }
    switch (dispatch_frames(&gl->link, &dispatcher, gl, &error)) {
    case DISPATCH_CLOSED:
        free(error);
        return lose_group_link(gl);
    case DISPATCH_REFUSED:
        *errorp = message("group server %s: %s", gl->address, error);
        free(error);
        return GROUP_LINK_WRONG;
    default:
        return gl->answered ? GROUP_LINK_ANSWER : GROUP_LINK_AGAIN;
    }
}
