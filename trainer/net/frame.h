/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FRAME_H
#define FRAME_H 1

/* What workers and parameter servers say to each other.
 *
 *
 * Motivation
 * ==========
 *
 * A worker has one connection to each of its servers for data, and one for
 * heartbeats.  Both directions are a sequence of frames: a header of fixed
 * length, then a body whose length the header's fields must agree with.
 * Numbers are little-endian.
 *
 *    offset  bytes  field
 *         0      4  length of the frame, header included
 *         4      2  FRAME_MAGIC
 *         6      1  FRAME_VERSION
 *         7      1  type
 *         8      8  iteration
 *        16      8  first: index of the first parameter, or the first key
 *        24      8  sequence: which of its sender's updates or requests
 *        32      4  n: float32 values in the body, or keys
 *        36      4  samples: weight of a gradient; of a store's frames
 *                   2 bytes width (values of a key), 1 byte key size, 1 byte
 *                   flags
 *        40      4  value: a loss, float32
 *        44      4  check sum: XXH3, 64 bits, of the 44 bytes before, of
 *                   which the low half is sent
 *
 *    type               from    body                  means
 *    FRAME_HELLO        worker  struct frame_hello    I am rank r of n
 *    FRAME_WELCOME      server  struct frame_welcome  what I have of you
 *    FRAME_INIT         rank 0  n floats              first weights
 *    FRAME_PART         worker  n floats              part of the mean
 *                                                     gradient of 'samples'
 *                                                     samples at w[iteration]
 *    FRAME_PUSH         worker  n floats              the last part of it;
 *                                                     'value' is their loss
 *    FRAME_WEIGHTS      server  n floats              part of w[iteration];
 *                                                     'value' of the last one
 *                                                     is the loss of the
 *                                                     iteration before
 *    FRAME_BYE          both    -                     training has ended
 *    FRAME_ABORT        server  text                  training cannot go on
 *    FRAME_HEARTBEAT    both    -                     alive, at 'iteration'
 *    FRAME_SCHEME       both    struct sync_message   see sync.h
 *
 * Those of the scheme "groups", whose workers have a "central" server and,
 * for gradients, a group server, which pushes the mean to the central one:
 *
 *    FRAME_ENLIST       group   text                  a group may push to me
 *                                                     at HOST:PORT; 'first'
 *                                                     is my process
 *    FRAME_GROUP        central n ranks, uint32       have these workers, of
 *                                                     'first' parameters
 *    FRAME_MOVE         central text                  push to HOST:PORT; of
 *                                                     yours I have 'sequence'
 *    FRAME_JOIN         worker  -                     I am rank 'first' of
 *                                                     your group
 *    FRAME_PULL         worker  -                     send me the weights; I
 *                                                     rest no more
 *    FRAME_LOST         worker  -                     my group server is away
 *    FRAME_REST         worker  -                     do not wait for me
 *    FRAME_RESTS        central n ranks, uint32       of your workers these,
 *                                                     and no others, rest
 *
 * In all of these but the first and FRAME_REST, and in a group's pushes,
 * 'iteration' is the group's generation, which is greater for each later one.
 *
 * Between peers that train without a server, and between nodes whose keys
 * move, there is one more, with 'samples' for what it means
 * (trainer/gossip/peer.h, trainer/keys/key-message.h):
 *
 *    FRAME_PEER         both    n floats
 *
 * Those of a store, whose workers push and pull as they like:
 *
 *    FRAME_UPDATE       worker  n floats              gradient
 *    FRAME_READ         worker  -                     send n values
 *    FRAME_UPDATE_KEYS  worker  keys, n width floats  gradients
 *    FRAME_READ_KEYS    worker  keys                  send n width values
 *    FRAME_VALUES       server  n floats              answers 'sequence'
 *    FRAME_ACK          server  -                     all updates up to
 *                                                     'sequence' are made
 *
 * Keys are coded as keys.h says.  FRAME_ANSWER among an update's flags asks
 * for the new values.
 *
 * A pushed gradient is answered with the next weights, so that one iteration
 * is one exchange; 'iteration' of weights is the worker's next one.  Both may
 * come in parts, each of which ends where the one before began: the last
 * layers' gradient is the first to be known.  Messages of the scheme go
 * beside.  Updates and gradients are numbered by each worker for each server:
 * what is sent again over a new connection is not made twice.
 * A frame that is wrong in any way ends its connection.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data; pure functions. */

#include <stddef.h>
#include <stdint.h>

#define FRAME_MAGIC 0x5c0a
#define FRAME_VERSION 4
#define FRAME_HEADER_LENGTH 48
#define FRAME_HELLO_LENGTH 88
#define FRAME_WELCOME_LENGTH 40
#define FRAME_MAX_FLOATS ((uint32_t) 1 << 26)
#define FRAME_MAX_TEXT 256
#define FRAME_SCHEME_LENGTH 40
#define FRAME_MAX_WIDTH 4096

