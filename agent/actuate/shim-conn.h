/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CONN_H
#define SHIM_CONN_H 1

/* A connection to a shim that never blocks.
 *
 *
 * Motivation
 * ==========
 *
 * shim/control/protocol.h says what the messages are; this is how they get to
 * the shim and back without the agent ever waiting for it.
 *
 *
 * Usage
 * =====
 *
 *    error = shim_conn_open(path, &conn);
 *    xid = shim_conn_send(conn, SHIM_SLOT_SET, rows, sizeof rows);
 *    while (!(error = shim_conn_recv(conn, &msg, &body, &size))) {
 *        ...
 *    }
 *    if (error != EAGAIN) { close and connect again }
 *    shim_conn_wait(conn);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A received message is valid until the next call with the connection.  One
 * thread. */

#include <stddef.h>
#include <stdint.h>

#include "shim/control/protocol.h"

struct shim_conn;

int shim_conn_open(const char *path, struct shim_conn **);
void shim_conn_close(struct shim_conn *);

uint32_t shim_conn_send(struct shim_conn *, enum shim_msg_type,
                        const void *body, size_t size);
int shim_conn_recv(struct shim_conn *, const struct shim_msg **,
                   const void **bodyp, size_t *sizep);
void shim_conn_wait(struct shim_conn *);

/* Bytes that the shim has not taken yet. */
size_t shim_conn_backlog(const struct shim_conn *);

#endif /* agent/actuate/shim-conn.h */
