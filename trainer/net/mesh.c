/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/mesh.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/channel.h"
#include "trainer/net/link.h"
#include "trainer/process/report.h"
#include "trainer/process/thread.h"

struct peer_end {
    struct channel channel;     /* Of a lower rank; else only its link. */
    bool pending;               /* The link has a message nobody took. */
    bool present;               /* Neither dead nor ended. */
    int64_t heard_us;           /* When bytes came last, or could not, */
    uint64_t n_heard;           /* and how many had come then. */
    bool drained;               /* It has nothing until poll() says so. */
};

struct peer_net {
    struct peer_net_config config;
    struct peer_end ends[PEER_NET_MAX];
    const struct peer_net_class *class;
    void *aux;

    pthread_t thread;
    bool started, stopping, retry, said_bye;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int wake_fd;                /* Something for the thread to look at. */
    int64_t beat_us;            /* The last heartbeats. */
};

#define HELLO_US 2000000        /* Whoever connects says hello by then. */
#define UNSENT (32 * 1024)      /* Bytes that the kernel keeps unsent. */
#define KEEPALIVE_PARTS 3       /* Probes before a deadline. */

/* What a link of peers needs besides what all links do; a kernel that lacks
 * one of these finds out later that a machine is gone. */
static void
tune(const struct peer_net *net, int fd)
{
    int unsent = UNSENT, probes = KEEPALIVE_PARTS;
    unsigned int deadline_ms = net->config.deadline_us / 1000;
    int idle = net->config.deadline_us / 1000000 / (KEEPALIVE_PARTS + 1) + 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (deadline_ms) {
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &deadline_ms,
                   sizeof deadline_ms);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    }
}

static int
wait_readable(struct peer_net *net, int fd, int64_t until_us)
{
    return channel_wait(net->config.control, fd, POLLIN, until_us);
}

/* Receives who is at the other end of 'link'. */
static char *
receive_hello(struct peer_net *net, struct link *link,
              struct frame_hello *hello)
{
    int64_t until_us = report_monotonic_us() + HELLO_US;
    uint8_t body[FRAME_HELLO_LENGTH];
    char *error;

    for (;;) {
        int status = 0;

        switch (link_receive(link, &error)) {
        case LINK_HEADER:
            if (link->frame.type != FRAME_HELLO) {
                return message("did not say hello");
            }
            link_set_body(link, body);
            break;
        case LINK_FRAME:
            return frame_hello_decode(body, hello);
        case LINK_END:
            return error ? error : message("closed the connection");
        case LINK_AGAIN:
            status = wait_readable(net, link->fd, until_us);
            break;
        }
        if (status) {
            return message("%s", strerror(status));
        }
    }
}

/* NULL if 'theirs' is a peer that we wait for, else what is wrong. */
static char *
check_hello(const struct peer_net *net, const struct frame_hello *theirs)
{
    const struct peer_net_config *c = &net->config;
    const struct frame_hello *ours = &c->hello;

    if (theirs->channel != ours->channel || theirs->n_workers != c->n
        || theirs->n_parameters != ours->n_parameters
        || theirs->learning_rate != ours->learning_rate
        || theirs->momentum != ours->momentum || theirs->seed != ours->seed
        || theirs->optimiser != ours->optimiser
        || theirs->key_space != ours->key_space
        || theirs->width != ours->width) {
        return message("rank %u trains something else than rank %d",
                       theirs->rank, c->rank);
    }
    if (theirs->shard != c->rank) {
        return message("this is rank %d, not %u", c->rank, theirs->shard);
    }
    if (theirs->rank <= c->rank || net->ends[theirs->rank].present) {
        return message("rank %u was not expected", theirs->rank);
    }
    return NULL;
}

static void
refuse(struct link *link, const char *why)
{
    struct frame frame = { .type = FRAME_ABORT, .body_length = strlen(why) };

    link_send_copy(link, &frame, why);
    link_flush(link);
    link_close(link);
}

/* Makes 'fd' one of our peers.  A stranger is told so and nothing else
 * happens; a peer that trains something else ends ours. */
