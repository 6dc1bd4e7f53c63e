/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SERVER_WATCH_H
#define SERVER_WATCH_H 1

/* Heartbeats between a worker and its servers, in a thread.
 *
 * The heartbeats have connections of their own, in the control class, so that
 * megabytes of gradients do not delay them, and a thread of their own, so that
 * a worker that computes for minutes still sends them.  A heartbeat carries
 * the worker's iteration; the server answers with its own.  The round trips
 * are reported at the end (process/report.h).
 *
 *    error = server_watch_create(names, n_servers, timeout_us, &loop,
 *                                client_failed, client, &watch);
 *    server_watch_set(watch, i, &hello, port);     // After each welcome.
 *    server_watch_destroy(watch);
 *
 * The functions are for one thread. */

#include <stdint.h>

struct event_loop;
struct frame_hello;
struct server_watch;

/* 'timeout_us' without an answer of a server is a failure: 'loop', of the
 * caller's thread, calls fail(), which takes ownership of the message.
 * Returns NULL or a message. */
char *server_watch_create(const char *const names[], int n_servers,
                          int64_t timeout_us, struct event_loop *loop,
                          void (*fail)(void *aux, char *why), void *aux,
                          struct server_watch **);
void server_watch_destroy(struct server_watch *);

/* Server 'i', which has welcomed 'hello', takes heartbeats at 'port'; 0: it
 * takes none. */
void server_watch_set(struct server_watch *, int i,
                      const struct frame_hello *, uint16_t port);
void server_watch_set_iteration(struct server_watch *, uint64_t);

#endif /* trainer/net/server-watch.h */
