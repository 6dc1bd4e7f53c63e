/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_CLIENT_H
#define PS_CLIENT_H 1

/* A worker's side of its parameter servers.
 *
 * The worker has one flat vector; the client knows the range of each server
 * and talks to all at once.
 *
 * A lost connection is opened again, and what the server has not taken is sent
 * again; nothing is applied twice.  A server that was started again goes on
 * from a checkpoint: then all servers and workers go back to it ("rewind"),
 * and the iteration that a call returns is smaller than expected.
 *
 * A gradient leaves while it is computed, the last layers first.  Servers
 * update the ranges that all workers have sent, and those weights come back
 * while the rest is being sent.
 *
 *    error = ps_client_create(&config, &client);
 *    if (ps_client_lacks_weights(client)) {
 *        ...for each range of the first weights, in ascending order...
 *            ps_client_first_part(client, weights, first, n);
 *    }
 *    ps_client_begin(client, weights, &k, &error);     // Waits for all.
 *    while (k < target) {
 *        while (ps_client_receive(client, &message)) {
 *            ...handle a message of the scheme...
 *        }
 *        ps_client_offer(client, k, gradient, n_samples, weights);
 *        ...for each part of the gradient, the last one first...
 *            ps_client_part(client, first, n);
 *        ps_client_exchange(client, &k, gradient, n_samples, &loss, weights,
 *                           &error);
 *    }
 *    ps_client_destroy(client);                        // Sends a bye.
 *
 * Vectors are the caller's, 'n_parameters' long.  Calls block until a signal,
 * or the end of a server, at most.  One thread; a second one, inside, sends
 * heartbeats. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/schemes/optimiser.h"

struct control;
struct ps_client;
struct sync_message;

struct ps_client_config {
    const char *const *servers; /* "HOST:PORT", in the order of shards. */
    int n_servers;
    int rank, n_workers;
    size_t n_parameters;
    const struct optimiser_class *optimiser;
    float learning_rate, momentum;
    struct rate_schedule schedule;
    const char *congestion;     /* TCP congestion control, or NULL. */
    int64_t reconnect_timeout_us;       /* Of a lost server. */
    int64_t heartbeat_timeout_us;       /* Silence of a server that is a
                                         * failure; 0: none is, and no
                                         * heartbeats are sent. */
    struct control *control;            /* Or NULL. */
    uint64_t seed;
    bool whole;                 /* Gradients leave in one piece each. */
    float *statistics;          /* Of the model: rank 0's go with its first
                                 * weights and with each gradient.  All are
                                 * replaced before the weights of a
                                 * checkpoint. */
    uint32_t n_statistics;
};

enum ps_result {
    PS_OK,
    PS_ENDED,  /* This worker, or another one, was stopped. */
    PS_FAILED, /* '*errorp' is a message. */
};

/* Connects; retries for a while if servers are not there yet. */
char *ps_client_create(const struct ps_client_config *, struct ps_client **);
void ps_client_destroy(struct ps_client *);

/* Whether the servers need the first weights, which rank 0 sends.
 * ps_client_first_part(): optional; those from 'first' on are final, and may
 * leave while others are being made. */
bool ps_client_lacks_weights(const struct ps_client *);
void ps_client_first_part(struct ps_client *, const float *weights,
                          size_t first, size_t n);

/* The 'weights' of rank 0 are the first ones, unless the servers go on from a
 * checkpoint.  Replaces 'weights', and sets '*iteration', by the servers'. */
enum ps_result ps_client_begin(struct ps_client *, float *weights,
                               uint64_t *iteration, char **errorp);

/* Optional, before ps_client_exchange() with the same arguments, while
 * 'gradient' is being computed: its final parts may leave, and 'weights'
 * change.  Each part must end where the one before began, the first one at the
 * end of the vector; other parts are sent by ps_client_exchange(), which also
 * returns any error. */
void ps_client_offer(struct ps_client *, uint64_t iteration,
                     const float *gradient, uint32_t n_samples,
                     float *weights);
void ps_client_part(struct ps_client *, size_t first, size_t n);

/* Pushes the mean gradient of 'n_samples' samples at the weights of
 * '*iteration'.  Replaces 'weights' by the next ones, '*iteration' by the one
 * to begin, and '*loss', of the samples, by the loss of all workers. */
enum ps_result ps_client_exchange(struct ps_client *, uint64_t *iteration,
                                  const float *gradient, uint32_t n_samples,
                                  double *loss, float *weights, char **errorp);

/* From now on an exchange returns while up to 'n' gradients have no answer
 * yet: 'weights' are the last that have come, also after ps_client_idle().
 * For schemes with SYNC_ROLE_PIPELINE. */
void ps_client_set_max_in_flight(struct ps_client *, uint32_t n);

/* Messages from and to the scheme of the first server, which leads.  They are
 * sent at the latest with the next exchange, before its gradient. */
bool ps_client_receive(struct ps_client *, struct sync_message *);
void ps_client_send(struct ps_client *, const struct sync_message *);

/* Sends and receives messages until one has come, or 'until_us' of
 * clock_monotonic_us(), or a rewind.  After a rewind the gradient that is
 * being computed is of no use; ps_client_exchange() returns the iteration. */
bool ps_client_has_rewound(const struct ps_client *);
enum ps_result ps_client_wait(struct ps_client *, int64_t until_us,
                              char **errorp);

/* Pauses the worker until the control has input.  Changes 'weights' and
 * '*iteration' after a rewind.  ps_client_resume() must be called before the
 * next exchange: where others have gone on without the worker, it waits until
 * they include it again, and gets their weights. */
enum ps_result ps_client_idle(struct ps_client *, float *weights,
                              uint64_t *iteration, char **errorp);
enum ps_result ps_client_resume(struct ps_client *, float *weights,
                                uint64_t *iteration, char **errorp);

/* Transfer time of gradient and weights of the last exchange, in seconds, of
 * the server for which it was longest, without the wait for other workers. */
double ps_client_transfer_s(const struct ps_client *);

void ps_client_bytes(const struct ps_client *, uint64_t *sent,
                     uint64_t *received);

#endif /* trainer/ps/client.h */
