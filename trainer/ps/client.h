/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_CLIENT_H
#define PS_CLIENT_H 1

/* A worker's side of its parameter servers.
 *
 *
 * Motivation
 * ==========
 *
 * The worker sees one flat vector; the client knows which range each server
 * has, and talks to all of them at once.
 *
 * A connection that breaks is opened again, and what the server has not taken
 * is sent again; nothing counts twice.  A server that was started again goes
 * on from a checkpoint: then all go back to it, and the iteration that a call
 * returns is less than was expected.
 *
 * A gradient leaves as it is computed, the last layers' first, while earlier
 * layers are still being worked on; servers update what all workers have sent,
 * and those weights come back while the rest is on its way.  A network carries
 * both directions at once, and no longer waits for the processor.
 *
 *
 * Usage
 * =====
 *
 *    error = ps_client_create(&config, &client);
 *    ps_client_begin(client, weights, &k, &error);     // Waits for all.
 *    while (k < ...) {
 *        while (ps_client_receive(client, &message)) {
 *            ...what the scheme says...
 *        }
 *        ps_client_offer(client, k, gradient, n_samples, weights);
 *        ...for each part of the gradient, the last one first...
 *            ps_client_part(client, first, n);
 *        ps_client_exchange(client, &k, gradient, n_samples, &loss, weights,
 *                           &error);
 *    }
 *    ps_client_destroy(client);                        // Says bye.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Vectors are the caller's, 'n_parameters' long.  Calls block, but a signal
 * or a server's end ends each of them.  One thread; a second one, inside,
 * sends heartbeats. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;
struct optimiser_class;
struct ps_client;
struct sync_message;

struct ps_client_config {
    const char *const *servers; /* "HOST:PORT", in the order of shards. */
    int n_servers;
    int rank, n_workers;
    size_t n_parameters;
    float learning_rate, momentum;
    uint64_t seed;
    const struct optimiser_class *optimiser;
    const char *congestion;     /* TCP congestion control, or NULL. */
    bool whole;                 /* Gradients leave in one piece each. */
    int64_t patience_us;        /* How long a server may be away. */
    int64_t deadline_us;        /* How long one may be silent; 0: for ever,
                                 * and no heartbeats. */
    struct control *control;    /* Or NULL. */
};

enum ps_result {
    PS_OK,
    PS_ENDED,                   /* We were told to stop, or others were. */
    PS_FAILED,                  /* '*errorp' says why. */
};

/* Connects.  Servers that are not there yet are tried again for a while. */
char *ps_client_create(const struct ps_client_config *, struct ps_client **);
void ps_client_destroy(struct ps_client *);

/* Rank 0's 'weights' are the first ones, unless the servers go on from a
 * checkpoint; everybody's are replaced.  '*iteration' is theirs. */
enum ps_result ps_client_begin(struct ps_client *, float *weights,
                               uint64_t *iteration, char **errorp);

/* Optionally, before ps_client_exchange() with the same arguments, and from
 * when on 'gradient' is being computed: parts of it that are final may leave,
 * and their 'weights' change.  Parts are to begin at the end of the vector,
 * each where the one before ended; what comes otherwise waits for
 * ps_client_exchange(), which also says what has gone wrong. */
void ps_client_offer(struct ps_client *, uint64_t iteration,
                     const float *gradient, uint32_t n_samples,
                     float *weights);
void ps_client_part(struct ps_client *, size_t first, size_t n);

/* Pushes the mean gradient of 'n_samples' samples at the weights of
 * '*iteration'.  '*loss' is that of our samples, and becomes that of all
 * workers'.  'weights' become the next ones, and '*iteration' the one that the
 * first server has us begin. */
enum ps_result ps_client_exchange(struct ps_client *, uint64_t *iteration,
                                  const float *gradient, uint32_t n_samples,
                                  double *loss, float *weights,
                                  char **errorp);

/* From now on an exchange ends although answers to the last 'n' gradients are
 * still to come: 'weights' are then the last that came, also after
 * ps_client_idle().  For schemes with SYNC_ROLE_PIPELINE. */
void ps_client_run_ahead(struct ps_client *, uint32_t n);

/* Messages from and to the scheme of the first server, which leads.  Sent
 * ones leave at the latest with the next exchange, before its gradient. */
bool ps_client_receive(struct ps_client *, struct sync_message *);
void ps_client_send(struct ps_client *, const struct sync_message *);

/* Sends and receives messages until 'until_us' of report_monotonic_us(), or
 * until one has come, or until the job has gone back to a checkpoint.  Then
 * what is being computed is of no use, and ps_client_exchange() says where the
 * worker is. */
bool ps_client_has_gone_back(const struct ps_client *);
enum ps_result ps_client_wait(struct ps_client *, int64_t until_us,
                              char **errorp);

/* Waits until the control has something to take.  'weights' and '*iteration'
 * change if the job has gone back to a checkpoint.  Before the next exchange
 * ps_client_resume() is to be called: where others go on without a worker that
 * idles, it waits until they take it in again, and gets 'weights'. */
enum ps_result ps_client_idle(struct ps_client *, float *weights,
                              uint64_t *iteration, char **errorp);
enum ps_result ps_client_resume(struct ps_client *, float *weights,
                                uint64_t *iteration, char **errorp);

/* Seconds for which gradient and weights of the last exchange were on their
 * way, with the server for which that was longest; waiting for others is not
 * in it. */
double ps_client_transfer_s(const struct ps_client *);

uint64_t ps_client_bytes_sent(const struct ps_client *);
uint64_t ps_client_bytes_received(const struct ps_client *);

#endif /* trainer/ps/client.h */
