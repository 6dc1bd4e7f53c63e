/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CONTROL_REQUEST_H
#define SHIM_CONTROL_REQUEST_H 1

/* Requests of the control socket that read or change the shim's tables and
 * settings.  server.h handles connections, captures and the takeover.
 *
 * The control thread.  What the config points to stays the caller's. */

#include <stddef.h>
#include <stdint.h>

struct server_config;

/* Executes a request with a valid, aligned 'body' of 'size' bytes.  Returns
 * its status, EOPNOTSUPP if 'type' is not such a request.  Stores the body of
 * the reply, if it has one, in 'reply', with space for SHIM_MAX_MESSAGE bytes,
 * and its size in '*reply_size'. */
int request_execute(const struct server_config *, uint16_t type,
                    const void *body, size_t size, void *reply,
                    size_t *reply_size);

#endif /* shim/control/request.h */
