/* SPDX-License-Identifier: Apache-2.0 */

/* A server or a worker is killed in the middle of a training, under each
 * scheme, and started again: all go back to the last checkpoint, go on, and
 * in the end every gradient counts once.
 *
 * Four workers push gradients of ones in their first STEPS iterations, and of
 * zeros after that, until all have seen the end.  A scheme that waits makes an
 * update of 1 of an iteration of ones, one that does not makes one of a
 * quarter of each gradient: if each counts once, weights end at STEPS. */

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/trainer/ps/ps-jobs.h"
#include "tests/unit/unit-test.h"
#include "trainer/schemes/sync.h"

#define N_WORKERS 4
#define VICTIM 2
#define STEPS 60
#define AHEAD 2                 /* Iterations that weights may lack. */
#define EVERY 5
#define PATIENCE_US 10000000

static const char *const schemes[] = {
    "bsp", "static,ratios=1:2:1:1", "lbbsp-cpu", "lbbsp-gpu", "flexrr",
    "backup", "groups,groups=1", "groups,groups=4", "ssp,staleness=2",
    "essp,staleness=2", "asp",
};

/* What the processes of a run share. */
static struct board {
    atomic_uint answered[N_WORKERS];    /* Exchanges. */
    atomic_bool may_end;                /* No process is killed any more. */
    atomic_int n_done;          /* Workers that have seen STEPS since. */
    atomic_uint n_gone_back;    /* Iterations that did not follow. */
    atomic_bool wrong;          /* Weights say that something counts twice. */
    _Atomic float most[N_WORKERS];      /* Of the weights. */
} *board;

static void
note_weights(const float *weights)
{
    float most = 0;

    for (int i = 0; i < N; i++) {
        most = weights[i] > most ? weights[i] : most;
    }
    board->wrong = board->wrong || most > STEPS;
    board->most[my_rank] = weights[0] == weights[N - 1] ? most : 0;
}

static void
take_messages(struct ps_client *client)
{
    struct sync_message m;

    while (ps_client_receive(client, &m)) {
        if (m.kind == SYNC_ROLE && m.n & SYNC_ROLE_PIPELINE) {
            ps_client_set_max_in_flight(client, m.total);
        }
    }
}

/* Exits with 0 if the training ended as it should. */
static void
push(const struct server servers[], int n_servers)
{
    static float weights[N], ones[N], zeros[N];
    struct ps_client *client;
    uint64_t iteration;
    double loss = 0.5;
    char *error = try_training(servers, n_servers, PATIENCE_US, 0, &client);
    enum ps_result result = error ? PS_FAILED
        : ps_client_begin(client, weights, &iteration, &error);
    bool done = false, last = false;

    for (int i = 0; i < N; i++) {
        ones[i] = 1;
    }
    while (result == PS_OK && !last) {
        uint64_t before = iteration;
        bool may_end = board->may_end;

        take_messages(client);
        last = board->n_done == N_WORKERS;
        result = ps_client_exchange(client, &iteration,
                                    iteration < STEPS ? ones : zeros, 1,
                                    &loss, weights, &error);
        if (result == PS_OK) {
            note_weights(weights);
            board->answered[my_rank]++;
            board->n_gone_back += iteration <= before;
            if (may_end && iteration >= STEPS + AHEAD && !done) {
                done = true;
                board->n_done++;
            }
        }
    }
    if (error) {
        fprintf(stderr, "worker %d: %s\n", my_rank, error);
    }
    ps_client_destroy(client);
    _exit(result == PS_FAILED || !done);
}

static pid_t
start_worker(const struct server servers[], int n_servers, int rank)
{
    pid_t pid = start_process();

    if (!pid) {
        my_rank = rank;
        n_workers = N_WORKERS;
        push(servers, n_servers);
    }
    return pid;
}

/* Waits until all have pushed 'n' times more. */
static void
await_pushes(unsigned int n)
{
    unsigned int before[N_WORKERS];

    for (int i = 0; i < N_WORKERS; i++) {
        before[i] = board->answered[i];
    }
    for (int i = 0; i < N_WORKERS; i++) {
        while (board->answered[i] < before[i] + n) {
            usleep(1000);
        }
    }
}

