/* SPDX-License-Identifier: Apache-2.0 */

/* A worker or a server is killed in the middle of a training, under each
 * scheme: everybody else ends with one line that names it, and no gradient has
 * been counted twice.
 *
 * Four workers push gradients of ones, each of one sample, and count in shared
 * memory what they have begun to push and what was answered.  A scheme that
 * waits makes one update of 1 of an iteration; one that does not makes an
 * update of a quarter of each gradient.  So a worker's weights say how many
 * gradients are in them, to the bit. */

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
#define PATIENCE_US 1000000     /* Of servers, and of workers: */
#define WORKER_PATIENCE_US 200000
#define MAX_ERROR 256

/* How a worker's process ends. */
enum { ENDED, FAILED, MISCOUNTED };

static const struct scheme {
    const char *name;
    bool waits;                 /* Weights count iterations, not gradients. */
    bool bears_loss;            /* A worker may lose its connection. */
    uint32_t ahead;             /* Own gradients that may lack in weights. */
} schemes[] = {
    { "bsp", true, true, 0 },
    { "static,ratios=1:1:1:1", true, false, 0 },
    { "lbbsp-cpu", true, false, 0 },
    { "lbbsp-gpu", true, false, 0 },
    { "flexrr", true, false, 0 },
    { "backup", true, true, 0 },
    { "groups,groups=4", false, false, 0 },
    { "ssp,staleness=2", false, true, 0 },
    { "essp,staleness=2", false, false, 2 },
    { "asp", false, true, 0 },
};

/* What the processes of a run share. */
struct shared {
    atomic_uint begun[N_WORKERS];       /* Pushes, each counted before it */
    atomic_uint answered[N_WORKERS];    /* leaves, and after its answer. */
    char errors[N_WORKERS][MAX_ERROR];  /* What each ended with. */
};

static struct shared *
make_shared(void)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(shared != MAP_FAILED);
    return shared;
}

/* Whether 'weights' hold each gradient once at most, and all of ours that were
 * answered before, but for those on their way. */
static bool
counts_are_right(const struct scheme *scheme, const struct shared *shared,
                 const float *weights, uint64_t iteration)
{
    unsigned int begun = 0;
    float least;

    if (scheme->waits) {
        for (int i = 0; i < N; i++) {
            if (weights[i] != iteration) {
                return false;
            }
        }
        return true;
    }
    for (int i = 0; i < N_WORKERS; i++) {
        begun += shared->begun[i];
    }
    least = shared->begun[my_rank] - (float) scheme->ahead;
    for (int i = 0; i < N; i++) {
        float n = weights[i] * N_WORKERS;

        if (n != (uint32_t) n || n < least || n > begun) {
            return false;
        }
    }
    return true;
}

static int
push_until_it_fails(const struct scheme *scheme, struct shared *shared,
                    const struct server *server)
{
    static float weights[N], ones[N];
    struct ps_client *client;
    uint64_t iteration;
    char *error = try_training(server, 1, WORKER_PATIENCE_US, 0, &client);
    enum ps_result result = PS_FAILED;
    double loss = 0.5;

    for (int i = 0; i < N; i++) {
        ones[i] = 1;
    }
    if (!error) {
        result = ps_client_begin(client, weights, &iteration, &error);
    }
    while (result == PS_OK) {
        struct sync_message m;

        while (ps_client_receive(client, &m)) {
            if (m.kind == SYNC_ROLE && m.n & SYNC_ROLE_PIPELINE) {
                ps_client_set_max_in_flight(client, m.total);
            }
        }
        shared->begun[my_rank]++;
        result = ps_client_exchange(client, &iteration, ones, 1, &loss,
                                    weights, &error);
        if (result != PS_OK) {
            break;
        }
        if (!counts_are_right(scheme, shared, weights, iteration)) {
            return MISCOUNTED;
        }
        shared->answered[my_rank]++;
    }
    if (result == PS_FAILED) {
        snprintf(shared->errors[my_rank], MAX_ERROR, "%s", error);
    }
    return result == PS_FAILED ? FAILED : ENDED;
}

