/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RPC_POLL_H
#define RPC_POLL_H 1

/* The same JSON-RPC request to a daemon at intervals, without blocking.
 *
 * The request is sent once the connection is there and again after each
 * interval, but never while a reply is pending.  The connection is tried again
 * within a second or two of a failure; over a network, it is closed if nothing
 * is received for ANSWERS_MS.
 *
 *    poll = rpc_poll_create("unix:/x.ctl", "cluster/status", params, 2000);
 *    while ((reply = rpc_poll_run(poll))) {
 *        ...jsonrpc_msg_destroy(reply)...
 *    }
 *    rpc_poll_wait(poll);
 *    rpc_poll_destroy(poll);
 *
 * Main thread only. */

struct json;
struct jsonrpc_msg;
struct rpc_poll;

/* Takes ownership of 'params'. */
struct rpc_poll *rpc_poll_create(const char *remote, const char *method,
                                 struct json *params, int interval_ms);
void rpc_poll_destroy(struct rpc_poll *);

/* Returns a reply, which may be an error, or NULL. */
struct jsonrpc_msg *rpc_poll_run(struct rpc_poll *);
void rpc_poll_wait(struct rpc_poll *);

#endif /* controller/ovsdb/rpc-poll.h */
