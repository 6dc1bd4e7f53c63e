/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FRAME_H
#define FRAME_H 1

/* What workers and parameter servers say to each other.
 *
 *
 * Motivation
 * ==========
 *
 * One TCP connection joins a worker and a server.  Both directions are a
 * sequence of frames: a header of fixed length, then a body whose length the
 * header's fields must agree with.  Numbers are little-endian.
 *
 *    offset  bytes  field
 *         0      4  length of the frame, header included
 *         4      2  FRAME_MAGIC
 *         6      1  FRAME_VERSION
 *         7      1  type
 *         8      8  iteration
 *        16      8  first: index of the first parameter
 *        24      4  n: float32 values in the body
 *        28      4  samples: weight of a gradient
 *        32      4  value: a loss, float32
 *        36      4  check sum of the 36 bytes before
 *
 *    type            from    body                     means
 *    FRAME_HELLO     worker  struct frame_hello       I am rank r of n
 *    FRAME_INIT      rank 0  n floats                 first weights
 *    FRAME_PUSH      worker  n floats                 mean gradient of
 *                                                     'samples' samples at
 *                                                     w[iteration]
 *    FRAME_WEIGHTS   server  n floats                 w[iteration]; 'value' is
 *                                                     the loss of the
 *                                                     iteration before
 *    FRAME_BYE       both    -                        training has ended
 *    FRAME_ABORT     server  text                     training cannot go on
 *    FRAME_SCHEME    both    struct sync_message      see sync.h
 *
 * A pushed gradient is answered with the next weights, so that one iteration
 * is one exchange; 'iteration' of weights is the worker's next one.  Messages
 * of the scheme go beside.  A frame that is wrong in any way ends its
 * connection.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data; pure functions. */

#include <stddef.h>
#include <stdint.h>

#define FRAME_MAGIC 0x5c0a
#define FRAME_VERSION 1
#define FRAME_HEADER_LENGTH 40
#define FRAME_HELLO_LENGTH 40
#define FRAME_MAX_FLOATS ((uint32_t) 1 << 26)
#define FRAME_MAX_TEXT 256
#define FRAME_SCHEME_LENGTH 40

enum frame_type {
    FRAME_HELLO = 1,
    FRAME_INIT,
    FRAME_PUSH,
    FRAME_WEIGHTS,
    FRAME_BYE,
    FRAME_ABORT,
    FRAME_SCHEME = 16,
    FRAME_N_TYPES
};

struct frame {
    enum frame_type type;
    uint64_t iteration;
    uint64_t first;             /* Parameters. */
    uint32_t n;                 /* Parameters, at most FRAME_MAX_FLOATS. */
    uint32_t samples;
    float value;
    size_t body_length;         /* Bytes; of FRAME_ABORT set by the sender, in
                                 * all others follows from type and 'n'. */
};

/* What a worker is, and what it takes its training to be.  All workers of a
 * job must agree in everything but the rank. */
struct frame_hello {
    uint32_t rank, n_workers;
    uint32_t shard, n_shards;
    uint64_t n_parameters;      /* Of the whole model. */
    float learning_rate, momentum;
    uint64_t seed;              /* Of model and data. */
};

/* Encodes 'frame' and sets its 'body_length'. */
void frame_encode(struct frame *, uint8_t header[FRAME_HEADER_LENGTH]);

/* Returns NULL or a message. */
char *frame_decode(const uint8_t header[FRAME_HEADER_LENGTH],
                   struct frame *);

void frame_hello_encode(const struct frame_hello *,
                        uint8_t body[FRAME_HELLO_LENGTH]);
char *frame_hello_decode(const uint8_t body[FRAME_HELLO_LENGTH],
                         struct frame_hello *);

#endif /* trainer/ps/frame.h */
