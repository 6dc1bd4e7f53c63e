/* SPDX-License-Identifier: Apache-2.0 */

/* A watch runs a connection when there is something to do, whether the kernel
 * or TLS has it, and leaves it alone otherwise. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/hosts/rpc-watch.h"
#include "controller/ovsdb/pki.h"
#include "jsonrpc.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "stream-ssl.h"
#include "stream.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

#define N_MESSAGES 40  /* Of one record of TLS, and several reads of it. */
#define LOST_MS 1000   /* Of a wake-up that was forgotten. */
#define LIMIT_MS 20000 /* Less than as many of them. */

static char dir[] = "/tmp/stagecoach-watch-XXXXXX";

int
unit_test_set_up(void **state)
{
    char *identity, *ca;

    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    if (!mkdtemp(dir)) {
        return -1;
    }
    assert_no_error(pki_init(dir));
    assert_no_error(pki_issue(dir, PKI_CONTROLLER, "c1", NULL, 90));
    identity = xasprintf("%s/controllers/c1/identity.pem", dir);
    ca = xasprintf("%s/controllers/c1/ca.pem", dir);
    stream_ssl_set_key_and_cert(identity, identity);
    stream_ssl_set_ca_cert_file(ca, false);
    free(identity);
    free(ca);
    return 0;
}

int
unit_test_tear_down(void **state)
{
    char *command = xasprintf("rm -r '%s'", dir);
    int status = system(command);

    free(command);
    return status;
}

struct fixture {
    struct pstream *listener;
    struct stream *client;
    struct rpc_watch *watch;
    struct rpc_watched server;
    struct jsonrpc *rpc; /* Of the client. */
    size_t n;            /* Messages that arrived. */
    bool ended;
};

/* Runs the server if it has news, for one message. */
static bool
turn(struct fixture *f, bool receives)
{
    struct rpc_watched *watched;
    struct jsonrpc_msg *msg;
    bool ran = false;

    rpc_watch_poll(f->watch);
    while ((watched = rpc_watch_next(f->watch))) {
        assert_ptr_equal(watched, &f->server);
        jsonrpc_run(watched->rpc);
        if (receives && !jsonrpc_recv(watched->rpc, &msg)) {
            jsonrpc_msg_destroy(msg);
            f->n++;
        }
        f->ended = jsonrpc_get_status(watched->rpc) == EOF;
        rpc_watch_register(f->watch, watched, receives);
        ran = true;
    }
    return ran;
}

/* Connects both ends through 'passive', which a client reaches as 'active' and
 * the number of the port, if it is one. */
static void
connect_both(struct fixture *f, const char *passive, const char *active)
{
    struct stream *stream = NULL;
    char *remote;

    memset(f, 0, sizeof *f);
    f->watch = rpc_watch_create();
    assert_int_equal(pstream_open(passive, &f->listener, 0), 0);
    remote = (strncmp(active, "ssl:", 4)
                  ? xstrdup(active)
                  : xasprintf("%s:%d", active,
                              ntohs(pstream_get_bound_port(f->listener))));
    assert_int_equal(stream_open(remote, &f->client, 0), 0);
    free(remote);
    for (long long end = time_msec() + LIMIT_MS;
         time_msec() < end && (!stream || stream_connect(f->client));) {
        if (stream) {
            turn(f, true);
        } else if (!pstream_accept(f->listener, &stream)) {
            rpc_watch_add(f->watch, &f->server, jsonrpc_open(stream));
        }
        stream_connect_wait(f->client);
        poll_timer_wait(1);
        poll_block();
    }
    assert_non_null(stream);
    assert_int_equal(stream_connect(f->client), 0);
    while (turn(f, true)) {
    }
}

static void
end_both(struct fixture *f)
{
    rpc_watch_remove(f->watch, &f->server);
    jsonrpc_close(f->server.rpc);
    rpc_watch_destroy(f->watch);
    pstream_close(f->listener);
}

/* Sends 'n' messages at once. */
static void
send_messages(struct fixture *f, size_t n)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < n; i++) {
        ds_put_format(&ds,
                      "{\"id\":null,\"method\":\"x\",\"params\":[\"%0300d\"]}",
                      (int) i);
    }
    assert_int_equal(stream_send(f->client, ds_cstr(&ds), ds.length),
                     ds.length);
    for (int i = 0; i < 1000; i++) {
        stream_run(f->client); /* TLS keeps what the kernel did not take. */
    }
    ds_destroy(&ds);
}

/* Lets the server wait and run until it has 'n' messages, or has ended. */
static void
await(struct fixture *f, size_t n, bool ended)
{
    long long end = time_msec() + LIMIT_MS;

    while (f->n < n || f->ended != ended) {
        rpc_watch_wait(f->watch);
        poll_timer_wait(LOST_MS);
        poll_block();
        turn(f, true);
        assert_true(time_msec() < end);
    }
    assert_int_equal(f->n, n);
}

static void
check_transport(const char *passive, const char *active)
{
    struct fixture f;

    connect_both(&f, passive, active);
    assert_false(turn(&f, true)); /* There is nothing to do. */

    send_messages(&f, N_MESSAGES);
    await(&f, N_MESSAGES, false);
    while (turn(&f, true)) {
    }

    /* A stream that does not receive is not run for what arrives. */
    rpc_watch_register(f.watch, &f.server, false);
    send_messages(&f, 1);
    assert_false(turn(&f, false));
    rpc_watch_register(f.watch, &f.server, true);
    await(&f, N_MESSAGES + 1, false);

    stream_close(f.client);
    await(&f, N_MESSAGES + 1, true);
    end_both(&f);
}

UNIT_TEST(a_socket_is_run_when_it_has_news)
{
    char *active = xasprintf("unix:%s/socket", dir);
    char *passive = xasprintf("p%s", active);

    check_transport(passive, active);
    free(passive);
    free(active);
}

UNIT_TEST(so_is_tls_that_holds_decrypted_messages)
{
    check_transport("pssl:0:127.0.0.1", "ssl:127.0.0.1");
}

UNIT_TEST(what_could_not_be_sent_is_sent_later)
{
    char *active = xasprintf("unix:%s/backlog", dir);
    char *passive = xasprintf("p%s", active);
    char *text = xasprintf("%01000000d", 1), buffer[65536];
    long long end = time_msec() + LIMIT_MS;
    struct fixture f;

    connect_both(&f, passive, active);
    jsonrpc_send(f.server.rpc,
                 jsonrpc_create_notify(
                     "x", json_array_create_1(json_string_create(text))));
    rpc_watch_register(f.watch, &f.server, true);
    assert_true(jsonrpc_get_backlog(f.server.rpc) > 0);
    assert_false(turn(&f, true));
    while (jsonrpc_get_backlog(f.server.rpc)) {
        stream_recv(f.client, buffer, sizeof buffer);
        turn(&f, true);
        assert_true(time_msec() < end);
    }
    stream_close(f.client);
    end_both(&f);
    free(text);
    free(passive);
    free(active);
}
