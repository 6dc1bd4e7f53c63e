/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/rpc-call.h"

#include <errno.h>
#include <stdlib.h>

#include "fatal-signal.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"

/* Waits for the reply with 'id' until 'deadline'. */
static int
await_reply(struct jsonrpc *rpc, const struct json *id, long long deadline,
            struct jsonrpc_msg **replyp)
{
    while (time_msec() < deadline) {
        struct jsonrpc_msg *msg;
        int error;

        jsonrpc_run(rpc);
        error = jsonrpc_recv(rpc, &msg);
        if (!error) {
            if ((msg->type == JSONRPC_REPLY || msg->type == JSONRPC_ERROR)
                && msg->id && json_equal(msg->id, id)) {
                *replyp = msg;
                return 0;
            }
            jsonrpc_msg_destroy(msg);
            continue;
        } else if (error != EAGAIN) {
            return error == EOF ? ECONNRESET : error;
        }
        jsonrpc_wait(rpc);
        jsonrpc_recv_wait(rpc);
        poll_timer_wait_until(deadline);
        poll_block();
    }
    return ETIMEDOUT;
}

/* Connects to 'remote' ("unix:...", "tcp:...", "ssl:..."), sends and destroys
 * 'request', and stores the reply in '*replyp', which the caller must free
 * with jsonrpc_msg_destroy().  Returns 0 or a positive errno value, ETIMEDOUT
 * after 'timeout_ms'; then '*replyp' is NULL. */
int
rpc_call(const char *remote, struct jsonrpc_msg *request, int timeout_ms,
         struct jsonrpc_msg **replyp)
{
    long long deadline = time_msec() + timeout_ms;
    struct json *id = json_clone(request->id);
    struct stream *stream;
    int error;

    /* Closing by the server must be an error, not a SIGPIPE. */
    fatal_ignore_sigpipe();
    *replyp = NULL;
    error = stream_open_block(jsonrpc_stream_open(remote, &stream, 0),
                              timeout_ms, &stream);
    if (error) {
        jsonrpc_msg_destroy(request);
    } else {
        struct jsonrpc *rpc = jsonrpc_open(stream);

        error = jsonrpc_send(rpc, request);
        if (!error) {
            error = await_reply(rpc, id, deadline, replyp);
        }
        jsonrpc_close(rpc);
    }
    json_destroy(id);
    return error;
}

static char *
string_or_json(const struct json *json)
{
    return json->type == JSON_STRING ? xstrdup(json_string(json))
                                     : json_to_string(json, JSSF_SORT);
}

/* Runs unixctl 'command' in the daemon that listens on 'socket' and stores its
 * reply in '*replyp', which the caller frees.  Returns NULL if successful,
 * otherwise an error message that the caller frees; '*errnump' is then a
 * positive errno value if the daemon could not be reached, 0 if it refused. */
char *
rpc_unixctl(const char *socket, const char *command,
            size_t n_args, const char *const *args, int timeout_ms,
            char **replyp, int *errnump)
{
    char *remote = xasprintf("unix:%s", socket);
    struct json *params = json_array_create_empty();
    struct jsonrpc_msg *reply;
    char *message = NULL;
    int error;

    for (size_t i = 0; i < n_args; i++) {
        json_array_add(params, json_string_create(args[i]));
    }
    *replyp = NULL;
    error = rpc_call(remote, jsonrpc_create_request(command, params, NULL),
                     timeout_ms, &reply);
    if (error) {
        message = xasprintf("%s: cannot be reached (%s)", socket,
                            ovs_strerror(error));
    } else if (reply->type == JSONRPC_ERROR) {
        char *text = string_or_json(reply->error);
        size_t n = strlen(text);

        /* unixctl ends errors with a line feed. */
        message = xasprintf("%s: %.*s", command,
                            (int) (n && text[n - 1] == '\n' ? n - 1 : n),
                            text);
        free(text);
    } else {
        *replyp = string_or_json(reply->result);
    }
    *errnump = error;
    jsonrpc_msg_destroy(reply);
    free(remote);
    return message;
}
