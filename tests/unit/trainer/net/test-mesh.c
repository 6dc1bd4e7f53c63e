/* SPDX-License-Identifier: Apache-2.0 */

/* A peer with a late thread, while the test plays the other ends.  Linked with
 * --wrap=clock_gettime and --wrap=ppoll. */

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/trainer/net/played-peer.h"
#include "tests/unit/unit-test.h"
#include "trainer/net/address.h"
#include "trainer/net/link.h"
#include "trainer/net/mesh.h"

#define N 3
#define HANG_S 60               /* Ends a test that hangs. */
#define TIMEOUT_S 10            /* Heartbeat timeout. */
#define WAKE_FDS 3              /* First descriptors of an event loop, which
                                 * are not connections. */

int __wrap_clock_gettime(clockid_t, struct timespec *);
int __real_clock_gettime(clockid_t, struct timespec *);
int __wrap_ppoll(struct pollfd *, nfds_t, const struct timespec *,
                 const sigset_t *);
int __real_ppoll(struct pollfd *, nfds_t, const struct timespec *,
                 const sigset_t *);

static atomic_int later_s;      /* What the clock is ahead. */
static atomic_bool blind;       /* The thread is slower than the events: no
                                 * poll() reports one of a connection. */
static sem_t polled;            /* Counts the ends of blind polls. */

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
    int error = __real_clock_gettime(id, ts);

    ts->tv_sec += later_s;
    return error;
}

int
__wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts,
             const sigset_t *mask)
{
    int result;

    if (!blind) {
        return __real_ppoll(fds, n, ts, mask);
    }
    for (nfds_t i = 0; i < n; i++) {
        fds[i].revents = 0;
    }
    result = __real_ppoll(fds, WAKE_FDS, ts, mask);
    sem_post(&polled);
    return result;
}

/* The mesh of rank 0, and what has become of the others. */
struct mesh {
    struct peer_net_config config;
    struct peer_net *net;
    struct link others[N];      /* The connections, of the others. */
    bool gone[N], died[N];
    int last;                   /* Rank to which gone() sends a message, or
                                 * 0. */
    char *error;
};

static bool
take(void *m, int from, const struct frame *frame, const float *body)
{
    return true;
}

static void
on_writable(void *m, int to)
{
}

static void
gone(void *m_, int i, bool died)
{
    struct mesh *m = m_;

    m->gone[i] = true;
    m->died[i] = died;
    if (m->last) {
        peer_net_send_copy(m->net, m->last, &(struct frame) { 0 }, NULL);
    }
}

static void *
create_main(void *m_)
{
    struct mesh *m = m_;

    m->error = peer_net_create(&m->config, &m->net);
    return NULL;
}

/* Connects rank 'rank' to the mesh at address 'ss'. */
static void
join(struct mesh *m, int rank, const struct sockaddr_storage *ss)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *) ss, sizeof *ss),
                     0);
    play_higher_rank(&m->others[rank], fd, &m->config.hello, rank, 0);
}

static void
start(struct mesh *m, int64_t timeout_us)
{
    static const char *const names[N] = { "h0:1", "h1:1", "h2:1" };
    static const struct peer_net_class class = { take, on_writable, gone };
    struct sockaddr_storage ss;
    socklen_t length = sizeof ss;
    pthread_t thread;
    uint16_t port;

    alarm(HANG_S);
    *m = (struct mesh) {
        .config = {
            .n = N, .names = names, .connect_us = INT64_C(1000000) * HANG_S,
            .heartbeat_timeout_us = timeout_us,
            .hello = {
                .n_workers = N, .n_shards = N, .n_parameters = N,
                .channel = FRAME_PEERS,
            },
        },
    };
    assert_null(address_listen("127.0.0.1", 0, &m->config.listener, &port));
    assert_int_equal(getsockname(m->config.listener, (struct sockaddr *) &ss,
                                 &length), 0);
    assert_int_equal(pthread_create(&thread, NULL, create_main, m), 0);
    for (int i = 1; i < N; i++) {
        join(m, i, &ss);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_null(m->error);
    assert_int_equal(sem_init(&polled, 0, 0), 0);
    blind = true;
    assert_null(peer_net_start(m->net, &class, m));
}

static void
finish(struct mesh *m)
{
    blind = false;
    peer_net_destroy(m->net);
    for (int i = 1; i < N; i++) {
        link_close(&m->others[i]);
    }
    alarm(0);
}

/* Returns after the thread has once checked and sent everything. */
static void
await_pass(struct mesh *m)
{
    while (!sem_trywait(&polled)) {
        continue;
    }
    for (int i = 0; i < 2; i++) {
        peer_net_wake(m->net);
        assert_int_equal(sem_wait(&polled), 0);
    }
}

/* Closes the connection of 'rank' while the mesh sends to it: the mesh sees
 * that when it sends, before it receives. */
static void
break_off(struct mesh *m, int rank)
{
    struct pollfd sent = { .fd = m->others[rank].fd, .events = POLLIN };

    peer_net_lock(m->net);
    peer_net_send_copy(m->net, rank, &(struct frame) { 0 }, NULL);
    peer_net_unlock(m->net);
    assert_int_equal(poll(&sent, 1, -1), 1);
    link_close(&m->others[rank]);       /* It has not been read: a reset. */
    peer_net_lock(m->net);
    while (!m->gone[rank]) {
        peer_net_send_copy(m->net, rank, &(struct frame) { 0 }, NULL);
        peer_net_wait(m->net, clock_monotonic_us() + 100000);
    }
    peer_net_unlock(m->net);
}

UNIT_TEST(a_peer_that_has_said_bye_has_not_died)
{
    struct mesh m;

    start(&m, 0);
    send_frame(&m.others[1], &(struct frame) { .type = FRAME_BYE });
    break_off(&m, 1);
    break_off(&m, 2);
    assert_false(m.died[1]);
    assert_true(m.died[2]);
    finish(&m);
}

UNIT_TEST(the_last_messages_are_sent)
{
    struct mesh m;

    start(&m, 0);
    m.last = 1;
    break_off(&m, 2);
    peer_net_destroy(m.net);
    m.net = NULL;
    await_frame(&m.others[1], FRAME_PEER);
    finish(&m);
}

UNIT_TEST(a_thread_that_was_late_receives_before_it_counts_silence)
{
    struct mesh m;

    start(&m, INT64_C(1000000) * TIMEOUT_S);
    await_pass(&m);
    send_frame(&m.others[1], &(struct frame) { .type = FRAME_HEARTBEAT });
    later_s += TIMEOUT_S + 1;
    await_pass(&m);
    peer_net_lock(m.net);
    assert_false(m.gone[1]);
    assert_true(m.died[2]);
    peer_net_unlock(m.net);
    later_s += TIMEOUT_S + 1;
    await_pass(&m);
    assert_true(m.died[1]);
    finish(&m);
}
