/* SPDX-License-Identifier: Apache-2.0 */

/* One peer that connects, in a thread, while the test plays the others, as
 * late and as silent as they may be.  Linked with --wrap=clock_gettime. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/unit/trainer/net/played-peer.h"
#include "tests/unit/unit-test.h"
#include "trainer/net/address.h"
#include "trainer/net/link.h"
#include "trainer/net/mesh-connect.h"
#include "trainer/net/mesh.h"

#define N PEER_NET_MAX
#define HANG_S 60               /* Ends a test that hangs. */
#define LIMIT_S 100

int __wrap_clock_gettime(clockid_t, struct timespec *);
int __real_clock_gettime(clockid_t, struct timespec *);

static atomic_int later_s;      /* What the clock is ahead. */

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
    int error = __real_clock_gettime(id, ts);

    ts->tv_sec += later_s;
    return error;
}

/* The peer under test, and the addresses of all. */
struct meeting {
    struct peer_net_config config;
    int listeners[N];
    char *names[N];
    struct link links[N];       /* Of the peer. */
    struct link others[N];      /* The same connections, of the others. */
    pthread_t thread;
    char *error;
};

static void *
connect_main(void *m_)
{
    struct meeting *m = m_;
    struct link *links[N];

    for (int i = 0; i < m->config.n; i++) {
        links[i] = &m->links[i];
    }
    m->error = mesh_connect(&m->config, m->listeners[m->config.rank], links);
    return NULL;
}

static struct meeting *
start_watched(int rank, int n, int64_t connect_us,
              int64_t heartbeat_timeout_us)
{
    struct meeting *m = allocate(1, sizeof *m);

    alarm(HANG_S);
    for (int i = 0; i < n; i++) {
        uint16_t port;

        assert_null(address_listen("127.0.0.1", 0, &m->listeners[i], &port));
        m->names[i] = message("127.0.0.1:%d", port);
        link_init(&m->links[i], -1);
        link_init(&m->others[i], -1);
    }
    m->config = (struct peer_net_config) {
        .rank = rank, .n = n, .names = (const char *const *) m->names,
        .connect_us = connect_us,
        .heartbeat_timeout_us = heartbeat_timeout_us,
        .hello = {
            .rank = rank, .n_workers = n, .n_shards = n, .n_parameters = N,
            .channel = FRAME_PEERS,
        },
    };
    assert_int_equal(pthread_create(&m->thread, NULL, connect_main, m), 0);
    return m;
}

static struct meeting *
start(int rank, int n, int64_t connect_us)
{
    return start_watched(rank, n, connect_us, 0);
}

/* Returns a connection to the peer, without a hello. */
static int
dial(const struct meeting *m)
{
    struct sockaddr_storage ss;
    socklen_t length = sizeof ss;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(getsockname(m->listeners[m->config.rank],
                                 (struct sockaddr *) &ss, &length), 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &ss, length), 0);
    return fd;
}

/* Plays a higher rank. */
static void
call(struct meeting *m, int rank)
{
    play_higher_rank(&m->others[rank], dial(m), &m->config.hello, rank,
                     m->config.rank);
}

/* Plays a lower rank. */
static void
answer(struct meeting *m, int rank)
{
    struct link *link = &m->others[rank];
    struct frame frame = { .type = FRAME_WELCOME };
    int fd;

    do {
        fd = accept(m->listeners[rank], NULL, NULL);
    } while (fd < 0);
    link_init(link, fd);
    await_frame(link, FRAME_HELLO);
    assert_int_equal(link->frame.hello.rank, m->config.rank);
    assert_int_equal(link->frame.hello.shard, rank);
    send_frame(link, &frame);
}

/* Checks that all are connected, or the message of the peer. */
static void
finish(struct meeting *m, const char *error)
{
    assert_int_equal(pthread_join(m->thread, NULL), 0);
    if (error) {
        assert_non_null(m->error);
        assert_string_equal(m->error, error);
    } else {
        assert_null(m->error);
    }
    for (int i = 0; i < m->config.n; i++) {
        assert_true(error || i == m->config.rank || m->links[i].fd >= 0);
        link_close(&m->links[i]);
        link_close(&m->others[i]);
        close(m->listeners[i]);
        free(m->names[i]);
    }
    free(m->error);
    free(m);
    alarm(0);
}

UNIT_TEST(a_peer_waits_for_no_other_before_it_connects_to_a_third)
{
    struct meeting *m = start(N / 2, N, INT64_C(1000000) * LIMIT_S);
    struct frame abort = { .type = FRAME_ABORT };
    int silent = dial(m);
    struct link stranger;

    link_init(&stranger, dial(m));
    send_frame(&stranger, &abort);
    for (int i = N - 1; i > N / 2; i--) {
        call(m, i);
    }
    for (int i = N / 2 - 1; i >= 0; i--) {
        answer(m, i);
    }
    finish(m, NULL);
    link_close(&stranger);
    close(silent);
}

UNIT_TEST(the_time_limit_begins_again_with_each_peer_that_connects)
{
    struct meeting *m = start(0, 4, INT64_C(1000000) * LIMIT_S);

    for (int i = 1; i < 4; i++) {
        call(m, i);
        later_s += LIMIT_S * 9 / 10;
    }
    finish(m, NULL);
}

/* Peer 1 may have all its connections, and counts the silence of others. */
UNIT_TEST(a_peer_that_waits_for_others_sends_heartbeats)
{
    struct meeting *m = start_watched(0, 3, INT64_C(1000000) * LIMIT_S,
                                      400000);

    call(m, 1);
    await_frame(&m->others[1], FRAME_HEARTBEAT);
    await_frame(&m->others[1], FRAME_HEARTBEAT);
    call(m, 2);
    finish(m, NULL);
}

UNIT_TEST(a_peer_names_those_that_are_missing)
{
    struct meeting *m = start(1, 4, INT64_C(1000000) * LIMIT_S);
    char *expected = message("2 of 3 peers did not connect: 0 (%s), 3 (%s), "
                             "and none for %d s", m->names[0], m->names[3],
                             LIMIT_S);
    int impatient;

    call(m, 2);
    later_s += LIMIT_S + 1;
    impatient = dial(m);        /* Ends the poll of the peer. */
    finish(m, expected);
    close(impatient);
    free(expected);
}