/* A store's updates and keys come in frames with at most so long a body, which
 * fits into a processor's cache and takes effect as a whole or not at all. */
#define FRAME_MAX_UPDATE ((size_t) 1 << 17)

/* Flags. */
#define FRAME_ANSWER 1          /* The update is to be answered with values. */
#define FRAME_MORE 2            /* No need to say yet that it was made. */

#define FRAME_NONE UINT64_MAX   /* No epoch, no iteration. */

enum frame_type {
    FRAME_HELLO = 1,
    FRAME_INIT,
    FRAME_PUSH,
    FRAME_WEIGHTS,
    FRAME_BYE,
    FRAME_ABORT,
    FRAME_UPDATE,
    FRAME_READ,
    FRAME_UPDATE_KEYS,
    FRAME_READ_KEYS,
    FRAME_VALUES,
    FRAME_ACK,
    FRAME_WELCOME,
    FRAME_HEARTBEAT,
    FRAME_PART,
    FRAME_SCHEME,
    FRAME_ENLIST,
    FRAME_GROUP,
    FRAME_MOVE,
    FRAME_JOIN,
    FRAME_PULL,
    FRAME_LOST,
    FRAME_PEER,
    FRAME_REST,
    FRAME_RESTS,
    FRAME_N_TYPES
};

struct frame {
    enum frame_type type;
    uint64_t iteration;
    uint64_t first;             /* Parameter or key. */
    uint64_t sequence;          /* From 1. */
    uint32_t n;                 /* Values or keys. */
    uint32_t samples;           /* Not of a store's frames. */
    uint16_t width;             /* These three only of a store's frames. */
    uint8_t key_size, flags;
    float value;
    size_t body_length;         /* Bytes; of a text set by the sender, in all
                                 * others follows from the members above. */
};

/* What a connection is for. */
enum frame_channel {
    FRAME_TRAINING,             /* Gradients for weights, by a scheme. */
    FRAME_STORE,                /* Pushes and pulls. */
    FRAME_CONTROL,              /* Heartbeats. */
    FRAME_PEERS,                /* Training without a server. */
    FRAME_NODES,                /* Keys that move. */
    FRAME_N_CHANNELS
};

/* What a worker is, and what it takes its training to be.  All workers of a
 * job must agree in everything but the rank and the last three members. */
struct frame_hello {
    uint32_t rank, n_workers;
    uint32_t shard, n_shards;
    uint64_t n_parameters;      /* Of the whole model; 0: only keys. */
    float learning_rate, momentum;
    uint64_t seed;              /* Of model and data. */
    uint64_t key_space;         /* Keys are less; divided among servers. */
    uint32_t width;             /* Values of a key. */
    uint32_t optimiser;         /* optimiser_number(). */
    uint32_t channel;           /* enum frame_channel. */

    uint64_t epoch;             /* That I know of you, or FRAME_NONE. */
    uint64_t sequence;          /* Last push that I have the answer to. */
    uint64_t rewind;            /* Go back to the checkpoint of this iteration
                                 * if your epoch is 'epoch'; or FRAME_NONE. */
};

/* A server's state, as far as it concerns a worker that has come. */
struct frame_welcome {
    uint64_t epoch;             /* Changes when the server has gone back. */
    uint64_t sequence;          /* The worker's last push that was made. */
    uint64_t iteration;         /* Of the weights. */
    uint64_t from;              /* Of its next push all is there from this
                                 * parameter on, to the shard's end. */
    uint32_t begun;             /* 1: the first weights are there. */
    uint32_t control_port;      /* Where heartbeats go; 0: nowhere. */
};

/* For messages: "push". */
const char *frame_type_name(enum frame_type);

/* Encodes 'frame' and sets its 'body_length'. */
void frame_encode(struct frame *, uint8_t header[FRAME_HEADER_LENGTH]);

/* Returns NULL or a message. */
char *frame_decode(const uint8_t header[FRAME_HEADER_LENGTH],
                   struct frame *);

void frame_hello_encode(const struct frame_hello *,
                        uint8_t body[FRAME_HELLO_LENGTH]);
char *frame_hello_decode(const uint8_t body[FRAME_HELLO_LENGTH],
                         struct frame_hello *);

void frame_welcome_encode(const struct frame_welcome *,
                          uint8_t body[FRAME_WELCOME_LENGTH]);
char *frame_welcome_decode(const uint8_t body[FRAME_WELCOME_LENGTH],
                           struct frame_welcome *);

#endif /* trainer/net/frame.h */
