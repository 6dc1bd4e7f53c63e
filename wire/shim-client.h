/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CLIENT_H
#define SHIM_CLIENT_H 1

/* The agent's end of a shim's control socket.
 *
 *
 * Motivation
 * ==========
 *
 * The agent must never wait for a shim, so requests are queued and replies
 * come when they come.  Tools and tests would rather wait.
 *
 *
 * Usage
 * =====
 *
 * In a loop:
 *
 *    error = shim_client_open(path, &c);
 *    error = shim_client_send(c, SHIM_SLOT_SET, slots, size, &xid);
 *    ...poll shim_client_fd(c) for POLLIN, and for POLLOUT too while
 *       shim_client_wants_write(c)...
 *    error = shim_client_run(c);
 *    while (!(error = shim_client_receive(c, &msg, &body))) {
 *        ...msg->xid, msg->type, msg->status; msg->length less the header is
 *           the size of body...
 *    }
 *    if (error != EAGAIN) {
 *        shim_client_close(c);
 *        ...and open again after a while...
 *    }
 *
 * Or waiting:
 *
 *    error = shim_client_transact(c, SHIM_HELLO, NULL, 0, 1000, &body, &size);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * What shim_client_receive() and shim_client_transact() return is the
 * client's, until the next call on it.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct shim_client;

int shim_client_open(const char *path, struct shim_client **);
void shim_client_close(struct shim_client *);

int shim_client_fd(const struct shim_client *);
bool shim_client_wants_write(const struct shim_client *);
int shim_client_run(struct shim_client *);

int shim_client_send(struct shim_client *, uint16_t type, const void *body,
                     size_t size, uint32_t *xid);
int shim_client_receive(struct shim_client *, const struct shim_msg **,
                        const void **body);

int shim_client_transact(struct shim_client *, uint16_t type,
                         const void *body, size_t size, int timeout_ms,
                         const void **reply, size_t *reply_size);

#endif /* wire/shim-client.h */
