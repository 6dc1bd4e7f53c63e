/* SPDX-License-Identifier: Apache-2.0 */

/* Peers that fall silent are noticed by their heartbeats. */

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/trainer/ps/ps-jobs.h"
#include "tests/unit/unit-test.h"

/* A server that is stopped keeps its connections, but not its heartbeats. */
UNIT_TEST(a_silent_server_is_noticed)
{
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 1, .reconnect_timeout_us = 1000000,
    });
    struct ps_client *client = connect_training(&server, 1, 1000000);
    static float weights[N], gradient[N];
    enum ps_result result;
    uint64_t iteration;
    double loss = 0;
    char *error;

    assert_int_equal(ps_client_begin(client, weights, &iteration, &error),
                     PS_OK);
    for (int i = 0; i < 200; i++) {     /* Heartbeats have begun. */
        step(client, &iteration, weights);
    }
    usleep(300000);
    kill(server.pid, SIGSTOP);
    do {
        result = ps_client_exchange(client, &iteration, gradient, 1, &loss,
                                    weights, &error);
    } while (result == PS_OK);
    assert_int_equal(result, PS_FAILED);
    assert_says(error, "silent");
    ps_client_destroy(client);
    kill_process(server.pid);
}

/* A worker that is stopped, likewise: its server ends. */
UNIT_TEST(a_silent_worker_is_noticed)
{
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 1, .reconnect_timeout_us = 1000000,
        .heartbeat_timeout_us = 2000000,
    });
    pid_t worker = start_process();
    int status;

    if (!worker) {
        struct ps_client *client = connect_training(&server, 1, 2000000);
        static float weights[N];
        uint64_t iteration;
        char *error;

        ps_client_begin(client, weights, &iteration, &error);
        usleep(2500000);        /* Computes longer than the deadline. */
        step(client, &iteration, weights);
        raise(SIGSTOP);
        _exit(0);
    }
    while (waitpid(worker, &status, WUNTRACED) < 0) {
        assert_int_equal(errno, EINTR);
    }
    assert_true(WIFSTOPPED(status));
    assert_int_equal(await_end(server.pid), 1);
    kill_process(worker);
}

int
unit_test_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(TIMEOUT_S);
    return 0;
}
