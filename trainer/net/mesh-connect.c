/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/mesh-connect.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/dispatch.h"
#include "trainer/net/event-loop.h"
#include "trainer/net/heartbeat.h"
#include "trainer/net/link.h"
#include "trainer/net/mesh.h"
#include "trainer/process/control.h"

#define HELLO_US 1000000   /* Time limit for a hello. */
#define MIN_RETRY_US 50000 /* Of the first failure; it doubles. */
#define MAX_RETRY_US 1000000
#define MAX_NAMED 4 /* Missing peers that an error names. */

/* Lower ranks, and places for guests: at least as many as peers. */
#define N_GREETINGS (2 * PEER_NET_MAX)

/* A connection on which the hello or the welcome is missing. */
struct greeting {
    struct meeting *meeting;
    int rank; /* Of a lower rank, or -1: not known yet. */
    struct link link;
    bool connected; /* The kernel has connected it. */
    struct dispatch_awaited awaited;
    int64_t until_us; /* When to connect again, while there is no
                       * connection; when to close, without a
                       * hello. */
    int64_t retry_us; /* Delay after the next failure. */
};

struct meeting {
    const struct peer_net_config *config;
    struct link *const *links;
    int listener;
    struct greeting greetings[N_GREETINGS]; /* Lower ranks, then places for
                                             * guests. */
    int n_missing;
    int64_t until_us;           /* For the next peer to connect. */
    struct heartbeat heartbeat; /* When to send heartbeats to those that have
                                 * connected. */
    char *error;
};

static void
fail(struct meeting *m, char *error)
{
    if (m->error) {
        free(error);
    } else {
        m->error = error;
    }
}

/* Makes the link of 'g' the link of 'rank'. */
static void
seat(struct greeting *g, int rank)
{
    struct meeting *m = g->meeting;

    *m->links[rank] = g->link;
    link_init(&g->link, -1);
    m->n_missing--;
    m->until_us = clock_monotonic_us() + m->config->connect_us;
}

/* Returns false if the connection is of no use. */
static bool
receive(struct greeting *g, enum frame_type type, char **errorp)
{
    return dispatch_await(&g->link, type, &g->awaited, errorp)
           == DISPATCH_AGAIN;
}

/* Closes a connection to a lower rank, which may not run yet. */
static void
retry_later(struct greeting *g)
{
    link_close(&g->link);
    g->until_us = clock_monotonic_us() + g->retry_us;
    g->retry_us =
        2 * g->retry_us < MAX_RETRY_US ? 2 * g->retry_us : MAX_RETRY_US;
}

static void
begin_call(struct greeting *g)
{
    struct meeting *m = g->meeting;
    char *error;
    int fd;

    error = address_connect(m->config->names[g->rank], &fd);
    if (error) {
        fail(m, error);
        return;
    }
    link_init(&g->link, fd);
    g->connected = false;
}

/* Sends the hello when the kernel has connected. */
static void
say_hello(struct greeting *g)
{
    const struct peer_net_config *c = g->meeting->config;
    struct frame frame = { .type = FRAME_HELLO, .hello = c->hello };

    frame.hello.shard = g->rank;
    frame.hello.epoch = frame.hello.rewind = FRAME_NONE;
    g->connected = true;
    if (address_connected(g->link.fd)
        || link_tune(g->link.fd, c->congestion)) {
        retry_later(g);
    } else {
        link_send(&g->link, &frame, NULL);
        link_flush(&g->link); /* An error shows when receiving. */
    }
}

static int
call_wait(void *g_, short *events, int64_t *until_us)
{
    const struct greeting *g = g_;

    if (g->link.fd < 0 && !g->awaited.done) {
        *until_us = g->until_us;
    }
    *events = g->connected ? POLLIN : POLLOUT;
    return g->link.fd;
}

static void
call_run(void *g_, short revents)
{
    struct greeting *g = g_;
    char *error = NULL;

    if (g->link.fd < 0) {
        begin_call(g);
    } else if (!g->connected) {
        say_hello(g);
    } else if (!receive(g, FRAME_WELCOME, &error)) {
        free(error);
        retry_later(g);
    } else if (g->awaited.refusal) {
        fail(g->meeting,
             message("peer %d (%s): %s", g->rank,
                     g->meeting->config->names[g->rank], g->awaited.refusal));
    } else if (g->awaited.done) {
        seat(g, g->rank);
    }
}

/* Returns NULL if 'theirs' is of an expected peer, otherwise a message. */
static char *
check_hello(const struct meeting *m, const struct frame_hello *theirs)
{
    const struct peer_net_config *c = m->config;

    if (!frame_hello_agrees(theirs, &c->hello)) {
        return message("rank %u trains something else than rank %d",
                       theirs->rank, c->rank);
    }
    if (theirs->shard != c->rank) {
        return message("this is rank %d, not %u", c->rank, theirs->shard);
    }
    if (theirs->rank <= c->rank || m->links[theirs->rank]->fd >= 0) {
        return message("rank %u was not expected", theirs->rank);
    }
    return NULL;
}

static void
refuse(struct greeting *g, const char *why)
{
    struct frame frame = { .type = FRAME_ABORT,
                           .payload_length = strlen(why) };

    link_send_copy(&g->link, &frame, why);
    link_flush(&g->link);
    link_close(&g->link);
}

/* A peer that trains something else is an error. */
static void
welcome(struct greeting *g)
{
    struct frame frame = { .type = FRAME_WELCOME };
    struct meeting *m = g->meeting;
    int rank = g->link.frame.hello.rank;
    char *error = check_hello(m, &g->link.frame.hello);

    if (error) {
        refuse(g, error);
        fail(m, error);
        return;
    }
    seat(g, rank);
    link_send(m->links[rank], &frame, NULL);
    link_flush(m->links[rank]);
}

