/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STORE_CLIENT_H
#define STORE_CLIENT_H 1

/* A worker's side of a sharded store: push and pull of keys.
 *
 * An operation is divided among the servers that it concerns.  Operations on
 * one server take effect in the order of the calls.  Small ones are gathered:
 * they are sent by store_wait() or store_flush(), or when there are enough.
 * The keys of a call strictly ascend.
 *
 * A lost connection is opened again, and what the server has not taken is sent
 * again; nothing is applied twice.  An answer that was lost is made again, and
 * then includes the worker's later updates.
 *
 * A store has no checkpoints.  When a server dies its values are lost, so all
 * workers fail; store_wait() names the server, after the reconnect timeout, or
 * the heartbeat timeout if its machine is silent.  A server that was started
 * again is not used.
 *
 *    error = store_client_create(&config, &client);
 *    a = store_push_keys(client, keys, n_keys, gradients);
 *    b = store_pull_keys(client, keys, n_keys, values);
 *    error = store_wait(client, b);            // And for 'a', which is older.
 *    store_client_destroy(client);
 *
 * Keys, gradients and values are the caller's and must not change until the
 * operation has been waited for; a single key, and up to STORE_SMALL bytes of
 * pushed values, are copied.  One thread; a second one, inside, sends
 * heartbeats. */

#include <stddef.h>
#include <stdint.h>

#include "trainer/ps/client.h"

#define STORE_SMALL 64

struct store_client;

/* Number of an operation; later ones are greater. */
typedef uint64_t ps_handle;

/* Connects.  Returns NULL or a message. */
char *store_client_create(const struct ps_client_config *,
                          struct store_client **);
void store_client_destroy(struct store_client *);

/* 'width' values a key. */
ps_handle store_push_keys(struct store_client *, const uint64_t keys[],
                          size_t n, const float *gradients);
ps_handle store_pull_keys(struct store_client *, const uint64_t keys[],
                          size_t n, float *values);

/* Waits for an operation and all before it.  Returns NULL or a message; after
 * a failure every call returns the same message. */
char *store_wait(struct store_client *, ps_handle);

/* Sends what is queued without waiting for answers. */
void store_flush(struct store_client *);

/* Waits until the control has input to read, or a server has sent something.
 * Returns NULL or a message, as store_wait() does. */
char *store_idle(struct store_client *);

void store_client_bytes(const struct store_client *, uint64_t *sent,
                        uint64_t *received);

#endif /* trainer/ps/store-client.h */
