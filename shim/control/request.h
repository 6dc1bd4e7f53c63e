/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CONTROL_REQUEST_H
#define SHIM_CONTROL_REQUEST_H 1

/* What the requests of the control socket ask for and change.
 *
 *
 * Motivation
 * ==========
 *
 * server-peer.c knows peers, messages and who is subscribed to what; here is
 * what a request is to the shim's tables, the same for all peers.
 *
 *
 * Usage
 * =====
 *
 *    error = protocol_check_body(type, body, size);
 *    if (request_asks(type)) {
 *        reply_size = request_ask(config, type, body, reply);
 *    } else {
 *        error = request_change(config, type, body, size);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * What the config points to stays the caller's.  The control thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server_config;

/* 'body' has room for SHIM_MAX_MESSAGE bytes. */
bool request_asks(uint16_t type);
size_t request_ask(const struct server_config *, uint16_t type,
                   const char *request, void *body);
int request_change(const struct server_config *, uint16_t type,
                   const char *body, size_t size);

#endif /* shim/control/request.h */
