/* SPDX-License-Identifier: Apache-2.0 */

/* A store has no checkpoints: the death of one ends it for all, in time and
 * with a message that names it. */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/trainer/ps/ps-processes.h"
#include "tests/unit/unit-test.h"
#include "trainer/ps/store-client.h"
#include "trainer/schemes/optimiser.h"

#define N 100000 /* Keys. */

static float values[N];

static struct store_client *
join(const struct server servers[], int n_servers, int rank,
     int n_workers, int64_t heartbeat_timeout_us)
{
    struct store_client *client;
    static char targets[2][32];
    static const char *names[2] = { targets[0], targets[1] };

    for (int i = 0; i < n_servers; i++) {
        snprintf(targets[i], sizeof targets[i], "127.0.0.1:%d",
                 servers[i].port);
    }
    assert_null(store_client_create(
        &(struct ps_client_config){
            .servers = names,
            .n_servers = n_servers,
            .rank = rank,
            .n_workers = n_workers,
            .key_space = UINT64_MAX,
            .width = 1,
            .optimiser = optimiser_find("sum"),
            .reconnect_timeout_us = 500000,
            .heartbeat_timeout_us = heartbeat_timeout_us,
        },
        &client));
    return client;
}

/* Returns N keys over the whole key space. */
static const uint64_t *
all_keys(void)
{
    static uint64_t keys[N];

    for (uint64_t i = 0; i < N; i++) {
        keys[i] = i * (UINT64_MAX / N);
    }
    return keys;
}

/* Pushes and pulls, many keys and few, until something is wrong. */
static char *
use(struct store_client *client, int n)
{
    static const uint64_t keys[2] = { 3, UINT64_MAX - 2 };
    const uint64_t *all = all_keys();
    char *error = NULL;

    for (int i = 0; i < n && !error; i++) {
        float two[2];

        store_push_keys(client, all, N, values);
        store_push_keys(client, keys, 2, values);
        store_pull_keys(client, keys, 2, two);
        error = store_wait(client, store_pull_keys(client, all, N, values));
    }
    return error;
}

/* Fails with 'wanted', and with the same ever after. */
static void
assert_ends(struct store_client *client, const char *wanted)
{
    char *error = use(client, INT32_MAX), *again = use(client, 1);

    assert_non_null(error);
    if (!strstr(error, wanted)) {
        fail_msg("\"%s\", \"%s\" is wanted", error, wanted);
    }
    assert_non_null(again);
    assert_string_equal(error, again);
    free(error);
    free(again);
    store_client_destroy(client);
}

UNIT_TEST(a_killed_server_is_named)
{
    struct server servers[2];
    struct store_client *client;
    char name[32];

    for (int i = 0; i < 2; i++) {
        servers[i] = start_server((struct ps_server_config) {
            .n_workers = 1, .reconnect_timeout_us = 500000,
        });
    }
    client = join(servers, 2, 0, 1, 0);
    assert_null(use(client, 3));
    kill_process(servers[1].pid);
    snprintf(name, sizeof name, "127.0.0.1:%d: ", servers[1].port);
    assert_ends(client, name);

    /* It has received a bye. */
    assert_int_equal(await_end(servers[0].pid), 0);
}

/* No worker goes on with the values of another server. */
UNIT_TEST(a_server_that_was_started_again_is_another_one)
{
    struct ps_server_config config = {
        .n_workers = 1, .reconnect_timeout_us = 500000,
    };
    struct server server = start_server(config);
    struct store_client *client = join(&server, 1, 0, 1, 0);

    assert_null(use(client, 3));
    kill_process(server.pid);
    config.port = server.port;
    server = start_server(config);
    assert_ends(client, "was started again, what it had is lost");
    kill_process(server.pid);
}

/* With all operations on their way: no worker waits for ever. */
UNIT_TEST(a_silent_server_is_noticed)
{
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 1, .reconnect_timeout_us = 500000,
    });
    struct store_client *client = join(&server, 1, 0, 1, 1000000);
    char *error = use(client, 3);

    assert_null(error);
    usleep(400000);             /* Heartbeats have begun. */
    kill(server.pid, SIGSTOP);
    assert_ends(client, "silent");
    kill_process(server.pid);
}

UNIT_TEST(a_killed_worker_ends_the_others)
{
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 2, .reconnect_timeout_us = 300000,
    });
    pid_t worker = start_process();

    if (!worker) {
        struct store_client *client = join(&server, 1, 1, 2, 0);

        use(client, 3);
        store_push_keys(client, all_keys(), N, values);
        store_flush(client);
        raise(SIGKILL);
    }
    assert_int_equal(await_end(worker), 128 + SIGKILL);
    assert_ends(join(&server, 1, 0, 2, 0), "worker 1 did not reconnect");
    assert_int_equal(await_end(server.pid), 1);
}

UNIT_TEST(a_worker_may_end_before_the_last_one_comes)
{
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 2, .reconnect_timeout_us = 300000,
        .heartbeat_timeout_us = 300000,
    });
    struct store_client *client = join(&server, 1, 0, 2, 300000);

    assert_null(use(client, 3));
    usleep(400000);             /* Heartbeats have begun. */
    store_client_destroy(client);
    usleep(800000);             /* They are missing, but it said bye. */
    client = join(&server, 1, 1, 2, 300000);
    assert_null(use(client, 3));
    store_client_destroy(client);
    assert_int_equal(await_end(server.pid), 0);
}

int
unit_test_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(TIMEOUT_S);
    return 0;
}
