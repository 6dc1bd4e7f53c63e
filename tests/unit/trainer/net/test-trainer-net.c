/* SPDX-License-Identifier: Apache-2.0 */

/* The event loop, the dispatcher and the heartbeat of trainer/net, and the
 * format of checkpoints. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/unit-test.h"
#include "trainer/backend/backend.h"
#include "trainer/net/channel.h"
#include "trainer/net/dispatch.h"
#include "trainer/net/event-loop.h"
#include "trainer/net/heartbeat.h"
#include "trainer/ps/checkpoint.h"
#include "trainer/schemes/sync.h"

struct source {
    struct event_loop *loop;
    int fd;
    int64_t until_us;
    bool breaks;
    int n_runs;
    short revents;
};

static int
source_wait(void *source_, short *events, int64_t *until_us)
{
    const struct source *source = source_;

    if (source->until_us) {
        *until_us = source->until_us;
    }
    return source->fd;
}

static void
source_run(void *source_, short revents)
{
    struct source *source = source_;

    source->n_runs++;
    source->revents = revents;
    if (source->breaks) {
        event_loop_break(source->loop);
    }
}

static const struct event_class source_class = { source_wait, source_run };

UNIT_TEST(a_loop_runs_the_sources_with_events)
{
    struct event_loop loop;
    struct source a = { .loop = &loop }, b = { .loop = &loop };
    int fds[2], others[2];

    assert_false(pipe(fds) || pipe(others));
    a.fd = fds[0];
    b.fd = others[0];
    event_loop_init(&loop, NULL, NULL);
    event_loop_add(&loop, &source_class, &a);
    event_loop_add(&loop, &source_class, &b);
    assert_int_equal(event_loop_run(&loop, 0), 0);
    assert_int_equal(a.n_runs + b.n_runs, 0);

    assert_int_equal(write(others[1], "x", 1), 1);
    assert_int_equal(event_loop_run(&loop, INT64_MAX), 0);
    assert_true(!a.n_runs && b.n_runs == 1 && b.revents & POLLIN);

    assert_int_equal(write(fds[1], "x", 1), 1);
    a.breaks = true;
    assert_int_equal(event_loop_run(&loop, INT64_MAX), 0);
    assert_true(a.n_runs == 1 && b.n_runs == 1);
    event_loop_uninit(&loop);
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        close(others[i]);
    }
}

UNIT_TEST(a_loop_runs_a_source_when_its_time_has_come)
{
    int64_t begin = clock_monotonic_us();
    struct event_loop loop;
    struct source a = { .fd = -1, .until_us = INT64_MAX };

    event_loop_init(&loop, NULL, NULL);
    event_loop_add(&loop, &source_class, &a);
    assert_int_equal(event_loop_run(&loop, begin + 5000), 0);
    assert_int_equal(a.n_runs, 0);
    a.until_us = begin + 20000;
    while (!a.n_runs) {
        assert_int_equal(event_loop_run(&loop, INT64_MAX), 0);
    }
    assert_true(clock_monotonic_us() >= begin + 20000);
    assert_int_equal(a.revents, 0);
    event_loop_uninit(&loop);
}

static void *
take_mutex(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

UNIT_TEST(a_loop_releases_its_mutex_only_while_it_waits)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct event_loop loop;
    pthread_t thread;

    event_loop_init(&loop, NULL, NULL);
    loop.mutex = &mutex;
    pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&thread, NULL, take_mutex, &mutex), 0);
    event_loop_run(&loop, clock_monotonic_us() + 50000);
    assert_int_equal(pthread_mutex_trylock(&mutex), EBUSY);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    event_loop_uninit(&loop);
}

static char *
count_frame(void *n, struct link *link)
{
    ++*(int *) n;
    return NULL;
}

UNIT_TEST(frames_go_to_the_handler_of_their_kind_and_others_are_refused)
{
    static const struct dispatcher dispatcher = {
        .handlers = { [FRAME_HEARTBEAT] = { .end = count_frame } },
    };
    struct frame frame = { .type = FRAME_HEARTBEAT };
    struct link in, out;
    int fds[2], n = 0;
    char *error;

    assert_false(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
    link_init(&in, fds[0]);
    link_init(&out, fds[1]);
    for (int i = 0; i < 3; i++) {
        link_send(&out, &frame, NULL);
    }
    link_flush(&out);
    assert_int_equal(dispatch_frames(&in, &dispatcher, &n, &error),
                     DISPATCH_AGAIN);
    assert_int_equal(n, 3);

    frame.type = FRAME_BYE;
    link_send(&out, &frame, NULL);
    link_flush(&out);
    while (dispatch_frames(&in, &dispatcher, &n, &error) == DISPATCH_AGAIN) {
        continue;
    }
    assert_is(error, "bye: not expected here");

    link_close(&out);
    while (dispatch_frames(&in, &dispatcher, &n, &error) == DISPATCH_AGAIN) {
        continue;
    }
    free(error);
    link_close(&in);
}

UNIT_TEST(a_channel_that_ends_sends_its_queue_and_a_bye)
{
    struct frame frame = { .type = FRAME_HEARTBEAT };
    struct frame_hello hello = { .rank = 0 };
    enum frame_type types[2];
    struct channel channel;
    struct link link;
    char *error;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    channel_init(&channel, "h:1", &hello, NULL, NULL, NULL);
    link_init(&channel.link, fds[0]);
    link_send(&channel.link, &frame, NULL);
    channel_end(&channel);
    link_init(&link, fds[1]);
    for (int i = 0; i < 2; i++) {
        enum link_state got;

        do {
            got = link_receive(&link, &error);
            assert_int_not_equal(got, LINK_END);
        } while (got != LINK_FRAME);
        types[i] = link.frame.type;
    }
    assert_int_equal(types[0], FRAME_HEARTBEAT);
    assert_int_equal(types[1], FRAME_BYE);
    link_close(&link);
}

UNIT_TEST(heartbeats_are_due_four_times_per_timeout)
{
    struct heartbeat hb;
    int n = 0;

    heartbeat_start(&hb, 400000, 1);
    for (int64_t now = 1; now <= 1000001; now += 1000) {
        n += heartbeat_due(&hb, now);
    }
    assert_int_equal(n, 11);
    assert_false(heartbeat_is_silent(&hb, 400001));
    assert_true(heartbeat_is_silent(&hb, 400002));
    heartbeat_heard(&hb, 400000);
    assert_false(heartbeat_is_silent(&hb, 800000));
    assert_int_equal(heartbeat_silence_s(&hb, 2400000), 2);
    heartbeat_stop(&hb);
    assert_false(heartbeat_is_silent(&hb, INT64_MAX));

    heartbeat_start(&hb, 0, 1);         /* Never too silent; once a second. */
    assert_false(heartbeat_is_silent(&hb, INT64_MAX));
    assert_true(heartbeat_due(&hb, 1));
    assert_false(heartbeat_due(&hb, 1000000));
    assert_true(heartbeat_due(&hb, 1000001));
}

