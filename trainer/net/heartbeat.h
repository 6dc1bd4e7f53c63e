/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_HEARTBEAT_H
#define PS_HEARTBEAT_H 1

/* A worker's sign of life to its servers, and theirs to it.
 *
 *
 * Motivation
 * ==========
 *
 * A connection that carries nothing says nothing about the other end: its
 * machine may be gone.  Once a second or more often a worker sends its
 * iteration to each server, which answers with its own.  This has connections
 * of its own, of the control class, so that megabytes of gradients do not
 * delay it, and a thread of its own, so that a worker that computes for
 * minutes is alive.
 *
 *
 * Usage
 * =====
 *
 *    error = heartbeat_create(names, n_servers, deadline_us, &heartbeat);
 *    heartbeat_watch(heartbeat, i, &hello, port);      // Also when it is
 *    ...                                               // another server.
 *    poll(heartbeat_fd(heartbeat)...);
 *    if (...readable...) {
 *        error = heartbeat_failure(heartbeat);
 *    }
 *    heartbeat_destroy(heartbeat);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The functions are for one thread. */

#include <stdint.h>

struct frame_hello;
struct heartbeat;

/* 'deadline_us' without an answer is a failure.  Returns NULL or a message. */
char *heartbeat_create(const char *const names[], int n_servers,
                       int64_t deadline_us, struct heartbeat **);
void heartbeat_destroy(struct heartbeat *);

/* Server 'i', which was given 'hello', takes heartbeats at 'port'; 0: it does
 * not. */
void heartbeat_watch(struct heartbeat *, int i, const struct frame_hello *,
                     uint16_t port);
void heartbeat_set_iteration(struct heartbeat *, uint64_t);

/* Readable after a failure. */
int heartbeat_fd(const struct heartbeat *);

/* Says which server is silent; the caller frees it. */
char *heartbeat_failure(struct heartbeat *);

#endif /* trainer/net/heartbeat.h */
