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
#include "trainer/schemes/sync.h"

#define HELLO 156               /* Bytes of a hello's frame, */
#define WELCOME 60              /* and of the answer's. */

/* Every gradient must count exactly once, whatever is cut. */
static void
train_through_cuts(const char *scheme, const struct cut cuts[], int n_cuts)
{
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
    struct cut cuts[40];

    for (int i = 0; i < 40; i++) {
        cuts[i].to_server = i % 2 ? 0 : HELLO + 1 + i * 4999;
        cuts[i].to_client = i % 2 ? WELCOME + 1 + i * 4999 : 0;
    }
    train_through_cuts("bsp", cuts, 40);
    train_through_cuts("asp", cuts, 8);
    train_through_cuts("ssp,staleness=0", cuts, 8);
    train_through_cuts("backup,backups=0", cuts, 8);
}

/* In a header, between header and body, and in values, of either side. */
UNIT_TEST(cut_heads_count_nothing_twice)
{
    struct cut cuts[40];

    for (int i = 0; i < 40; i++) {
        cuts[i].to_server = i % 2 ? 0 : HELLO + 1 + 3 * i;
        cuts[i].to_client = i % 2 ? WELCOME + 1 + 3 * i : 0;
    }
    cuts[20].to_server = 1;
    cuts[21].to_client = 1;
    cuts[22].to_server = HELLO / 2;
    cuts[23].to_client = WELCOME;
    cuts[24].to_server = HELLO;
    train_through_cuts("asp", cuts, 40);
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

/* Sends a hello and then 'frame'.  Returns true if the server answered that
 * with an abort and the end of the connection. */
static bool
is_refused(const struct server *server, struct frame frame,
           const uint8_t *body)
{
    struct frame hello = {
        .type = FRAME_HELLO,
        .hello = {
            .n_workers = 1, .n_shards = 2, .n_parameters = 100,
            .epoch = FRAME_NONE, .rewind = FRAME_NONE,
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

UNIT_TEST(frames_that_do_not_fit_are_refused)
{
    static const uint8_t body[1024] = { 0 };
    const struct frame frames[] = {
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
