/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_STORE_CLIENT_PRIVATE_H
#define PS_STORE_CLIENT_PRIVATE_H 1

/* What the parts of a store's client share.
 *
 * store-client.c has the calls of store-client.h, which divide operations into
 * parts, one for each server concerned; store-client-step.c carries these out:
 * frames that leave, answers, and connections that are opened again. */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/net/channel.h"
#include "trainer/net/frame.h"
#include "trainer/schemes/shard.h"
#include "trainer/ps/store-client.h"

struct heartbeat;

#define STORE_MAX_PARTS 16384   /* Under way at a server; a power of 2. */
#define STORE_N_FIXED 2         /* Descriptors that are not servers'. */

/* What one server has to do of one operation: one frame or many. */
struct store_part {
    enum frame_type type;
    ps_handle handle;
    uint64_t sequence;          /* Of the first frame. */
    uint64_t first;             /* Of a dense range, or the only key. */
    const uint64_t *keys;       /* NULL: a dense range. */
    size_t n;                   /* Values or keys. */
    size_t per_frame;           /* Of them. */
    uint32_t width;             /* Floats of each. */
    const float *in;            /* NULL: in 'small', or none. */
    float *out;                 /* NULL: no values are wanted. */
    uint64_t n_frames, n_sent, n_done;
    float small[STORE_SMALL / sizeof(float)];
};

struct store_server {
    struct channel channel;
    struct shard shard, keys;
    uint64_t epoch, next_sequence;
    struct store_part *parts;   /* A ring. */
    size_t head, cursor, tail;  /* Done, sent, queued; only grow. */
    size_t queued;              /* Bytes behind the cursor, about. */
};

struct store_client {
    struct store_client_config config;
    struct store_server *servers;
    struct pollfd *fds;         /* Signals, heartbeats, servers. */
    struct heartbeat *heartbeat;        /* Or NULL. */
    ps_handle last;
    char *failure;
};

static inline struct store_part *
store_part_at(struct store_server *server, size_t i)
{
    return &server->parts[i & (STORE_MAX_PARTS - 1)];
}

/* store-client.c */

/* The client has failed; takes ownership of 'why', of which the first
 * counts. */
void store_client_fail(struct store_client *, char *why);

/* Connects to a server for the first time or again.  Returns NULL or a
 * message. */
char *store_client_open(struct store_client *, struct store_server *,
                        int64_t timeout_us);

/* store-client-step.c */

/* Sends what the kernel takes. */
void store_client_send(struct store_client *, struct store_server *);

/* Sends, waits for something to come, and takes it. */
void store_client_step(struct store_client *);

#endif /* trainer/ps/store-client-private.h */
