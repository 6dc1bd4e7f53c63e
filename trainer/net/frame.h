/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FRAME_H
#define FRAME_H 1

/* The messages of the trainer: one envelope, and a typed body per kind.
 *
 * Both directions of a connection are sequences of frames.  A frame is an
 * envelope, the body of its kind, and a payload of values or text.
 * Numbers are little-endian; there is no padding.
 *
 *    offset  bytes  field of the envelope
 *         0      4  length of the frame: envelope, body and payload
 *         4      2  FRAME_MAGIC
 *         6      1  FRAME_VERSION
 *         7      1  kind
 *         8      8  sequence number of the sender's gradient, from 1
 *        16      4  check sum: low half of the XXH3 (64 bits) of the 16 bytes
 *                   before and of the body
 *
 *    kind               from    body          payload, meaning
 *    FRAME_HELLO        worker  hello         the sender, and what it trains
 *    FRAME_WELCOME      server  welcome       what the server has of it
 *    FRAME_INIT         rank 0  range         n floats: first weights, in
 *                                             ascending parts
 *    FRAME_PART         worker  gradient      n floats: a part of a gradient
 *    FRAME_PUSH         worker  gradient      n floats: its last part
 *    FRAME_WEIGHTS      server  weights       n floats
 *    FRAME_STATISTICS   both    values        n floats: running statistics of
 *                                             the model, from rank 0 before a
 *                                             gradient, to workers that begin
 *                                             at a checkpoint
 *    FRAME_SCHEME       both    -             struct sync_message
 *    FRAME_HEARTBEAT    both    heartbeat
 *    FRAME_BYE          both    -             training has ended
 *    FRAME_ABORT        server  -             text: why it cannot go on
 *
 * A pushed gradient is answered with the next weights, so that an iteration is
 * one exchange.  Both may come in parts.  Each part ends where the one before
 * began: the gradient of the last layers is known first.  Gradients are
 * numbered per worker and server, so that one that is sent again over a new
 * connection is not applied twice.
 *
 * Under the scheme "groups" workers have a central server and, for gradients,
 * a group server, which pushes their mean to the central one:
 *
 *    FRAME_ENLIST       group   enlist        text: HOST:PORT for a group
 *    FRAME_GROUP        central group         n ranks, uint32: its workers
 *    FRAME_PAUSED       central paused        n ranks: its paused workers
 *    FRAME_MEAN         group   mean          n floats
 *    FRAME_MOVE         central move          text: HOST:PORT to push to
 *    FRAME_JOIN         worker  join
 *    FRAME_PULL         worker  -             send the weights; I am active
 *    FRAME_LOST         worker  lost          my group server is away
 *    FRAME_PAUSE        worker  -             I am paused
 *
 * Between peers that train without a server (trainer/gossip/peer.h), and
 * between nodes with moving keys (trainer/keys/key-message.h):
 *
 *    FRAME_PEER         both    peer          n floats
 *    FRAME_KEY_ITEMS    both    items         n words of 4 bytes
 *
 * A frame that is wrong in any way ends its connection, and so does one of
 * another version.
 *
 * FRAME_HELLO, FRAME_ENLIST and FRAME_JOIN begin connections, and have the
 * token of the job (token.h): frame_encode() writes the token of this process,
 * and frame_decode() refuses another one.
 *
 * Plain data; no other state than the token. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/net/token.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/shard.h"

#define FRAME_MAGIC 0x5c0a
#define FRAME_VERSION 9
#define FRAME_ENVELOPE_LENGTH 20
#define FRAME_MAX_HEAD (FRAME_ENVELOPE_LENGTH + 168) /* With the body. */

/* Most values of a frame: its length in bytes has 32 bits.  The weights of a
 * server may be one frame. */
#define FRAME_MAX_FLOATS ((uint32_t) SHARD_MAX)
#define FRAME_MAX_TEXT 256
#define FRAME_SCHEME_LENGTH 40

/* Longest payload of the frames of peers and nodes: it fits into a processor's
 * cache and takes effect as a whole or not at all. */
#ifndef FRAME_MAX_UPDATE
#define FRAME_MAX_UPDATE ((size_t) 1 << 17)
#endif

/* In a hello of FRAME_PEERS: factorisation without a store of keys. */
#define FRAME_SCHEME_MANUAL UINT32_MAX

#define FRAME_NONE UINT64_MAX   /* No epoch, no iteration. */

enum frame_type {
    FRAME_HELLO = 1,
    FRAME_INIT,
    FRAME_PUSH,
    FRAME_WEIGHTS,
    FRAME_BYE,
    FRAME_ABORT,
    FRAME_WELCOME = 13, /* There are no types 7 to 12. */
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
    FRAME_PAUSE,
    FRAME_PAUSED,
    FRAME_MEAN,
    FRAME_KEY_ITEMS,
    FRAME_STATISTICS,
    FRAME_N_TYPES
};

/* What a connection is for. */
enum frame_channel {
    FRAME_TRAINING, /* Gradients for weights, by a scheme. */
    FRAME_CONTROL,  /* Heartbeats. */
    FRAME_PEERS,    /* Training without a server. */
    FRAME_NODES,    /* Keys that move. */
    FRAME_N_CHANNELS
};

/* All workers of a job must agree in all but 'rank', 'epoch', 'sequence' and
 * 'rewind'.  What a channel does not use is 0. */
