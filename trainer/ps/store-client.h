/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_STORE_CLIENT_H
#define PS_STORE_CLIENT_H 1

/* A worker's side of a sharded store: push and pull whenever it likes.
 *
 *
 * Motivation
 * ==========
 *
 * Asynchronous training, and models too large or too sparse for one vector,
 * want single ranges and keys, many operations under way at once, and no
 * copies of large values.  Each operation is divided among the servers whose
 * keys or parameters it concerns; those to the same server take effect in the
 * order of the calls.  Small ones are gathered: nothing is sent before
 * store_wait() or store_flush(), or before there is a good deal of it.
 *
 * Keys of a call strictly ascend.  A connection that breaks is opened again
 * and what the server has not taken is sent again; nothing counts twice.  An
 * answer that was lost is made again: values then have one's later updates.
 *
 * A store has no checkpoints.  A server that dies takes its values with it,
 * and a worker that dies may have pushed anything: either is the end for all.
 * Within the patience, or the deadline if a machine falls silent, store_wait()
 * says who it was, and a server that was started again is not taken for the
 * one before.
 *
 *
 * Usage
 * =====
 *
 *    error = store_client_create(&config, &client);
 *    a = store_push(client, first, n, gradients);
 *    b = store_pull_keys(client, keys, n_keys, values);
 *    error = store_wait(client, b);            // And 'a', which is older.
 *    store_client_destroy(client);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Keys, gradients and values are the caller's, and must stay until the
 * operation has been waited for; only a single key, and values of up to
 * STORE_SMALL bytes that are pushed, are copied.  One thread; a second one,
 * inside, sends heartbeats. */

#include <stddef.h>
#include <stdint.h>

#define STORE_SMALL 64

struct control;
struct optimiser_class;
struct store_client;

/* An operation; later ones are greater. */
typedef uint64_t ps_handle;

struct store_client_config {
    const char *const *servers; /* "HOST:PORT", in the order of shards. */
    int n_servers;
    int rank, n_workers;
    size_t n_parameters;        /* Of the dense vector; 0: there is none. */
    uint64_t key_space;         /* Keys are less. */
    uint32_t width;             /* Values of a key. */
    const struct optimiser_class *optimiser;
    float learning_rate, momentum;
    const char *congestion;     /* TCP congestion control, or NULL. */
    int64_t patience_us;        /* How long a server may be away. */
    int64_t deadline_us;        /* How long one may be silent; 0: for ever,
                                 * and no heartbeats. */
    struct control *control;    /* Or NULL. */
};

/* Connects.  Returns NULL or a message. */
char *store_client_create(const struct store_client_config *,
                          struct store_client **);
void store_client_destroy(struct store_client *);

/* Dense ranges. */
ps_handle store_push(struct store_client *, size_t first, size_t n,
                     const float *gradients);
ps_handle store_pull(struct store_client *, size_t first, size_t n,
                     float *values);
ps_handle store_push_pull(struct store_client *, size_t first, size_t n,
                          const float *gradients, float *values);

/* Sparse keys, 'width' values each. */
ps_handle store_push_keys(struct store_client *, const uint64_t keys[],
                          size_t n, const float *gradients);
ps_handle store_pull_keys(struct store_client *, const uint64_t keys[],
                          size_t n, float *values);
ps_handle store_push_pull_keys(struct store_client *, const uint64_t keys[],
                               size_t n, const float *gradients,
                               float *values);

/* Waits for an operation and all before it.  Returns NULL or a message, and
 * the same one ever after: a client that has failed stays so. */
char *store_wait(struct store_client *, ps_handle);

/* Sends what there is without waiting for answers. */
void store_flush(struct store_client *);

/* Waits until the control has input to read, or a server has sent something.
 * Returns NULL or a message, as store_wait() does. */
char *store_idle(struct store_client *);

uint64_t store_client_bytes_sent(const struct store_client *);
uint64_t store_client_bytes_received(const struct store_client *);

#endif /* trainer/ps/store-client.h */
