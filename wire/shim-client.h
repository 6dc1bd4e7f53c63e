/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CLIENT_H
#define SHIM_CLIENT_H 1

/* Client of a shim's control socket: see shim-protocol.h.
 *
 * The agent must never wait for a shim, so requests are queued, and replies
 * are received later.  Tools and tests may wait: shim_client_transact().
 *
 * In a loop:
 *
 *    error = shim_client_open(path, &c);
 *    error = shim_client_send(c, SHIM_SLOT_SET, slots, size, &xid);
 *    ...poll shim_client_fd(c) for POLLIN, and for POLLOUT too while
 *       shim_client_wants_write(c)...
 *    error = shim_client_run(c);
 *    while (!(error = shim_client_receive(c, &msg, &body))) {
 *        ...msg->xid, msg->type, msg->status; 'body' has msg->length bytes
 *           less sizeof *msg...
 *    }
 *    if (error != EAGAIN) {
 *        shim_client_close(c);
 *        ...open again later...
 *    }
 *
 * Or waiting:
 *
 *    error = shim_client_transact(c, SHIM_HELLO, NULL, 0, 1000, &body, &size);
 *
 * Messages and bodies belong to the client until the next call on it.  One
 * thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct shim_client;

/* Connects without waiting.  Returns 0 or a positive errno. */
int shim_client_open(const char *path, struct shim_client **);
void shim_client_close(struct shim_client *);

int shim_client_fd(const struct shim_client *);
bool shim_client_wants_write(const struct shim_client *);

/* Writes and reads what is possible now.  Returns 0 or a positive errno: the
 * connection is broken, but received messages can still be taken. */
int shim_client_run(struct shim_client *);

/* Queues a request and sends what is possible now.  Stores the 'xid' of its
 * reply unless 'xid' is null.  Returns 0 or a positive errno: EMSGSIZE, or the
 * connection is broken. */
int shim_client_send(struct shim_client *, uint16_t type, const void *body,
                     size_t size, uint32_t *xid);

/* Returns 0, EAGAIN if no message has arrived, or another errno: the
 * connection is broken. */
int shim_client_receive(struct shim_client *, const struct shim_msg **,
                        const void **body);

/* Sends a request and waits for its reply.  Discards other messages.  Stores
 * the reply's body, which is aligned for any type, unless 'reply' is null.
 * Returns 0 or a positive errno: the reply's status, ETIMEDOUT, or the
 * connection is broken. */
int shim_client_transact(struct shim_client *, uint16_t type,
                         const void *body, size_t size, int timeout_ms,
                         const void **reply, size_t *reply_size);

#endif /* wire/shim-client.h */