static int
guest_wait(void *g_, short *events, int64_t *until_us)
{
    const struct greeting *g = g_;

    if (g->link.fd >= 0) {
        *until_us = g->until_us;
    }
    return g->link.fd;
}

/* A peer that was too slow connects again; a connection of another program
 * gets an error. */
static void
guest_run(void *g_, short revents)
{
    struct greeting *g = g_;
    char *error = NULL;

    if (!receive(g, FRAME_HELLO, &error) || g->awaited.refusal) {
        refuse(g, error ? error : "closed the connection");
        free(error);
    } else if (g->awaited.done) {
        welcome(g);
    } else if (clock_monotonic_us() >= g->until_us) {
        link_close(&g->link);
    }
}

/* Returns a place for a guest.  If all are taken, the oldest guest loses its
 * own: a peer sends its hello at once. */
static struct greeting *
make_place(struct meeting *m)
{
    struct greeting *oldest = NULL;

    for (int i = m->config->rank; i < N_GREETINGS; i++) {
        struct greeting *g = &m->greetings[i];

        if (g->link.fd < 0) {
            return g;
        }
        if (!oldest || g->until_us < oldest->until_us) {
            oldest = g;
        }
    }
    link_close(&oldest->link);
    return oldest;
}

static int
listener_wait(void *m_, short *events, int64_t *until_us)
{
    const struct meeting *m = m_;

    return m->listener;
}

static void
listener_run(void *m_, short revents)
{
    struct meeting *m = m_;
    struct link link;

    if (!link_accept(&link, m->listener, m->config->congestion)) {
        struct greeting *g = make_place(m);

        g->link = link;
        free(g->awaited.refusal);
        g->awaited = (struct dispatch_awaited){ .done = false };
        g->until_us = clock_monotonic_us() + HELLO_US;
    }
}

/* Returns the message that names missing peers. */
static char *
missing(const struct meeting *m)
{
    const struct peer_net_config *c = m->config;
    int n_named = 0;
    char *text = NULL;
    size_t size;
    FILE *stream = must(open_memstream(&text, &size));

    fprintf(stream, "%d of %d peers did not connect", m->n_missing, c->n - 1);
    for (int i = 0; i < c->n && n_named < MAX_NAMED; i++) {
        if (i != c->rank && m->links[i]->fd < 0) {
            fprintf(stream, "%s %d (%s)", n_named++ ? "," : ":", i,
                    c->names[i]);
        }
    }
    fprintf(stream, "%s, and none for %g s",
            m->n_missing > n_named ? ", ..." : "", c->connect_us * 1e-6);
    fclose(stream);
    return must(text);
}

/* Sends the heartbeats that are due: a peer that has all its connections
 * already watches the others for silence.  Returns until when to wait. */
static int64_t
send_heartbeats(struct meeting *m)
{
    struct frame frame = { .type = FRAME_HEARTBEAT };
    int64_t next_us;

    if (!m->heartbeat.timeout_us) {
        return m->until_us;
    }
    if (heartbeat_due(&m->heartbeat, clock_monotonic_us())) {
        for (int i = 0; i < m->config->n; i++) {
            if (m->links[i]->fd >= 0 && link_idle(m->links[i])) {
                link_send(m->links[i], &frame, NULL);
                link_flush(m->links[i]); /* An error shows later. */
            }
        }
    }
    next_us = heartbeat_next_us(&m->heartbeat);
    return next_us < m->until_us ? next_us : m->until_us;
}

static void
meet(struct meeting *m, struct event_loop *loop)
{
    m->until_us = clock_monotonic_us() + m->config->connect_us;
    m->heartbeat.timeout_us = m->config->heartbeat_timeout_us;
    while (m->n_missing && !m->error) {
        int status = event_loop_run(loop, send_heartbeats(m));

        if (status == ECANCELED) {
            fail(m, message("stopped before all peers had connected"));
        } else if (status) {
            fail(m, message("peers: %s", strerror(status)));
        } else if (m->n_missing && clock_monotonic_us() >= m->until_us) {
            fail(m, missing(m));
        }
    }
}

char *
mesh_connect(const struct peer_net_config *config, int listener,
             struct link *const links[])
{
    static const struct event_class listening = { listener_wait,
                                                  listener_run };
    static const struct event_class calling = { call_wait, call_run };
    static const struct event_class greeted = { guest_wait, guest_run };
    struct meeting *m = allocate(1, sizeof *m);
    struct event_loop loop;
    char *error;

    *m = (struct meeting){
        .config = config,
        .links = links,
        .listener = listener,
        .n_missing = config->n - 1,
    };
    event_loop_init(&loop, config->control, control_stopped);
    event_loop_add(&loop, &listening, m);
    for (int i = 0; i < N_GREETINGS; i++) {
        struct greeting *g = &m->greetings[i];
        bool call = i < config->rank;

        *g = (struct greeting){
            .meeting = m,
            .rank = call ? i : -1,
            .retry_us = MIN_RETRY_US,
        };
        link_init(&g->link, -1);
        event_loop_add(&loop, call ? &calling : &greeted, g);
    }
    meet(m, &loop);
    event_loop_uninit(&loop);
    for (int i = 0; i < N_GREETINGS; i++) {
        link_close(&m->greetings[i].link);
        free(m->greetings[i].awaited.refusal);
    }
    error = m->error;
    free(m);
    return error;
}
