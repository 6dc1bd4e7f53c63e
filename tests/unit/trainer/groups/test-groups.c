/* SPDX-License-Identifier: Apache-2.0 */

/* A central server, group servers and workers, all of them processes: groups
 * change and group servers die, and every gradient counts once. */

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/trainer/ps/ps-jobs.h"
#include "tests/unit/unit-test.h"
#include "trainer/net/link.h"
#include "trainer/process/control.h"
#include "trainer/schemes/sync.h"

#define WORKERS 4

/* What the processes of a test share. */
struct board {
    atomic_int pushed[WORKERS]; /* Gradients that were answered. */
    atomic_bool may_end;        /* No process is killed any more. */
    atomic_int n_done;          /* Workers that have pushed since. */
    atomic_bool rests;          /* Workers rest now and then. */
    _Atomic float most[WORKERS];        /* Of the weights. */
};

static struct board *board;

static struct server
start_central(const char *scheme, int64_t heartbeat_timeout_us)
{
    struct sync_spec spec;

    memset(board, 0, sizeof *board);
    assert_null(sync_spec_parse(scheme, &spec));
    return start_server((struct ps_server_config) {
        .n_workers = WORKERS, .sync = &spec, .reconnect_timeout_us = 1000000,
        .heartbeat_timeout_us = heartbeat_timeout_us,
    });
}

static void
start_hosts(const struct server *central, struct server hosts[], int n)
{
    for (int i = 0; i < n; i++) {
        hosts[i] = start_group_server(central);
    }
}

/* Group servers end with 'status'. */
static void
await_hosts(const struct server hosts[], int n, int status)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(await_end(hosts[i].pid), status);
    }
}

/* Reported duration of a worker's steps. */
typedef double seconds_fn(int rank, int step);

/* From now on 'tell' is the input of this process. */
static int tell;

static void
create_control(void)
{
    int fds[2];

    if (pipe(fds) || dup2(fds[0], STDIN_FILENO) < 0) {
        _exit(1);
    }
    tell = fds[1];
    my_control = control_create(0);
}

/* Pauses until it has been resumed, which it has been, and somewhat longer:
 * the others make some steps. */
static bool
rest(struct ps_client *client, uint64_t *iteration, float *weights,
     char **error)
{
    uint64_t before = *iteration;
    char line[] = "until 1\n";

    if (write(tell, line, sizeof line - 1) != sizeof line - 1
        || ps_client_idle(client, weights, iteration, error) != PS_OK) {
        return false;
    }
    control_run(my_control);
    poll(NULL, 0, 1 + my_rank);
    return ps_client_resume(client, weights, iteration, error) == PS_OK
           && *iteration == before;
}

/* Pushes 'n' gradients of ones, and then zeros until the others have pushed
 * theirs too, and have heard of the last group servers.  Weights are a quarter
 * of the ones that count. */
static void
worker_main(const struct server *central, int n, seconds_fn *seconds)
{
    static float weights[N], ones[N], zeros[N];
    enum ps_result result = PS_OK;
    struct ps_client *client;
    uint64_t iteration;
    double loss = 0.5;
    char *error;
    bool ok;
    bool done = false;

    create_control();
    error = try_training(central, 1, 1000000, 0, &client);
    ok = !error && ps_client_begin(client, weights, &iteration, &error)
                        == PS_OK;
    for (int i = 0; i < N; i++) {
        ones[i] = 1;
    }
    for (int k = 0, last = false; ok && !last && result == PS_OK; k++) {
        struct sync_message m;
        uint64_t before = iteration;
        bool may_end;

        while (ps_client_receive(client, &m)) {
            ok = ok && m.kind == SYNC_ROLE;
        }
        if (board->rests && k < n && k % 5 == my_rank) {
            ok = ok && rest(client, &iteration, weights, &error);
        }
        ps_client_send(client, &(struct sync_message) {
            .kind = SYNC_REPORT, .worker = my_rank, .n = 1,
            .seconds = seconds ? seconds(my_rank, k) : 1,
        });
        may_end = board->may_end;
        last = board->n_done == WORKERS;
        result = ps_client_exchange(client, &iteration, k < n ? ones : zeros,
                                    1, &loss, weights, &error);
        ok = ok && (result == PS_OK || (result == PS_ENDED && k >= n));
        if (result == PS_OK) {
            ok = ok && iteration == before + 1
                 && weights[0] == weights[N - 1];
            board->most[my_rank] = weights[0];
            board->pushed[my_rank] += k < n;
            if (may_end && k >= n - 1 && !done) {
                done = true;
                board->n_done++;
            }
        }
    }
    if (error) {
        fprintf(stderr, "worker %d: %s\n", my_rank, error);
    }
    ps_client_destroy(client);
    _exit(!ok);
}