static char *
welcome(struct peer_net *net, int fd, int *n)
{
    struct frame frame = { .type = FRAME_WELCOME };
    uint8_t body[FRAME_WELCOME_LENGTH];
    struct frame_hello hello;
    struct link link;
    char *error;

    if (link_tune(fd, net->config.congestion)) {
        close(fd);
        return NULL;
    }
    link_init(&link, fd);
    error = receive_hello(net, &link, &hello);
    if (error) {
        refuse(&link, error);
        free(error);
        return NULL;
    }
    error = check_hello(net, &hello);
    if (error) {
        refuse(&link, error);
        return error;
    }
    frame_welcome_encode(&(struct frame_welcome) { .epoch = 0 }, body);
    link_send_copy(&link, &frame, body);
    link_flush(&link);
    net->ends[hello.rank].channel.link = link;
    net->ends[hello.rank].present = true;
    ++*n;
    return NULL;
}

static char *
accept_higher(struct peer_net *net, int listener, int64_t until_us)
{
    int n = 0, wanted = net->config.n - 1 - net->config.rank;
    char *error = NULL;

    while (!error && n < wanted) {
        int status = wait_readable(net, listener, until_us), fd;

        if (status) {
            return message("%d of %d peers did not come: %s", wanted - n,
                           wanted, strerror(status));
        }
        fd = accept(listener, NULL, NULL);
        if (fd >= 0) {
            error = welcome(net, fd, &n);
        }
    }
    return error;
}

static char *
connect_lower(struct peer_net *net, int i, int64_t until_us)
{
    const struct peer_net_config *c = &net->config;
    struct channel *channel = &net->ends[i].channel;
    struct frame_hello hello = c->hello;
    char *error;

    hello.shard = i;
    channel_init(channel, c->names[i], &hello, c->congestion, c->control);
    error = channel_open(channel, until_us - report_monotonic_us());
    net->ends[i].present = !error;
    return error;
}

/* Connects a socket to itself. */
static char *
connect_self(struct peer_net *net)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
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
    link_init(&net->ends[net->config.rank].channel.link, fd);
    net->ends[net->config.rank].present = true;
    return NULL;
}

/* Connects to all peers.  Returns NULL or a message. */
static char *
connect_all(struct peer_net *net)
{
    const struct peer_net_config *c = &net->config;
    int64_t until_us = report_monotonic_us() + c->connect_us;
    uint16_t port;
    int listener;
    char *error = address_listen(c->address, c->port, &listener, &port);

    if (error) {
        return error;
    }
    report_listening(c->address, port);
    for (int i = 0; i < c->rank && !error; i++) {
        error = connect_lower(net, i, until_us);
    }
    if (!error) {
        error = accept_higher(net, listener, until_us);
    }
    close(listener);
    if (!error && c->loop) {
        error = connect_self(net);
    }
    for (int i = 0; i < c->n; i++) {
        if (net->ends[i].present) {
            tune(net, net->ends[i].channel.link.fd);
        }
    }
    return error;
}

#define MAX_INTERVAL_US 1000000 /* From one heartbeat to the next. */

static struct link *
link_to(struct peer_net *net, int i)
{
    return &net->ends[i].channel.link;
}

char *
peer_net_create(const struct peer_net_config *config, struct peer_net **netp)
{
    struct peer_net *net = *netp = allocate(1, sizeof *net);
    pthread_condattr_t attr;

    net->config = *config;
    for (int i = 0; i < PEER_NET_MAX; i++) {
        link_init(link_to(net, i), -1);
    }
    pthread_mutex_init(&net->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&net->changed, &attr);
    pthread_condattr_destroy(&attr);
    net->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return connect_all(net);
}

static void
lose(struct peer_net *net, int i, bool died)
{
    struct peer_end *end = &net->ends[i];

    if (end->present) {
        end->present = end->pending = false;
        link_close(&end->channel.link);
        net->class->gone(net->aux, i, died && !net->said_bye);
        pthread_cond_broadcast(&net->changed);
    }
}

