/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RPC_CALL_H
#define RPC_CALL_H 1

/* One JSON-RPC request to a daemon, with a timeout.
 *
 * The blocking calls of jsonrpc.h and unixctl.h wait forever for a daemon that
 * accepts a connection and then hangs.  A command must not.
 *
 *    char *reply;
 *    char *error = rpc_unixctl("/run/stagecoach/controller.ctl",
 *                              "controller/status", 0, NULL, 2000, &reply,
 *                              &errnum);
 *
 * Blocking; one thread, outside of a main loop. */

#include <stddef.h>

struct jsonrpc_msg;

int rpc_call(const char *remote, struct jsonrpc_msg *request, int timeout_ms,
             struct jsonrpc_msg **replyp);

char *rpc_unixctl(const char *socket, const char *command,
                  size_t n_args, const char *const *args, int timeout_ms,
                  char **replyp, int *errnump);

#endif /* controller/ovsdb/rpc-call.h */