/* The servers of a job may have their last checkpoints at different
 * iterations: each goes back to its last one that is not later. */
UNIT_TEST(the_last_checkpoint_that_is_not_later_is_read)
{
    const struct frame_hello hello = {
        .n_workers = 1, .n_shards = 1, .n_parameters = 10, .optimiser = 2,
    };
    char dir[] = "/tmp/test-checkpoint-XXXXXX";
    struct backend *b;
    struct sync *sync;

    assert_int_equal(backend_open(&backend_cpu, 0, 1, &b), 0);
    sync = sync_create(&sync_bsp, &(struct sync_config) {
        .backend = b, .n_workers = 1, .n = 10,
        .optimiser = optimiser_defaults(optimiser_find("sgd"), 1, 0),
    });
    assert_non_null(mkdtemp(dir));
    for (uint64_t i = 10; i <= 40; i += 10) {
        assert_null(checkpoint_write(dir, &hello, &sync_bsp, sync, i));
    }
    for (uint64_t i = 10; i < 50; i += 5) {
        uint64_t iteration = i;

        assert_null(
            checkpoint_read(dir, &hello, false, &iteration, &sync_bsp, sync));
        assert_int_equal(iteration, i / 10 * 10);
        assert_int_equal(sync_iteration(sync), iteration);
    }
    checkpoint_prune(dir, &hello, 31, UINT64_MAX);
    assert_int_equal(checkpoint_last(dir, 0, 1), 30);
    checkpoint_prune(dir, &hello, 0, 30);
    assert_int_equal(checkpoint_last(dir, 0, 1), 30);
    checkpoint_prune(dir, &hello, 0, UINT64_MAX);
    assert_int_equal(rmdir(dir), 0);    /* It is empty. */
    sync_destroy(sync);
    backend_close(b);
}