/* Gives the frame that the link holds to the scheme. */
static void
offer(struct peer_net *net, int i)
{
    struct link *link = link_to(net, i);

    net->ends[i].pending = !net->class->take(net->aux, i, &link->frame,
                                             (const float *) link->body);
}

static void
receive_from(struct peer_net *net, int i, bool retry)
{
    struct peer_end *end = &net->ends[i];
    struct link *link = link_to(net, i);
    char *error;

    if (end->pending && retry) {
        offer(net, i);
    }
    while (end->present && !end->pending && !end->drained) {
        switch (link_receive(link, &error)) {
        case LINK_HEADER:
            if (link->frame.type == FRAME_BYE) {
                lose(net, i, false);
            } else if ((link->frame.type != FRAME_PEER
                        && link->frame.type != FRAME_HEARTBEAT)
                       || link->frame.body_length > FRAME_MAX_UPDATE) {
                lose(net, i, true);
            } else {
                link_keep_body(link);
            }
            break;
        case LINK_FRAME:
            if (link->frame.type == FRAME_PEER) {
                offer(net, i);
            }
            break;
        case LINK_AGAIN:
            end->drained = true;
            break;
        case LINK_END:
            free(error);
            lose(net, i, true);
            break;
        }
    }
}

/* Sends what waits, and asks for more as long as the kernel takes all. */
static void
send_to(struct peer_net *net, int i)
{
    struct link *link = link_to(net, i);
    bool more = true, waited = net->ends[i].pending && !link_idle(link);

    while (more && net->ends[i].present) {
        if (link_flush(link)) {
            lose(net, i, true);
            return;
        }
        more = link_idle(link);
        if (more) {
            net->class->room(net->aux, i);
            more = !link_idle(link);
        }
    }
    /* A message may have waited for room for its answer. */
    net->retry = net->retry || (waited && link_idle(link));
}

/* How often to send heartbeats, or 0. */
static int64_t
interval_us(const struct peer_net *net)
{
    int64_t quarter = net->config.deadline_us / 4;

    return quarter < MAX_INTERVAL_US ? quarter : MAX_INTERVAL_US;
}

/* Sends heartbeats, and loses who has sent nothing for too long.  A peer whose
 * message we have not taken cannot be heard, and one that ends need not be. */
static void
keep_watch(struct peer_net *net)
{
    int64_t now = report_monotonic_us();
    bool beats = now - net->beat_us >= interval_us(net) && !net->said_bye;

    net->beat_us = beats ? now : net->beat_us;
    for (int i = 0; i < net->config.n; i++) {
        struct peer_end *end = &net->ends[i];
        struct link *link = link_to(net, i);
        struct frame frame = { .type = FRAME_HEARTBEAT };

        if (!end->present) {
            continue;
        }
        if (link->n_received != end->n_heard || end->pending
            || !end->heard_us) {
            end->n_heard = link->n_received;
            end->heard_us = now;
        }
        if (now - end->heard_us > net->config.deadline_us) {
            lose(net, i, true);
        } else if (beats && link_idle(link)) {
            link_send(link, &frame, NULL);
        }
    }
}

/* One round with the lock; then waits without it. */
static void
serve(struct peer_net *net)
{
    struct pollfd fds[PEER_NET_MAX + 1];
    int n = net->config.n, timeout;
    bool retry = net->retry;
    uint64_t woken;

    net->retry = false;         /* What is called may set it again. */
    for (int i = 0; i < n; i++) {
        receive_from(net, i, retry);
    }
    if (net->config.deadline_us) {
        keep_watch(net);
    }
    for (int i = 0; i < n; i++) {
        send_to(net, i);
    }
    for (int i = 0; i < n; i++) {
        struct peer_end *end = &net->ends[i];

        fds[i] = (struct pollfd) {
            .fd = end->present ? link_to(net, i)->fd : -1,
            .events = end->present ? link_events(link_to(net, i)) : 0,
        };
        if (end->pending) {
            fds[i].events &= ~POLLIN;
        }
    }
    fds[n] = (struct pollfd) { .fd = net->wake_fd, .events = POLLIN };
    timeout = net->retry ? 0
        : net->config.deadline_us ? interval_us(net) / 1000 + 1 : -1;
    pthread_mutex_unlock(&net->mutex);
    poll(fds, n + 1, timeout);
    pthread_mutex_lock(&net->mutex);
    if (fds[n].revents
        && read(net->wake_fd, &woken, sizeof woken) != sizeof woken) {
        assert(!woken);
    }
    for (int i = 0; i < n; i++) {
        net->ends[i].drained = net->ends[i].drained
                               && !(fds[i].revents & ~POLLOUT);
        /* A peer that is gone while its message waits will not be heard of
         * otherwise. */
        if (net->ends[i].pending && fds[i].revents & (POLLERR | POLLHUP)) {
            lose(net, i, true);
        }
    }
}