static pid_t
start_pusher(const struct scheme *scheme, struct shared *shared,
             const struct server *server, int rank)
{
    pid_t pid = start_process();

    if (!pid) {
        my_rank = rank;
        n_workers = N_WORKERS;
        _exit(push_until_it_fails(scheme, shared, server));
    }
    return pid;
}

/* A training in its middle: everybody has pushed some times. */
struct run {
    const struct scheme *scheme;
    struct shared *shared;
    struct sync_spec spec;
    struct server server, hosts[N_WORKERS];     /* Of groups, if any. */
    pid_t workers[N_WORKERS];
};

static void
run_begin(struct run *run, const struct scheme *scheme)
{
    run->scheme = scheme;
    run->shared = make_shared();
    assert_null(sync_spec_parse(scheme->name, &run->spec));
    run->server = start_server((struct ps_server_config) {
        .n_workers = N_WORKERS, .reconnect_timeout_us = PATIENCE_US,
        .sync = &run->spec,
    });
    for (int i = 0; i < run->spec.groups; i++) {
        run->hosts[i] = start_group_server(&run->server);
    }
    for (int i = 0; i < N_WORKERS; i++) {
        run->workers[i] = start_pusher(scheme, run->shared, &run->server, i);
    }
    for (int i = 0; i < N_WORKERS; i++) {
        while (run->shared->answered[i] < 10) {
            usleep(1000);
        }
    }
}

static void
run_end(struct run *run)
{
    for (int i = 0; i < run->spec.groups; i++) {
        assert_int_equal(await_end(run->hosts[i].pid), 1);
    }
    munmap(run->shared, sizeof *run->shared);
}

/* All workers but 'except' must have failed, with 'words' in what they say. */
static void
assert_failed(const struct run *run, int except, const char *words)
{
    for (int i = 0; i < N_WORKERS; i++) {
        const char *error = run->shared->errors[i];

        if (i == except) {
            continue;
        }
        if (await_end(run->workers[i]) != FAILED || !strstr(error, words)
            || strchr(error, '\n')) {
            fail_msg("%s: worker %d ended with \"%s\"", run->scheme->name, i,
                     error);
        }
    }
}

/* Where a lost connection is borne, the worker's place is kept for a while,
 * but not for one that knows nothing. */
static void
assert_nobody_takes_its_place(const struct run *run)
{
    unsigned int begun = run->shared->begun[VICTIM];
    pid_t again = start_pusher(run->scheme, run->shared, &run->server,
                               VICTIM);

    assert_int_equal(await_end(again), FAILED);
    assert_int_equal(run->shared->begun[VICTIM], begun);
    assert_non_null(strstr(run->shared->errors[VICTIM], "no checkpoints"));
}

UNIT_TEST(a_killed_worker_ends_the_job)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        char error[MAX_ERROR], words[32];
        struct run run;

        run_begin(&run, &schemes[i]);
        kill(run.workers[VICTIM], SIGKILL);
        assert_int_equal(await_end(run.workers[VICTIM]), 128 + SIGKILL);
        if (schemes[i].bears_loss) {
            assert_nobody_takes_its_place(&run);
        }
        snprintf(words, sizeof words, "worker %d", VICTIM);
        assert_failed(&run, VICTIM, words);
        assert_int_equal(await_server(&run.server, error), 1);
        if (!strstr(error, words) || strchr(error, '\n')) {
            fail_msg("%s: the server ended with \"%s\"", schemes[i].name,
                     error);
        }
        run_end(&run);
    }
}

UNIT_TEST(a_killed_server_ends_the_job)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        char error[MAX_ERROR], words[32];
        struct run run;

        run_begin(&run, &schemes[i]);
        kill(run.server.pid, SIGKILL);
        assert_int_equal(await_server(&run.server, error), 128 + SIGKILL);
        snprintf(words, sizeof words, "server 127.0.0.1:%d", run.server.port);
        assert_failed(&run, -1, words);
        run_end(&run);
    }
}

int
unit_test_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(TIMEOUT_S);
    return 0;
}
