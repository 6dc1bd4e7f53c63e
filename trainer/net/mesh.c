/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/mesh.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
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

#define UNSENT (32 * 1024)      /* Bytes that the kernel keeps unsent, at
                                 * most. */
#define KEEPALIVE_PARTS 3       /* Keepalive probes within the heartbeat
                                 * timeout. */
#define HELLO_US 1000000        /* Time limit for a hello. */
#define MIN_RETRY_US 50000      /* Of the first failure; it doubles. */
#define MAX_RETRY_US 1000000
#define LAST_US 1000000 /* In which what was sent last arrives. */
#define MAX_NAMED 4     /* Missing peers that an error names. */

/* Lower ranks, and places for guests: at least as many as peers. */
#define N_GREETINGS (2 * PEER_NET_MAX)

/* A connection on which the hello or the welcome is missing. */
struct greeting {
    struct meeting *meeting;
    int rank; /* Of a lower rank, or -1: not known yet. */
    struct link link;
    bool connected;   /* The kernel has connected it. */
    bool done;        /* The awaited frame is in the link. */
    char *refusal;    /* Text of the other end's abort, or NULL. */
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

/* Makes the link of 'g' that of 'rank'. */
static void
seat(struct greeting *g, int rank)
{
    struct meeting *m = g->meeting;

    *m->links[rank] = g->link;
    link_init(&g->link, -1);
    m->n_missing--;
    m->until_us = clock_monotonic_us() + m->config->connect_us;
}

static bool
greeting_may_receive(void *g_, const struct link *link)
{
    const struct greeting *g = g_;

    return !g->done;
}

static char *
end_awaited(void *g_, struct link *link)
{
    struct greeting *g = g_;

    g->done = true;
    g->refusal =
        link->frame.type == FRAME_ABORT ? dispatch_abort(NULL, link) : NULL;
    return NULL;
}

/* Returns false if the connection is of no use. */
static bool
receive(struct greeting *g, enum frame_type type, char **errorp)
{
    struct dispatcher dispatcher = { .may_receive = greeting_may_receive };

    dispatcher.handlers[type].end = end_awaited;
    if (type == FRAME_WELCOME) {
        dispatcher.handlers[FRAME_ABORT] =
            (struct frame_handler){ dispatch_keep_payload, end_awaited };
    }
    return dispatch_frames(&g->link, &dispatcher, g, errorp) == DISPATCH_AGAIN;
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

    if (g->link.fd < 0 && !g->done) {
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
    } else if (g->refusal) {
        fail(g->meeting,
             message("peer %d (%s): %s", g->rank,
                     g->meeting->config->names[g->rank], g->refusal));
    } else if (g->done) {
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

/* A peer that was too slow connects again; what is no peer gets a reason. */
static void
guest_run(void *g_, short revents)
{
    struct greeting *g = g_;
    char *error = NULL;

    if (!receive(g, FRAME_HELLO, &error)) {
        refuse(g, error ? error : "closed the connection");
        free(error);
    } else if (g->done) {
        welcome(g);
    } else if (clock_monotonic_us() >= g->until_us) {
        link_close(&g->link);
    }
}

/* Returns a place for a guest.  If all are taken, the oldest guest loses its
 * own: a peer says hello at once. */
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
        g->done = false;
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
        free(m->greetings[i].refusal);
    }
    error = m->error;
    free(m);
    return error;
}

struct peer_end {
    struct peer_net *net;
    int rank;
    struct link link;
    bool pending;               /* The link holds a message that the scheme
                                 * has not taken yet. */
    bool present;               /* Neither dead nor ended. */
    bool ready;                 /* The link may hold data that poll() does not
                                 * report. */
    struct heartbeat heartbeat;
    uint64_t n_heard;           /* Bytes received at the last check for
                                 * silence. */
};

struct peer_net {
    struct peer_net_config config;
    struct peer_end ends[PEER_NET_MAX];
    const struct peer_net_class *class;
    void *aux;

    pthread_t thread;
    bool started, stopping, said_bye;
    bool retry;                 /* Offer pending messages again after the next
                                 * poll(). */
    bool retrying;              /* 'retry' as of this poll(). */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct heartbeat heartbeat; /* When to send heartbeats to all. */
    struct event_loop loop;
};

static struct link *
link_to(struct peer_net *net, int i)
{
    return &net->ends[i].link;
}

/* Sets the socket options of links between peers, which all may fail: then the
 * death of a machine is noticed later. */
static void
tune_peer_link(const struct peer_net *net, int fd)
{
    int unsent = UNSENT, probes = KEEPALIVE_PARTS;
    unsigned int deadline_ms = net->config.heartbeat_timeout_us / 1000;
    int idle = net->config.heartbeat_timeout_us / 1000000
               / (KEEPALIVE_PARTS + 1) + 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (deadline_ms) {
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &deadline_ms,
                   sizeof deadline_ms);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    }
}