static void
start_workers(const struct server *central, int n, seconds_fn *seconds,
              pid_t pids[WORKERS])
{
    for (int i = 0; i < WORKERS; i++) {
        pids[i] = start_process();
        if (!pids[i]) {
            my_rank = i;
            n_workers = WORKERS;
            worker_main(central, n, seconds);
        }
    }
}

/* Waits until the workers have pushed 'n' gradients together. */
static void
await_pushes(int n)
{
    for (;;) {
        int sum = 0;

        for (int i = 0; i < WORKERS; i++) {
            sum += board->pushed[i];
        }
        if (sum >= n) {
            return;
        }
        poll(NULL, 0, 1);
    }
}

/* All of 'n' gradients of each worker count, and each once: the first to end
 * has seen them all. */
static void
await_counts(const struct server *central, const pid_t pids[WORKERS], int n)
{
    float most = 0;

    board->may_end = true;
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(await_end(pids[i]), 0);
        assert_int_equal(board->pushed[i], n);
        most = board->most[i] > most ? board->most[i] : most;
    }
    assert_true(most == n);
    assert_int_equal(await_end(central->pid), 0);
}

/* In the end there are as many group servers as groups, so that none comes too
 * late to hear of the end. */
static void
kill_group_servers_under(const char *scheme, int n_groups)
{
    enum { STEPS = 150, KILLS = 12 };
    struct server central = start_central(scheme, 0);
    struct server hosts[KILLS + WORKERS];
    int n = n_groups + 1;
    pid_t pids[WORKERS];

    start_hosts(&central, hosts, n);
    start_workers(&central, STEPS, NULL, pids);
    for (int i = 0; i < KILLS; i++) {
        await_pushes((i + 1) * WORKERS * STEPS / (KILLS + 2));
        kill_process(hosts[i].pid);
        if (i + 1 < KILLS) {
            hosts[n++] = start_group_server(&central);
        }
    }
    await_counts(&central, pids, STEPS);
    await_hosts(hosts + KILLS, n_groups, 0);
}

UNIT_TEST(killed_group_servers_count_nothing_twice)
{
    kill_group_servers_under("groups,groups=1", 1);
    kill_group_servers_under("groups,groups=2", 2);
}

/* First worker 3 is slow, then no worker, then worker 1. */
static double
changing_seconds(int rank, int step)
{
    return rank == (step < 60 ? 3 : step < 120 ? -1 : 1) ? 9 : 1;
}

UNIT_TEST(moving_workers_count_once)
{
    enum { STEPS = 200 };
    struct server central = start_central("groups", 0);
    struct server hosts[3];
    pid_t pids[WORKERS];

    start_hosts(&central, hosts, 3);
    start_workers(&central, STEPS, changing_seconds, pids);
    await_counts(&central, pids, STEPS);
    await_hosts(hosts, 3, 0);
}

/* All of a group rest at times, and all of all. */
UNIT_TEST(resting_workers_count_once)
{
    static const char *const schemes[] = {
        "groups,groups=1", "groups,groups=2", "groups,groups=4", "groups",
    };
    enum { STEPS = 60 };

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct server central = start_central(schemes[i], 0);
        struct server hosts[5];
        pid_t pids[WORKERS];

        board->rests = true;
        start_hosts(&central, hosts, 5);
        start_workers(&central, STEPS, changing_seconds, pids);
        await_pushes(WORKERS * STEPS / 3);
        kill_process(hosts[0].pid);
        await_counts(&central, pids, STEPS);
        await_hosts(hosts + 1, 4, 0);
    }
}

/* It stops in the middle of its work, and is not closed. */
UNIT_TEST(a_silent_group_server_is_replaced)
{
    enum { STEPS = 40 };
    struct server central = start_central("groups,groups=1", 2000000);
    struct server first = start_group_server(&central), second;
    pid_t pids[WORKERS];

    start_workers(&central, STEPS, NULL, pids);
    await_pushes(WORKERS * STEPS / 2);
    kill(first.pid, SIGSTOP);
    second = start_group_server(&central);
    await_counts(&central, pids, STEPS);
    kill_process(first.pid);
    assert_int_equal(await_end(second.pid), 0);
}

/* A connection to 'server' on which 'frame' was sent. */
static struct link
say(const struct server *server, struct frame frame, const void *body)
{
    int fd = connect_blocking(server);
    struct link link;

    assert_int_equal(link_tune(fd, NULL), 0);
    link_init(&link, fd);
    link_send(&link, &frame, body);
    link_flush(&link);          /* As far as it goes: some are refused. */
    return link;
}

/* No worker can connect to the first group server. */
UNIT_TEST(a_group_server_that_workers_cannot_reach_is_replaced)
{
    enum { STEPS = 20 };
    struct server central = start_central("groups,groups=1", 0);
    const char *nowhere = "127.0.0.1:1";
    struct link link = say(&central, (struct frame) {
        .type = FRAME_ENLIST, .payload_length = strlen(nowhere),
    }, nowhere);
    struct pollfd readable = { .fd = link.fd, .events = POLLIN };
    struct server host;
    pid_t pids[WORKERS];

    start_workers(&central, STEPS, NULL, pids);
    assert_int_equal(poll(&readable, 1, 20000), 1);     /* It has a group. */
    host = start_group_server(&central);
    await_counts(&central, pids, STEPS);
    assert_int_equal(await_end(host.pid), 0);
    link_close(&link);
}

