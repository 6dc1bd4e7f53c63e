/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/mesh-private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/process/report.h"

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

char *
peer_net_join(struct peer_net *net)
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
