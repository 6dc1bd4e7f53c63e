/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RPC_WATCH_H
#define RPC_WATCH_H 1

/* Watches many connections of JSON-RPC at the cost of those with news.
 *
 * The poll loop of libopenvswitch passes the kernel each connection in
 * each iteration, and its caller then reads all of them.  A watch has one
 * descriptor of epoll in the poll loop, and returns those to run:
 *
 *    struct rpc_watched watched;         // Member of a connection.
 *
 *    rpc_watch_add(watch, &watched, rpc);
 *    rpc_watch_poll(watch);
 *    while ((w = rpc_watch_next(watch))) {
 *        ...run w->rpc, receive from it...
 *        rpc_watch_register(watch, w, true);
 *    }
 *    rpc_watch_wait(watch);
 *
 * Only its stream knows what a connection waits for: TLS may have to write
 * before it can read, and may hold bytes that it has decrypted.
 * rpc_watch_register() therefore lets the stream register with the poll loop,
 * and keeps what it waits for: the linker wraps these functions of the poll
 * loop (controller/meson.build).  It must be called after each use of a
 * connection, also if that only sends.  A stream that need not wait is run
 * again in the next iteration, and so is a new one.
 *
 * Thousands of connections also need memory: that of TLS is freed while it has
 * nothing to send or to decrypt.
 *
 * The watch does not own the connections; each must be removed before it is
 * closed.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "openvswitch/list.h"

struct jsonrpc;
struct rpc_watch;

/* Member of a connection of the caller.  Only 'rpc' is for others. */
struct rpc_watched {
    struct ovs_list node; /* In a list of struct rpc_watch; empty while it
                           * waits. */
    struct jsonrpc *rpc;
    int fd;          /* In the set of epoll, -1 if it is not there. */
    uint32_t events; /* For which it is there. */
};

struct rpc_watch *rpc_watch_create(void);
void rpc_watch_destroy(struct rpc_watch *);

void rpc_watch_add(struct rpc_watch *, struct rpc_watched *, struct jsonrpc *);
void rpc_watch_remove(struct rpc_watch *, struct rpc_watched *);

/* Notes what the connection waits for; for messages only with 'receives'. */
void rpc_watch_register(struct rpc_watch *, struct rpc_watched *,
                        bool receives);

void rpc_watch_poll(struct rpc_watch *);

/* Returns each connection with news as of rpc_watch_poll() once, then NULL. */
struct rpc_watched *rpc_watch_next(struct rpc_watch *);

void rpc_watch_wait(const struct rpc_watch *);

#endif /* controller/hosts/rpc-watch.h */
