/* SPDX-License-Identifier: Apache-2.0 */

/* Connections that are cut, and frames that do not fit: nothing counts twice,
 * nothing hangs.  Servers and a proxy are processes. */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "tests/unit/trainer/ps/ps-jobs.h"
#include "tests/unit/unit-test.h"
#include "trainer/net/channel.h"
#include "trainer/net/frame.h"
#include "trainer/net/link.h"
#include "trainer/net/token.h"
#include "trainer/ps/store-client.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/sync.h"

#define HELLO 156               /* Bytes of a hello's frame, */
#define WELCOME 60              /* and of the answer's. */

static struct store_client *
connect_store(int port)
{
    struct store_client *client;
    const char *servers[1];
    char target[32];

    snprintf(target, sizeof target, "127.0.0.1:%d", port);
    servers[0] = target;
    assert_null(store_client_create(
        &(struct ps_client_config){
            .servers = servers,
            .n_servers = 1,
            .n_workers = 1,
            .key_space = UINT64_MAX,
            .width = 2,
            .optimiser = optimiser_find("sum"),
            .reconnect_timeout_us = 5000000,
        },
        &client));
    return client;
}

static void
wait_for(struct store_client *client, ps_handle handle)
{
    char *error = store_wait(client, handle);

    if (error) {
        print_error("%s\n", error);
    }
    assert_null(error);
}

/* Counts in a store behind a proxy that cuts.  Every count must be there
 * exactly once, and every reply must be the one of its own place in the
 * order. */
static void
count_through(const struct cut cuts[], int n_cuts)
{
    enum { ROUNDS = 40 };
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 1, .reconnect_timeout_us = 5000000,
    });
    struct server proxy = start_proxy(&server, cuts, n_cuts);
    struct store_client *client = connect_store(proxy.port);
    static float ones[2 * N], got[2 * N], answers[ROUNDS][6];
    uint64_t keys[3] = { 5, 1000, UINT64_MAX - 1 };
    static uint64_t many[N];
    ps_handle last = 0;

    for (int i = 0; i < N; i++) {
        ones[2 * i] = ones[2 * i + 1] = 1;
        many[i] = 2000 + 3 * i;
    }
    for (int i = 0; i < ROUNDS; i++) {
        store_push_keys(client, many + 7, 3, ones);
        store_push_keys(client, keys, 3, ones);
        store_push_keys(client, keys, 3, ones);
        last = store_pull_keys(client, keys, 3, answers[i]);
        if (i % 10 == 9) {
            store_push_keys(client, many, N, ones);
        }
        if (i % 3) {
            wait_for(client, last);
        }
    }
    wait_for(client, store_pull_keys(client, many, N, got));
    for (int i = 0; i < 2 * N; i++) {
        assert_true(got[i] == ROUNDS / 10 + (i >= 14 && i < 20 ? ROUNDS : 0));
    }
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < 6; j++) {
            /* Of an answer that was lost, later updates are part. */
            assert_true(answers[i][j] >= 2 * (i + 1)
                        && answers[i][j] <= 2 * ROUNDS);
        }
    }
    wait_for(client, store_pull_keys(client, keys, 3, got));
    for (int i = 0; i < 6; i++) {
        assert_true(got[i] == 2 * ROUNDS);
    }
    store_client_destroy(client);
    assert_int_equal(await_end(server.pid), 0);
    kill_process(proxy.pid);
}

/* Offsets in the first frames behind the hello: in a header, between header
 * and body, in keys, in values, between frames, and in what is long. */
UNIT_TEST(cuts_towards_the_server_count_nothing_twice)
{
    enum { N_CUTS = 60 };
    struct cut cuts[N_CUTS];

    for (int i = 0; i < N_CUTS; i++) {
        cuts[i].to_server = HELLO + 1 + 9 * i;
        cuts[i].to_client = 0;
    }
    cuts[20].to_server = 1;
    cuts[21].to_server = HELLO / 2;
    cuts[22].to_server = HELLO;
    cuts[50].to_server = 100000;
    cuts[51].to_server = 150000;
    cuts[52].to_server = 170000;
    count_through(cuts, N_CUTS);
}

UNIT_TEST(cuts_towards_the_client_count_nothing_twice)
{
    enum { N_CUTS = 50 };
    struct cut cuts[N_CUTS];

    for (int i = 0; i < N_CUTS; i++) {
        cuts[i].to_server = 0;
        cuts[i].to_client = WELCOME + 1 + 7 * i;
    }
    cuts[20].to_client = 1;
    cuts[21].to_client = 60;
    cuts[22].to_client = WELCOME;
    count_through(cuts, N_CUTS);
}

/* Training. */