/* Connects a socket to itself, for messages to oneself. */
static char *
connect_self(struct peer_net *net)
{
    struct sockaddr_in sin = { .sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof sin;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 ? errno : 0;

    if (!error && (bind(fd, (struct sockaddr *) &sin, sizeof sin)
                   || getsockname(fd, (struct sockaddr *) &sin, &length)
                   || connect(fd, (struct sockaddr *) &sin, sizeof sin))) {
        error = errno;
    }
    error = error ? error : link_tune(fd, net->config.congestion);
    if (error) {
        close(fd);
        return message("a connection to itself: %s", strerror(error));
    }
    link_init(&net->ends[net->config.rank].link, fd);
    net->ends[net->config.rank].present = true;
    return NULL;
}

/* Connects to all peers.  Returns NULL or a message. */
static char *
connect_all(struct peer_net *net)
{
    const struct peer_net_config *c = &net->config;
    struct link *links[PEER_NET_MAX];
    int listener = c->listener;
    uint16_t port;
    char *error = NULL;

    if (!listener) {
        error = address_listen(c->address, c->port, &listener, &port);
        if (error) {
            return error;
        }
        report_listening(c->address, port);
    }
    for (int i = 0; i < c->n; i++) {
        links[i] = link_to(net, i);
    }
    error = mesh_connect(c, listener, links);
    close(listener);
    for (int i = 0; i < c->n; i++) {
        net->ends[i].present = links[i]->fd >= 0;
    }
    if (!error && c->loop) {
        error = connect_self(net);
    }
    for (int i = 0; i < c->n; i++) {
        if (net->ends[i].present) {
            tune_peer_link(net, net->ends[i].link.fd);
        }
    }
    return error;
}

char *
peer_net_create(const struct peer_net_config *config, struct peer_net **netp)
{
    struct peer_net *net = *netp = allocate(1, sizeof *net);
    pthread_condattr_t attr;

    net->config = *config;
    for (int i = 0; i < PEER_NET_MAX; i++) {
        net->ends[i].net = net;
        net->ends[i].rank = i;
        link_init(link_to(net, i), -1);
    }
    pthread_mutex_init(&net->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&net->changed, &attr);
    pthread_condattr_destroy(&attr);
    event_loop_init(&net->loop, NULL, NULL);
    net->loop.mutex = &net->mutex;
    event_loop_allow_wake(&net->loop);
    return connect_all(net);
}

static void
lose_peer(struct peer_net *net, int i, bool died)
{
    struct peer_end *end = &net->ends[i];

    if (end->present) {
        end->present = end->pending = false;
        link_close(&end->link);
        net->class->gone(net->aux, i, died && !net->said_bye);
        pthread_cond_broadcast(&net->changed);
    }
}

/* Offers the link's frame to the scheme. */
static void
offer_message(struct peer_net *net, int i)
{
    struct link *link = link_to(net, i);

    net->ends[i].pending = !net->class->take(net->aux, i, &link->frame,
                                             (const float *) link->payload);
}

static bool
may_receive(void *end_, const struct link *link)
{
    const struct peer_end *end = end_;

    return end->present && !end->pending;
}

static char *
begin_message(void *end_, struct link *link)
{
    if (link->frame.payload_length > FRAME_MAX_UPDATE) {
        return message("%s: %zu bytes, at most %zu are allowed",
                       frame_type_name(link->frame.type),
                       link->frame.payload_length, FRAME_MAX_UPDATE);
    }
    link_keep_payload(link);
    return NULL;
}

static char *
end_message(void *end_, struct link *link)
{
    struct peer_end *end = end_;

    offer_message(end->net, end->rank);
    return NULL;
}

static char *
begin_bye(void *end_, struct link *link)
{
    struct peer_end *end = end_;

    lose_peer(end->net, end->rank, false);
    return NULL;
}

static void
receive_from(struct peer_end *end)
{
    static const struct dispatcher dispatcher = {
        .may_receive = may_receive,
        .handlers = {
            [FRAME_PEER] = { begin_message, end_message },
            [FRAME_KEY_ITEMS] = { begin_message, end_message },
            [FRAME_HEARTBEAT] = { .end = dispatch_ignore },
            [FRAME_BYE] = { .begin = begin_bye },
        },
    };
    char *error;

    if (end->pending && end->net->retrying) {
        offer_message(end->net, end->rank);
    }
    if (dispatch_frames(&end->link, &dispatcher, end, &error)
        != DISPATCH_AGAIN) {
        free(error);
        lose_peer(end->net, end->rank, true);
    }
    end->ready = end->pending;
}

/* Sends the queue and calls on_writable(), as long as the kernel takes all.
 * If the other end has closed the connection, its last messages still count:
 * among them may be a bye. */
static void
send_to(struct peer_net *net, int i)
{
    struct link *link = link_to(net, i);
    bool more = true, waited = net->ends[i].pending && !link_idle(link);

    while (more && net->ends[i].present) {
        if (link_flush(link)) {
            receive_from(&net->ends[i]);
            lose_peer(net, i, true);
            return;
        }
        more = link_idle(link);
        if (more) {
            net->class->on_writable(net->aux, i);
            more = !link_idle(link);
        }
    }
    /* A pending message may have waited for space for its answer. */
    net->retry = net->retry || (waited && link_idle(link));
}

static void
note_signs_of_life(struct peer_end *end, int64_t now)
{
    if (end->link.n_received != end->n_heard || end->pending) {
        end->n_heard = end->link.n_received;
        heartbeat_heard(&end->heartbeat, now);
    }
}

/* Loses 'end' if it was silent for too long.  An end with a pending message is
 * not received from, so it is not silent.  If this thread itself did not run
 * for as long, what the end has sent meanwhile is still in the kernel. */
static void
check_silence(struct peer_end *end, int64_t now)
{
    note_signs_of_life(end, now);
    if (heartbeat_is_silent(&end->heartbeat, now)) {
        receive_from(end);
        note_signs_of_life(end, now);
    }
    if (heartbeat_is_silent(&end->heartbeat, now)) {
        lose_peer(end->net, end->rank, true);
    }
}

static int
end_wait(void *end_, short *events, int64_t *until_us)
{
    const struct peer_end *end = end_;

    if (!end->present) {
        return -1;
    }
    if (end->pending ? end->net->retrying : end->ready) {
        *until_us = 0;
    }
    return link_wait(&end->link, !end->pending, events);
}

/* An end that is gone while its message is pending is noticed here only. */
static void
end_run(void *end_, short revents)
{
    struct peer_end *end = end_;

    if (end->pending && revents & (POLLERR | POLLHUP)) {
        lose_peer(end->net, end->rank, true);
    } else if (revents != POLLOUT) {
        receive_from(end);
    }
}

static void *
thread_main(void *net_)
{
    struct peer_net *net = net_;
    bool beats = net->config.heartbeat_timeout_us;

    pthread_mutex_lock(&net->mutex);
    while (!net->stopping) {
        int64_t now = clock_monotonic_us();
        bool beat = beats && heartbeat_due(&net->heartbeat, now);

        for (int i = 0; i < net->config.n; i++) {
            struct frame frame = { .type = FRAME_HEARTBEAT };

            if (beats && net->ends[i].present) {
                check_silence(&net->ends[i], now);
            }
            if (beat && !net->said_bye && net->ends[i].present
                && link_idle(link_to(net, i))) {
                link_send(link_to(net, i), &frame, NULL);
            }
            send_to(net, i);
        }
        net->retrying = net->retry;
        net->retry = false;
        event_loop_run(&net->loop,
                       beats ? heartbeat_next_us(&net->heartbeat) : INT64_MAX);
    }
    /* The last messages may name the node that has died. */
    for (int i = 0; i < net->config.n; i++) {
        send_to(net, i);
    }
    pthread_mutex_unlock(&net->mutex);
    return NULL;
}

char *
peer_net_start(struct peer_net *net, const struct peer_net_class *class,
               void *aux)
{
    static const struct event_class end_class = { end_wait, end_run };
    char *error;

    net->class = class;
    net->aux = aux;
    net->heartbeat.timeout_us = net->config.heartbeat_timeout_us;
    for (int i = 0; i < net->config.n; i++) {
        event_loop_add(&net->loop, &end_class, &net->ends[i]);
        net->ends[i].ready = true;
        heartbeat_start(&net->ends[i].heartbeat,
                        net->config.heartbeat_timeout_us,
                        clock_monotonic_us());
    }
    peer_net_lock(net);
    error = thread_start(&net->thread, "network", thread_main, net);
    net->started = !error;
    peer_net_unlock(net);
    return error;
}

void
peer_net_wake(struct peer_net *net)
{
    event_loop_wake(&net->loop);
}

/* Lets what was sent arrive: when a socket is closed with bytes that were not
 * read, the kernel drops what it has not sent yet, such as who has died. Reads
 * until the other ends have ended, too. */
static void
send_last(struct peer_net *net)
{
    int64_t until_us = clock_monotonic_us() + LAST_US;
    char bytes[16384];

    for (int i = 0; i < net->config.n; i++) {
        if (net->ends[i].present) {
            shutdown(link_to(net, i)->fd, SHUT_WR);
        }
    }
    for (int i = 0; i < net->config.n; i++) {
        struct pollfd end = { .fd = link_to(net, i)->fd, .events = POLLIN };
        int64_t left_us;

        while (net->ends[i].present
               && (left_us = until_us - clock_monotonic_us()) > 0
               && poll(&end, 1, left_us / 1000 + 1) > 0
               && recv(end.fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
            continue;
        }
    }
}

void
peer_net_destroy(struct peer_net *net)
{
    if (!net) {
        return;
    }
    if (net->started) {
        pthread_mutex_lock(&net->mutex);
        net->stopping = true;
        peer_net_wake(net);
        pthread_mutex_unlock(&net->mutex);
        pthread_join(net->thread, NULL);
        send_last(net);
    }
    event_loop_uninit(&net->loop);
    for (int i = 0; i < PEER_NET_MAX; i++) {
        link_close(link_to(net, i));
    }
    pthread_cond_destroy(&net->changed);
    pthread_mutex_destroy(&net->mutex);
    free(net);
}

void
peer_net_lock(struct peer_net *net)
{
    pthread_mutex_lock(&net->mutex);
}

void
peer_net_unlock(struct peer_net *net)
{
    pthread_mutex_unlock(&net->mutex);
}

void
peer_net_wait(struct peer_net *net, int64_t until_us)
{
    struct timespec ts = { .tv_sec = until_us / 1000000,
                           .tv_nsec = until_us % 1000000 * 1000 };

    pthread_cond_timedwait(&net->changed, &net->mutex, &ts);
}

void
peer_net_notify(struct peer_net *net)
{
    pthread_cond_broadcast(&net->changed);
}

bool
peer_net_present(const struct peer_net *net, int i)
{
    return net->ends[i].present;
}

void
peer_net_address(const struct peer_net *net, int i, char address[],
                 size_t size)
{
    static const char mapped[] = "::ffff:";
    struct sockaddr_storage ss;
    socklen_t length = sizeof ss;
    size_t n = strlen(mapped);

    if (!net->ends[i].present
        || getpeername(net->ends[i].link.fd, (struct sockaddr *) &ss, &length)
        || getnameinfo((struct sockaddr *) &ss, length, address, size, NULL, 0,
                       NI_NUMERICHOST)) {
        address[0] = '\0';
    } else if (!strncmp(address, mapped, n)) {
        memmove(address, address + n, strlen(address + n) + 1);
    }
}

bool
peer_net_busy(const struct peer_net *net, int i)
{
    return net->ends[i].present && !link_idle(&net->ends[i].link);
}

bool
peer_net_has_space(const struct peer_net *net, int i, uint32_t n)
{
    return net->ends[i].present && link_has_space(&net->ends[i].link,
                                                 n * sizeof(float));
}

static void
queue_frame(struct peer_net *net, int to, struct frame *frame,
            const float *body, bool copy)
{
    struct link *link = link_to(net, to);
    bool idle = link_idle(link);

    if (!net->ends[to].present) {
        return;
    }
    frame->type = net->config.hello.channel == FRAME_NODES ? FRAME_KEY_ITEMS
                                                           : FRAME_PEER;
    if (copy) {
        link_send_copy(link, frame, body);
    } else {
        link_send(link, frame, body);
    }
    /* Otherwise the thread sends the queue anyway. */
    if (idle && !pthread_equal(pthread_self(), net->thread)) {
        peer_net_wake(net);
    }
}

void
peer_net_send(struct peer_net *net, int to, struct frame *frame,
              const float *body)
{
    queue_frame(net, to, frame, body, false);
}

void
peer_net_send_copy(struct peer_net *net, int to, struct frame *frame,
                   const float *body)
{
    queue_frame(net, to, frame, body, true);
}

static bool
others_present(const struct peer_net *net)
{
    for (int i = 0; i < net->config.n; i++) {
        if (i != net->config.rank && net->ends[i].present) {
            return true;
        }
    }
    return false;
}

void
peer_net_bye(struct peer_net *net, int64_t until_us)
{
    for (int i = 0; i < net->config.n; i++) {
        struct frame frame = { .type = FRAME_BYE };

        if (net->ends[i].present && !net->said_bye) {
            link_send_copy(link_to(net, i), &frame, NULL);
        }
    }
    net->said_bye = true;
    peer_net_wake(net);
    while (others_present(net) && clock_monotonic_us() < until_us) {
        peer_net_wait(net, until_us);
    }
}

void
peer_net_retry(struct peer_net *net)
{
    net->retry = true;
    peer_net_wake(net);
}

uint64_t
peer_net_received_from(const struct peer_net *net, int i)
{
    return net->ends[i].link.n_received;
}

void
peer_net_bytes(const struct peer_net *net, uint64_t *sent, uint64_t *received)
{
    *sent = *received = 0;
    for (int i = 0; i < net->config.n; i++) {
        *sent += net->ends[i].link.n_sent;
        *received += net->ends[i].link.n_received;
    }
}
