/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/mesh.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
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
#include "trainer/net/mesh-connect.h"
#include "trainer/process/control.h"

#define UNSENT (32 * 1024)      /* Bytes that the kernel keeps unsent, at
                                 * most. */
#define KEEPALIVE_PARTS 3       /* Keepalive probes within the heartbeat
                                 * timeout. */
#define LAST_US 1000000         /* Time limit for the last messages. */

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
        if (c->listening) {
            c->listening(c->address, port);
        }
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
        return message("%s: %zu bytes; expected at most %zu",
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
 * read, the kernel drops what it has not sent yet, such as the rank that has
 * died.  Reads until the other ends have ended, too. */
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
            const float *body, bool copy, bool now)
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
    if (now) {
        link_flush(link); /* The thread notices an error. */
    }
    /* Otherwise the thread sends the queue anyway. */
    if (idle && !link_idle(link)
        && !pthread_equal(pthread_self(), net->thread)) {
        peer_net_wake(net);
    }
}

void
peer_net_send(struct peer_net *net, int to, struct frame *frame,
              const float *body)
{
    queue_frame(net, to, frame, body, false, false);
}

void
peer_net_send_copy(struct peer_net *net, int to, struct frame *frame,
                   const float *body)
{
    queue_frame(net, to, frame, body, true, false);
}

void
peer_net_send_now(struct peer_net *net, int to, struct frame *frame,
                  const float *body)
{
    queue_frame(net, to, frame, body, true, true);
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