struct frame_hello {
    uint32_t rank, n_workers;
    uint32_t shard, n_shards;   /* Of the receiver; among peers its rank. */
    uint64_t n_parameters;      /* Of the whole model; FRAME_NODES: 0. */
    uint64_t seed;              /* Of model and data. */
    uint64_t n_keys;            /* FRAME_NODES. */
    uint64_t batch;             /* FRAME_PEERS: samples of an iteration. */
    uint64_t target;            /* FRAME_PEERS: epochs, where all must know
                                 * them. */
    uint64_t identity;          /* FRAME_NODES: hash of what is trained;
                                 * FRAME_PEERS: 1 if samples are divided by
                                 * label, otherwise 0. */
    float learning_rate, momentum, weight_decay;
    uint32_t optimiser;         /* optimiser_number(). */
    uint32_t scheme;            /* FRAME_PEERS: number of the scheme;
                                 * FRAME_NODES: enum key_variant. */
    uint32_t channel;           /* enum frame_channel. */
    uint64_t n_statistics;      /* FRAME_TRAINING, first server: values of a
                                 * FRAME_STATISTICS, FRAME_MAX_UPDATE bytes
                                 * at most. */

    struct rate_schedule schedule;
    uint64_t epoch;             /* Of the server, as the worker knows it, or
                                 * FRAME_NONE. */
    uint64_t sequence;          /* Last push that was answered. */
    uint64_t rewind;            /* Go back to the checkpoint of this iteration
                                 * if the server's epoch is 'epoch'; or
                                 * FRAME_NONE. */
    uint8_t token[TOKEN_LENGTH];        /* Of the job. */
};

/* State of a server that concerns a worker which has said hello. */
struct frame_welcome {
    uint64_t epoch;             /* Changes when the server has gone back. */
    uint64_t sequence;          /* The worker's last push that was made. */
    uint64_t iteration;         /* Of the weights. */
    uint64_t from;              /* First parameter of the next push that has
                                 * arrived; all behind it have too. */
    uint32_t begun;             /* 1: the first weights are there. */
    uint32_t control_port;      /* For heartbeats; 0: none. */
};

struct frame_gradient {
    uint64_t iteration;         /* Of the weights that it was computed at. */
    uint64_t first;             /* First parameter. */
    uint32_t n;                 /* Values. */
    uint32_t n_samples;         /* That it is the mean of. */
    float loss;                 /* Of the samples; FRAME_PUSH only. */
};

struct frame_weights {
    uint64_t iteration;         /* The worker's next one. */
    uint64_t first;             /* First parameter. */
    uint32_t n;                 /* Values. */
    float loss;                 /* Of the iteration before, in the last part.*/
};

/* A group has a new generation whenever it gets a group server. */
struct frame_group {
    uint64_t generation;
    uint64_t n_parameters;
    uint32_t n;                 /* Ranks. */
};

struct frame_paused {
    uint64_t generation;
    uint32_t n;                 /* Ranks. */
};

struct frame_mean {
    uint64_t generation;
    uint32_t n;                 /* Values. */
    uint32_t n_samples;         /* That it is the mean of. */
    float loss;
};

struct frame_peer {
    uint64_t round;             /* Iteration, all-reduce round, group, turn or
                                 * epoch that the message belongs to. */
    uint64_t first;             /* Index of the first value in the vector. */
    uint64_t pull;              /* Number of the pull: PEER_PULL,
                                 * PEER_PULLED, PEER_ABORT_PULL. */
    uint64_t wanted;            /* PEER_PULL: values. */
    uint32_t message;           /* enum peer_kind, or another one among peers
                                 * of another kind. */
    uint32_t hop;               /* PEER_REDUCE in a ring. */
    uint32_t n;                 /* Values. */
};

struct frame_key_items {
    uint64_t op;                /* See key-message.h. */
    uint64_t clock;
    uint32_t kind;              /* enum item_kind. */
    uint32_t origin;            /* Rank. */
    uint32_t n;                 /* Words of 4 bytes. */
};

struct frame_range {
    uint64_t first;             /* First parameter. */
    uint32_t n;                 /* Values. */
};

struct frame {
    enum frame_type type;
    uint64_t sequence;          /* 0 if the kind has none. */
    size_t payload_length;      /* Bytes.  Set by the sender for text; for all
                                 * others it follows from the body. */
    union {                     /* By 'type'. */
        struct frame_hello hello;
        struct frame_welcome welcome;
        struct frame_gradient gradient;
        struct frame_weights weights;
        struct {
            uint64_t iteration; /* Of the sender. */
        } heartbeat;
        struct {
            uint64_t pid;       /* Process id of the group server. */
            uint8_t token[TOKEN_LENGTH];        /* Of the job. */
        } enlist;
        struct frame_group group;
        struct frame_paused paused;
        struct frame_mean mean;
        struct {
            uint64_t generation;
            uint64_t n_counted; /* The worker's gradients that count. */
        } move;
        struct {
            uint64_t generation, rank;
            uint8_t token[TOKEN_LENGTH];        /* Of the job. */
        } join;
        struct {
            uint64_t generation;
        } lost;
        struct frame_peer peer;
        struct frame_key_items items;
        struct frame_range range;
        struct {
            uint32_t n;         /* Values. */
        } values;
    };
};

/* For messages: "push". */
const char *frame_type_name(enum frame_type);

/* Bytes of the envelope and the body. */
size_t frame_head_length(enum frame_type);

/* Writes frame_head_length() bytes and sets 'payload_length'. */
void frame_encode(struct frame *, uint8_t *head);

/* Checks an envelope.  Returns NULL and the length of the head, or a message
 * that, for another version, names both. */
char *frame_check_envelope(const uint8_t envelope[FRAME_ENVELOPE_LENGTH],
                           size_t *head_length);

/* Decodes a head with a checked envelope.  Returns NULL or a message. */
char *frame_decode(const uint8_t *head, struct frame *);

/* Whether two workers train the same: all is equal but the rank, the shard and
 * 'epoch', 'sequence' and 'rewind'. */
bool frame_hello_agrees(const struct frame_hello *,
                        const struct frame_hello *);

#endif /* trainer/net/frame.h */