static void
train_through_cuts(const char *scheme, int n_cuts)
{
    struct cut cuts[40];
    struct sync_spec spec;
    char *wrong = sync_spec_parse(scheme, &spec);
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 1, .reconnect_timeout_us = 5000000, .sync = &spec,
    });
    static float weights[N];
    struct ps_client *client;
    struct server proxy;
    uint64_t iteration;
    char *error;

    for (int i = 0; i < n_cuts; i++) {
        cuts[i].to_server = i % 2 ? 0 : HELLO + 1 + i * 4999;
        cuts[i].to_client = i % 2 ? WELCOME + 1 + i * 4999 : 0;
    }
    assert_null(wrong);
    proxy = start_proxy(&server, cuts, n_cuts);
    client = connect_training(&proxy, 1, 0);
    memset(weights, 0, sizeof weights);
    assert_int_equal(ps_client_begin(client, weights, &iteration, &error),
                     PS_OK);
    while (iteration < 60) {
        uint64_t before = iteration;

        step(client, &iteration, weights);
        assert_int_equal(iteration, before + 1);
    }
    ps_client_destroy(client);
    assert_int_equal(await_end(server.pid), 0);
    kill_process(proxy.pid);
}

UNIT_TEST(cut_gradients_count_nothing_twice)
{
    train_through_cuts("bsp", 40);
    train_through_cuts("asp", 8);
    train_through_cuts("ssp,staleness=0", 8);
    train_through_cuts("backup,backups=0", 8);
}

/* Pushes until it cannot any more. */
static pid_t
start_pusher(const struct server *server)
{
    pid_t pid = start_process();

    if (!pid) {
        static float weights[N], zeros[N];
        struct ps_client *client;
        double loss = 0;
        uint64_t iteration;
        char *error;
        bool ok = !try_training(server, 1, 10000000, 0, &client)
                  && ps_client_begin(client, weights, &iteration, &error)
                     == PS_OK;

        while (ok) {
            ok = ps_client_exchange(client, &iteration, zeros, 1, &loss,
                                    weights, &error) == PS_OK;
        }
        _exit(1);
    }
    return pid;
}

/* What a scheme said on a connection that is lost it does not say again. */
UNIT_TEST(a_scheme_with_messages_ends_with_a_connection)
{
    static const char *const schemes[] = {
        "static,ratios=1", "lbbsp-cpu", "lbbsp-gpu", "flexrr", "essp",
    };

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct cut cut = { .to_server = HELLO + 1000000 };
        struct sync_spec spec;
        char *wrong = sync_spec_parse(schemes[i], &spec);
        struct server server = start_server((struct ps_server_config) {
            .n_workers = 1, .reconnect_timeout_us = 60000000, .sync = &spec,
        });
        struct server proxy = start_proxy(&server, &cut, 1);
        pid_t pusher = start_pusher(&proxy);

        assert_null(wrong);
        assert_int_equal(await_end(server.pid), 1);
        kill_process(pusher);
        kill_process(proxy.pid);
    }
}

/* Sends a hello of a store and then 'frame'.  Returns true if the server
 * answered that with an abort and the end of the connection. */
static bool
is_refused(const struct server *server, struct frame frame,
           const uint8_t *body)
{
    struct frame hello = {
        .type = FRAME_HELLO,
        .hello = {
            .n_workers = 1, .n_shards = 2, .n_parameters = 100, .width = 2,
            .key_space = 1000, .channel = FRAME_STORE, .epoch = FRAME_NONE,
            .rewind = FRAME_NONE,
        },
    };
    uint8_t text[FRAME_MAX_TEXT];
    struct link link;
    bool aborted = false;
    char *error;

    link_init(&link, connect_blocking(server));
    link_send(&link, &hello, NULL);
    link_send_copy(&link, &frame, body);
    assert_int_equal(link_flush(&link), 0);
    for (;;) {
        switch (link_receive(&link, &error)) {
        case LINK_HEAD:
            aborted = aborted || link.frame.type == FRAME_ABORT;
            link_set_payload(&link, text);
            break;
        case LINK_FRAME:
        case LINK_AGAIN:
            break;
        case LINK_END:
            free(error);
            link_close(&link);
            return aborted;
        }
    }
}