/* Whether the other end closes 'link' within some seconds. */
static bool
is_closed(struct link *link)
{
    struct pollfd readable = { .fd = link->fd, .events = POLLIN };
    char bytes[512];

    while (poll(&readable, 1, 5000) > 0) {
        if (recv(link->fd, bytes, sizeof bytes, 0) <= 0) {
            link_close(link);
            return true;
        }
    }
    return false;
}

UNIT_TEST(unknown_connections_do_not_disturb)
{
    enum { STEPS = 60 };
    static const float gradient[4] = { 1e9, 1e9, 1e9, 1e9 };
    static const struct frame frames[] = {
        { .type = FRAME_PUSH,
          .gradient = { .n = 4, .iteration = 1, .n_samples = 1 } },
        { .type = FRAME_MEAN,
          .mean = { .n = 4, .generation = 1, .n_samples = 1 } },
        { .type = FRAME_LOST, .lost.generation = 1 },
        { .type = FRAME_PULL },
        { .type = FRAME_PAUSE },
        { .type = FRAME_PAUSED, .paused = { .n = 1, .generation = 1 } },
        { .type = FRAME_MOVE, .payload_length = 4 },
        { .type = FRAME_GROUP,
          .group = { .n = 2, .n_parameters = 7, .generation = 9 } },
        { .type = FRAME_JOIN, .join = { .rank = 1, .generation = 1 } },
        { .type = FRAME_ENLIST },
    };
    struct server central = start_central("groups,groups=2", 0);
    struct server hosts[2];
    pid_t pids[WORKERS];

    start_hosts(&central, hosts, 2);
    start_workers(&central, STEPS, NULL, pids);
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        struct link link = say(&central, frames[i], gradient);

        await_pushes((i + 1) * WORKERS * STEPS / 16);
        assert_true(is_closed(&link));
    }
    await_counts(&central, pids, STEPS);
    await_hosts(hosts, 2, 0);
}

/* The same to a group server with generation 1 for its first group. */
UNIT_TEST(unknown_connections_do_not_disturb_a_group)
{
    enum { STEPS = 60 };
    static const float gradient[N] = { 1e9 };
    static const struct frame frames[] = {
        { .type = FRAME_PUSH,
          .gradient = { .n = N, .iteration = 1, .n_samples = 1 } },
        { .type = FRAME_JOIN, .join = { .generation = 1, .rank = 99 } },
        { .type = FRAME_JOIN, .join = { .generation = 1, .rank = 1 } },
        { .type = FRAME_JOIN, .join = { .generation = 0, .rank = 1 } },
        { .type = FRAME_WEIGHTS, .weights = { .n = N, .iteration = 1 } },
        { .type = FRAME_PAUSED, .paused = { .n = 1, .generation = 1 } },
        { .type = FRAME_GROUP,
          .group = { .n = 2, .n_parameters = 7, .generation = 9 } },
        { .type = FRAME_HELLO },
    };
    struct server central = start_central("groups,groups=1", 0);
    struct server host = start_group_server(&central);
    pid_t pids[WORKERS];

    start_workers(&central, STEPS, NULL, pids);
    await_pushes(WORKERS);
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        struct link link = say(&host, frames[i], gradient);

        assert_true(is_closed(&link));
    }
    await_counts(&central, pids, STEPS);
    assert_int_equal(await_end(host.pid), 0);
}

/* A training of two groups that goes on for ever. */
static struct server
start_two_groups(struct server hosts[2], pid_t pids[WORKERS])
{
    struct server central = start_central("groups,groups=2", 0);

    start_hosts(&central, hosts, 2);
    start_workers(&central, 1000000, NULL, pids);
    await_pushes(100);
    return central;
}

UNIT_TEST(all_end_with_the_central_server)
{
    struct server hosts[2], central;
    pid_t pids[WORKERS];

    central = start_two_groups(hosts, pids);
    kill_process(central.pid);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(await_end(pids[i]), 1);
    }
    await_hosts(hosts, 2, 1);
}

UNIT_TEST(all_end_with_a_worker)
{
    struct server hosts[2], central;
    pid_t pids[WORKERS];

    central = start_two_groups(hosts, pids);
    kill_process(pids[2]);
    for (int i = 0; i < WORKERS; i++) {
        if (i != 2) {
            assert_int_equal(await_end(pids[i]), 1);
        }
    }
    assert_int_equal(await_end(central.pid), 1);
    await_hosts(hosts, 2, 1);
}

int
unit_test_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return board == MAP_FAILED;
}
