/* SPDX-License-Identifier: Apache-2.0 */

/* FlexRR without an emulated machine: a worker receives while it computes a
 * piece.  The test is the other worker. */

#include <stdio.h>
#include <unistd.h>

#include "tests/unit/trainer/ps/ps-processes.h"
#include "tests/unit/unit-test.h"
#include "trainer/loop/loop.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/schemes/sync.h"

#define N 1158730 /* Parameters of CifarNet. */
#define SHARE 256 /* Two pieces, of a quarter of a second or more. */

static pid_t
start_worker(const struct options *o)
{
    pid_t pid = start_process();

    if (!pid) {
        struct control *control = control_create(o->target);

        _exit(!freopen("/dev/null", "w", stdout)
              || loop_run(o, control, &exchange_server));
    }
    return pid;
}

/* Sends 'm', and returns the answer to it. */
static struct sync_message
ask(struct ps_client *client, struct sync_message m)
{
    char *error;

    ps_client_send(client, &m);
    do {
        assert_int_equal(ps_client_wait(client, INT64_MAX, &error), PS_OK);
        assert_true(ps_client_receive(client, &m));
    } while (m.kind == SYNC_ROLE);
    return m;
}

/* A worker that received only between its two pieces would have begun the
 * second one before it was asked for it. */
UNIT_TEST(a_worker_gives_samples_while_it_computes)
{
    static float weights[N], zeros[N];
    char target[32];
    const char *argv[] = { "worker",   "--server",     target, "--workers",
                           "2",        "--rank",       "0",    "--model",
                           "cifarnet", "--batch",      "512",  "--image",
                           "32x32x3",  "--samples",    "512",  "--validation",
                           "1",        "--iterations", "1",    "--backend",
                           "cpu" };
    const char *names[] = { target };
    struct sync_message m = { .kind = SYNC_STATUS };
    struct ps_client *client;
    struct sync_spec spec;
    struct server server;
    struct options o;
    uint64_t iteration;
    double loss = 0;
    char *error;
    bool help;
    pid_t pid;

    assert_null(sync_spec_parse("flexrr,pieces=2", &spec));
    server = start_server(
        (struct ps_server_config){ .n_workers = 2, .sync = &spec });
    snprintf(target, sizeof target, "127.0.0.1:%d", server.port);
    assert_null(
        options_parse(sizeof argv / sizeof *argv, (char **) argv, &o, &help));
    pid = start_worker(&o);
    assert_null(ps_client_create(
        &(struct ps_client_config){ .servers = names,
                                    .n_servers = 1,
                                    .rank = 1,
                                    .n_workers = 2,
                                    .n_parameters = N,
                                    .seed = o.seed,
                                    .learning_rate = o.learning_rate,
                                    .momentum = o.momentum,
                                    .optimiser = optimiser_find(o.optimiser),
                                    .schedule = o.schedule },
        &client));
    assert_int_equal(ps_client_begin(client, weights, &iteration, &error),
                     PS_OK);
    while (m.kind == SYNC_STATUS && !m.n) { /* It has not begun. */
        m = ask(client, (struct sync_message){ .kind = SYNC_FIND });
    }
    assert_int_equal(m.n, SHARE / 2);
    m.kind = SYNC_HELP;
    m = ask(client, m);
    assert_int_equal(m.kind, SYNC_CONFIRM);
    assert_int_equal(ps_client_exchange(client, &iteration, zeros,
                                        SHARE + SHARE / 2, &loss, weights,
                                        &error),
                     PS_OK);
    assert_int_equal(await_end(pid), 0);
    ps_client_destroy(client);
    kill_process(server.pid);
}