/* Server 0 of 2 has keys 0 to 499, two values each. */
UNIT_TEST(frames_that_do_not_fit_a_store_are_refused)
{
    static const uint8_t body[1024] = { 0 };
    const struct frame frames[] = {
        { .type = FRAME_UPDATE_KEYS, .keys = { 9, 2, 3, 0, 0 } },
        { .type = FRAME_UPDATE_KEYS, .keys = { 498, 3, 2, 0, 0 } },
        { .type = FRAME_UPDATE_KEYS,
          .keys = { 7, 3, 2, 8, 0 } }, /* 7, 0, 0. */
        { .type = FRAME_READ_KEYS, .keys = { 7, 3, 0, 3, 0 } },
        { .type = FRAME_READ_KEYS, .keys = { 0, FRAME_MAX_FLOATS, 0, 0, 0 } },
        { .type = FRAME_PUSH, .gradient.n = 4 },
        { .type = FRAME_WEIGHTS, .weights.n = 4 },
        { .type = FRAME_HEARTBEAT },
        { .type = FRAME_SCHEME },
    };

    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        struct server server = start_server((struct ps_server_config) {
            .n_workers = 1, .reconnect_timeout_us = 100000,
        });

        assert_true(is_refused(&server, frames[i], body));
        assert_int_equal(await_end(server.pid), 1);
    }
}

/* A peer that takes the server for another peer gets an error, and a worker
 * that comes after it trains. */
UNIT_TEST(a_peer_that_trains_without_servers_is_refused)
{
    struct server server = start_server((struct ps_server_config) {
        .n_workers = 1, .reconnect_timeout_us = 1000000,
    });
    char *name = message("127.0.0.1:%d", server.port), *error;
    static float weights[N];
    struct ps_client *client;
    struct channel channel;
    uint64_t iteration;

    channel_init(&channel, name,
                 &(struct frame_hello){ .n_workers = 1,
                                        .n_shards = 1,
                                        .n_parameters = N,
                                        .width = 1,
                                        .channel = FRAME_PEERS,
                                        .epoch = FRAME_NONE,
                                        .rewind = FRAME_NONE },
                 NULL, NULL, NULL);
    error = channel_open(&channel, 5000000);
    assert_non_null(error);
    assert_non_null(strstr(error, "of a peer, which trains without servers"));
    assert_null(strchr(error, '\n'));
    free(error);
    channel_end(&channel);
    client = connect_training(&server, 1, 0);
    assert_int_equal(ps_client_begin(client, weights, &iteration, &error),
                     PS_OK);
    step(client, &iteration, weights);
    ps_client_destroy(client);
    assert_int_equal(await_end(server.pid), 0);
    free(name);
}

static void
load_token(const char *text)
{
    if (text) {
        setenv(TOKEN_VARIABLE, text, 1);
    } else {
        unsetenv(TOKEN_VARIABLE);
    }
    assert_null(token_load(NULL));
}

/* Programs without the token of the job connect first.  The server closes
 * their connections and trains with its own worker. */
UNIT_TEST(a_server_waits_for_the_workers_of_its_job)
{
    char *tokens[] = { token_create(), token_create(), NULL };
    static float weights[N];
    struct server server;
    struct ps_client *client;
    uint64_t iteration;
    char *error;

    load_token(tokens[0]);
    server = start_server((struct ps_server_config) {
        .n_workers = 1, .reconnect_timeout_us = 3000000,
    });
    for (int i = 1; i < 3; i++) {
        load_token(tokens[i]);
        error = try_training(&server, 1, 100000, 0, &client);
        assert_non_null(error);
        free(error);
    }
    load_token(tokens[0]);
    client = connect_training(&server, 1, 0);
    memset(weights, 0, sizeof weights);
    assert_int_equal(ps_client_begin(client, weights, &iteration, &error),
                     PS_OK);
    assert_int_equal(iteration, 0);
    step(client, &iteration, weights);
    assert_counts(weights, iteration);
    ps_client_destroy(client);
    assert_int_equal(await_end(server.pid), 0);
    load_token(NULL);
    free(tokens[0]);
    free(tokens[1]);
}

/* More strangers than places connect, and say nothing. */
UNIT_TEST(silent_strangers_keep_no_worker_out)
{
    struct server server = start_server((struct ps_server_config){
        .n_workers = 1,
        .reconnect_timeout_us = 3000000,
    });
    int64_t began = clock_monotonic_us();
    static float weights[N];
    struct ps_client *client;
    int strangers[400];
    uint64_t iteration;
    char *error;

    for (size_t i = 0; i < N_ELEMENTS(strangers); i++) {
        strangers[i] = connect_blocking(&server);
    }
    client = connect_training(&server, 1, 0);
    assert_int_equal(ps_client_begin(client, weights, &iteration, &error),
                     PS_OK);
    step(client, &iteration, weights);
    assert_true(clock_monotonic_us() - began < 5000000);
    ps_client_destroy(client);
    assert_int_equal(await_end(server.pid), 0);
    for (size_t i = 0; i < N_ELEMENTS(strangers); i++) {
        close(strangers[i]);
    }
}

int
unit_test_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(TIMEOUT_S);
    return 0;
}