static void *
thread_main(void *net_)
{
    struct peer_net *net = net_;

    pthread_mutex_lock(&net->mutex);
    while (!net->stopping) {
        serve(net);
    }
    pthread_mutex_unlock(&net->mutex);
    return NULL;
}

char *
peer_net_start(struct peer_net *net, const struct peer_net_class *class,
               void *aux)
{
    char *error;

    net->class = class;
    net->aux = aux;
    peer_net_lock(net);
    error = thread_start(&net->thread, "network", thread_main, net);
    net->started = !error;
    peer_net_unlock(net);
    return error;
}

void
peer_net_wake(struct peer_net *net)
{
    uint64_t one = 1;

    if (write(net->wake_fd, &one, sizeof one) < 0) {
        /* It is awake as often as can be counted. */
        return;
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
    }
    for (int i = 0; i < PEER_NET_MAX; i++) {
        link_close(link_to(net, i));
        free(net->ends[i].channel.name);
    }
    close(net->wake_fd);
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
    struct timespec ts = {
        .tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000,
    };

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
        || getpeername(net->ends[i].channel.link.fd, (struct sockaddr *) &ss,
                       &length)
        || getnameinfo((struct sockaddr *) &ss, length, address, size, NULL,
                       0, NI_NUMERICHOST)) {
        address[0] = '\0';
    } else if (!strncmp(address, mapped, n)) {
        memmove(address, address + n, strlen(address + n) + 1);
    }
}

bool
peer_net_busy(const struct peer_net *net, int i)
{
    return net->ends[i].present && !link_idle(&net->ends[i].channel.link);
}

bool
peer_net_has_room(const struct peer_net *net, int i, uint32_t n)
{
    return net->ends[i].present && link_has_room(&net->ends[i].channel.link,
                                                 n * sizeof(float));
}

static void
queue(struct peer_net *net, int to, struct frame *frame, const float *body,
      bool copy)
{
    struct link *link = link_to(net, to);
    bool idle = link_idle(link);

    if (!net->ends[to].present) {
        return;
    }
    frame->type = FRAME_PEER;
    if (copy) {
        link_send_copy(link, frame, body);
    } else {
        link_send(link, frame, body);
    }
    /* Otherwise the thread knows already that it has something to send. */
    if (idle && !pthread_equal(pthread_self(), net->thread)) {
        peer_net_wake(net);
    }
}

void
peer_net_send(struct peer_net *net, int to, struct frame *frame,
              const float *body)
{
    queue(net, to, frame, body, false);
}

void
peer_net_send_copy(struct peer_net *net, int to, struct frame *frame,
                   const float *body)
{
    queue(net, to, frame, body, true);
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
    while (others_present(net) && report_monotonic_us() < until_us) {
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
    return net->ends[i].channel.link.n_received;
}

uint64_t
peer_net_sent(const struct peer_net *net)
{
    uint64_t n = 0;

    for (int i = 0; i < net->config.n; i++) {
        n += net->ends[i].channel.link.n_sent;
    }
    return n;
}

uint64_t
peer_net_received(const struct peer_net *net)
{
    uint64_t n = 0;

    for (int i = 0; i < net->config.n; i++) {
        n += net->ends[i].channel.link.n_received;
    }
    return n;
}
