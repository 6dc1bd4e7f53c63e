/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/rpc-watch.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "jsonrpc.h"
#include "openvswitch/poll-loop.h"
#include "util.h"

#define MAX_EVENTS 512 /* Of one call; the others come with the next. */

/* poll() and epoll have the same values. */
BUILD_ASSERT_DECL(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT);

struct rpc_watch {
    int fd;                /* Of epoll. */
    struct ovs_list ready; /* To be run in the next iteration. */
    struct ovs_list batch; /* To be run in this one. */
};

/* What the stream that registers waits for. */
struct waits {
    int fd;
    uint32_t events;
    bool now; /* It need not wait. */
};

static _Thread_local struct waits *waits; /* NULL: the poll loop's. */

void __real_poll_fd_wait_at(int, short, const char *);
void __wrap_poll_fd_wait_at(int, short, const char *);
void __real_poll_immediate_wake_at(const char *);
void __wrap_poll_immediate_wake_at(const char *);
SSL *__real_SSL_new(SSL_CTX *);
SSL *__wrap_SSL_new(SSL_CTX *);

void
__wrap_poll_fd_wait_at(int fd, short events, const char *where)
{
    if (waits) {
        waits->fd = fd;
        waits->events |= events;
    } else {
        __real_poll_fd_wait_at(fd, events, where);
    }
}

void
__wrap_poll_immediate_wake_at(const char *where)
{
    if (waits) {
        waits->now = true;
    } else {
        __real_poll_immediate_wake_at(where);
    }
}

/* Lets TLS free the buffers of a connection while there is nothing in them. */
SSL *
__wrap_SSL_new(SSL_CTX *ctx)
{
    SSL *ssl = __real_SSL_new(ctx);

    if (ssl) {
        SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    }
    return ssl;
}

struct rpc_watch *
rpc_watch_create(void)
{
    struct rpc_watch *watch = xzalloc(sizeof *watch);

    watch->fd = epoll_create1(EPOLL_CLOEXEC);
    ovs_assert(watch->fd >= 0);
    ovs_list_init(&watch->ready);
    ovs_list_init(&watch->batch);
    return watch;
}

void
rpc_watch_destroy(struct rpc_watch *watch)
{
    if (watch) {
        close(watch->fd);
        free(watch);
    }
}

/* Has rpc_watch_next() return 'w'. */
static void
wake(struct rpc_watch *watch, struct rpc_watched *w)
{
    if (ovs_list_is_empty(&w->node)) {
        ovs_list_push_back(&watch->ready, &w->node);
    }
}

void
rpc_watch_add(struct rpc_watch *watch, struct rpc_watched *w,
              struct jsonrpc *rpc)
{
    *w = (struct rpc_watched){ .rpc = rpc, .fd = -1 };
    ovs_list_init(&w->node);
    wake(watch, w);
}

/* Has the kernel watch 'fd' for 'events', nothing if they are 0. */
static void
set_events(struct rpc_watch *watch, struct rpc_watched *w, int fd,
           uint32_t events)
{
    struct epoll_event event = { .events = events, .data = { .ptr = w } };

    if (!events && w->fd >= 0) {
        epoll_ctl(watch->fd, EPOLL_CTL_DEL, w->fd, NULL);
        w->fd = -1;
    } else if (events && w->fd < 0) {
        if (epoll_ctl(watch->fd, EPOLL_CTL_ADD, fd, &event)) {
            wake(watch, w); /* For want of memory: try again. */
            return;
        }
        w->fd = fd;
    } else if (events != w->events) {
        epoll_ctl(watch->fd, EPOLL_CTL_MOD, fd, &event);
    }
    w->events = events;
}

void
rpc_watch_remove(struct rpc_watch *watch, struct rpc_watched *w)
{
    set_events(watch, w, -1, 0);
    ovs_list_remove(&w->node);
    ovs_list_init(&w->node);
}

void
rpc_watch_register(struct rpc_watch *watch, struct rpc_watched *w,
                   bool receives)
{
    struct waits own = { .fd = -1 };

    waits = &own;
    jsonrpc_wait(w->rpc);
    if (receives) {
        jsonrpc_recv_wait(w->rpc);
    }
    waits = NULL;
    if (own.now) {
        wake(watch, w);
    } else {
        set_events(watch, w, own.fd, own.events);
    }
}

void
rpc_watch_poll(struct rpc_watch *watch)
{
    struct epoll_event events[MAX_EVENTS];
    int n = epoll_wait(watch->fd, events, MAX_EVENTS, 0);

    for (int i = 0; i < n; i++) {
        wake(watch, events[i].data.ptr);
    }
    ovs_list_push_back_all(&watch->batch, &watch->ready);
}

struct rpc_watched *
rpc_watch_next(struct rpc_watch *watch)
{
    struct rpc_watched *w;

    if (ovs_list_is_empty(&watch->batch)) {
        return NULL;
    }
    w = CONTAINER_OF(ovs_list_pop_front(&watch->batch), struct rpc_watched,
                     node);
    ovs_list_init(&w->node);
    return w;
}

void
rpc_watch_wait(const struct rpc_watch *watch)
{
    poll_fd_wait(watch->fd, POLLIN);
    if (!ovs_list_is_empty(&watch->ready)) {
        poll_immediate_wake();
    }
}
