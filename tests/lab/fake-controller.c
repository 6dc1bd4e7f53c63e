/* SPDX-License-Identifier: Apache-2.0 */

/* A controller without a mind, for tests of the agent.
 *
 * usage: fake-controller REMOTE FILE
 *
 * Listens on REMOTE, prints the parameter of each "telemetry" notification as
 * a line, and twice a second sends the notifications "order" and "lease" with
 * the contents of FILE.order and FILE, as long as these are there. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatal-signal.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"

#define LEASE_MS 500

static void
send_file(struct jsonrpc *agent, const char *method, const char *file)
{
    struct json *json = json_from_file(file);

    if (json->type == JSON_OBJECT) {
        jsonrpc_send(agent,
                     jsonrpc_create_notify(method, json_array_create_1(json)));
    } else {
        json_destroy(json);     /* No such file. */
    }
}

static void
receive(struct jsonrpc *agent)
{
    struct jsonrpc_msg *msg;

    while (!jsonrpc_recv(agent, &msg)) {
        if (msg->type == JSONRPC_NOTIFY && !strcmp(msg->method, "telemetry")) {
            char *text = json_to_string(msg->params->array.elems[0],
                                        JSSF_SORT);

            puts(text);
            free(text);
        } else if (msg->type == JSONRPC_REQUEST) {
            jsonrpc_send(agent, jsonrpc_create_reply(json_clone(msg->params),
                                                     msg->id));
        }
        jsonrpc_msg_destroy(msg);
    }
}

int
main(int argc, char *argv[])
{
    struct pstream *listener;
    struct jsonrpc *agent = NULL;
    long long next = 0;
    char *order;

    set_program_name(argv[0]);
    fatal_ignore_sigpipe();     /* Agents come and go. */
    if (argc != 3) {
        ovs_fatal(0, "usage: fake-controller REMOTE FILE");
    }
    order = xasprintf("%s.order", argv[2]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (pstream_open(argv[1], &listener, 0)) {
        ovs_fatal(0, "%s: cannot listen", argv[1]);
    }
    for (;;) {
        struct stream *stream;

        if (!pstream_accept(listener, &stream)) {
            jsonrpc_close(agent);
            agent = jsonrpc_open(stream);
        }
        if (agent) {
            jsonrpc_run(agent);
            receive(agent);
            if (time_msec() >= next) {
                next = time_msec() + LEASE_MS;
                send_file(agent, "order", order);
                send_file(agent, "lease", argv[2]);
            }
            if (jsonrpc_get_status(agent)) {
                jsonrpc_close(agent);
                agent = NULL;
            }
        }
        pstream_wait(listener);
        if (agent) {
            jsonrpc_wait(agent);
            jsonrpc_recv_wait(agent);
            poll_timer_wait_until(next);
        }
        poll_block();
    }
}