/* In all runs of a test.  One may by chance be where its checkpoint is. */
static unsigned int n_gone_back;

struct run {
    struct folder folder;
    struct sync_spec spec;
    struct ps_server_config config;
    struct server servers[2];
    int n_servers;
    struct server hosts[N_WORKERS];     /* Of groups, if any. */
    pid_t workers[N_WORKERS];
};

static void
run_begin(struct run *run, const char *scheme, int n_servers)
{
    memset(board, 0, sizeof *board);
    assert_null(sync_spec_parse(scheme, &run->spec));
    run->folder = make_folder();
    run->n_servers = n_servers;
    run->config = (struct ps_server_config) {
        .n_workers = N_WORKERS, .reconnect_timeout_us = PATIENCE_US,
        .sync = &run->spec, .checkpoint = run->folder.path,
        .checkpoint_every = EVERY, .resume = true,
    };
    for (int i = 0; i < n_servers; i++) {
        run->servers[i] = start_server(run->config);
    }
    for (int i = 0; i < run->spec.groups; i++) {
        run->hosts[i] = start_group_server(run->servers);
    }
    for (int i = 0; i < N_WORKERS; i++) {
        run->workers[i] = start_worker(run->servers, n_servers, i);
    }
    await_pushes(3 * EVERY);
}

static void
kill_server(struct run *run, int i)
{
    struct ps_server_config config = run->config;

    kill(run->servers[i].pid, SIGKILL);
    assert_int_equal(await_end(run->servers[i].pid), 128 + SIGKILL);
    config.port = run->servers[i].port;
    run->servers[i] = start_server(config);
}

static void
kill_worker(struct run *run)
{
    kill_process(run->workers[VICTIM]);
    run->workers[VICTIM] = start_worker(run->servers, run->n_servers, VICTIM);
}

static void
run_end(struct run *run, const char *scheme)
{
    float most = 0;

    board->may_end = true;
    for (int i = 0; i < N_WORKERS; i++) {
        if (await_end(run->workers[i])) {
            fail_msg("%s: worker %d failed", scheme, i);
        }
        most = board->most[i] > most ? board->most[i] : most;
    }
    if (most != STEPS || board->wrong) {
        fail_msg("%s: weights end at %g", scheme, most);
    }
    n_gone_back += board->n_gone_back;
    for (int i = 0; i < run->n_servers; i++) {
        assert_int_equal(await_end(run->servers[i].pid), 0);
    }
    for (int i = 0; i < run->spec.groups; i++) {
        assert_int_equal(await_end(run->hosts[i].pid), 0);
    }
    for (int i = 0; i < run->n_servers; i++) {
        remove_folder(&run->folder, i);
    }
}

UNIT_TEST(a_killed_server_resumes)
{
    n_gone_back = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct run run;

        run_begin(&run, schemes[i], 1);
        kill_server(&run, 0);
        await_pushes(2);
        run_end(&run, schemes[i]);
    }
    assert_true(n_gone_back > 0);
}

/* Each of two servers has counted other gradients when they go back.  Under
 * "backup" each also drops others, so that nothing can be said of both. */
UNIT_TEST(each_of_two_killed_servers_resumes)
{
    n_gone_back = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct run run;

        if (strncmp(schemes[i], "groups", 6) && strcmp(schemes[i], "backup")) {
            run_begin(&run, schemes[i], 2);
            kill_server(&run, 0);
            await_pushes(2 * EVERY);
            kill_server(&run, 1);
            await_pushes(2);
            run_end(&run, schemes[i]);
        }
    }
    assert_true(n_gone_back > 0);
}

UNIT_TEST(a_killed_worker_resumes)
{
    n_gone_back = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct run run;

        run_begin(&run, schemes[i], 1);
        kill_worker(&run);
        await_pushes(2);
        run_end(&run, schemes[i]);
    }
    assert_true(n_gone_back > 0);
}

int
unit_test_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(TIMEOUT_S);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return board == MAP_FAILED;
}
