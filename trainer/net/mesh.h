/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MESH_H
#define MESH_H 1

/* A connection between every two peers, and one thread that serves them all.
 *
 * A thread of its own receives and sends messages, so that peers answer each
 * other while they compute.  It calls the functions of a scheme; one lock
 * guards everything that a scheme shares with the computing thread.
 *
 * Messages are FRAME_PEER or, between nodes, FRAME_KEY_ITEMS, with at most
 * PEER_NET_MAX_FLOATS values.  A message that a scheme cannot take yet stays
 * in the link and stops its sender, so that no memory is needed for it.  The
 * kernel gets little data in advance, so that data that is no longer wanted
 * does not occupy a slow link.
 *
 * An end that has sent nothing for the heartbeat timeout counts as dead, even
 * if its connections are still open.
 *
 *    error = peer_net_create(&config, &net);           // Connects all.
 *    error = peer_net_start(net, &callbacks, aux);
 *    peer_net_lock(net);
 *    peer_net_send(net, to, &frame, floats);
 *    while (!...something that a callback does...) {
 *        peer_net_wait(net, until_us);
 *    }
 *    peer_net_unlock(net);
 *    peer_net_destroy(net);
 *
 * The functions from peer_net_wait() on require the lock; callbacks have it.
 * Values that are sent belong to the caller and must not change until the link
 * is idle, except those that are copied. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/net/frame.h"
#include "trainer/schemes/sync.h"

#define PEER_NET_MAX SYNC_MAX_PEERS
#define PEER_NET_MAX_FLOATS (FRAME_MAX_UPDATE / sizeof(float))

struct control;
struct peer_net;

struct peer_net_config {
    int rank, n;
    const char *const *names;   /* HOST:PORT of each rank.  Of two peers, the
                                 * one of the higher rank connects. */
    const char *address;        /* To listen at. */
    uint16_t port;              /* To listen at. */
    int listener;               /* Socket that listens already, which the
                                 * network closes; 0: none. */
    void (*listening)(const char *address,
                      uint16_t port); /* Peers can
                                       * connect now; or NULL. */
    struct frame_hello hello;   /* The same at all, except the rank. */
    const char *congestion;     /* TCP congestion control, or NULL. */
    int64_t connect_us;         /* Longest time without a peer that connects,
                                 * until all have. */
    int64_t heartbeat_timeout_us;       /* Silence, or unacknowledged data, for
                                         * which a peer counts as dead; 0:
                                         * never. */
    bool loop;                  /* Messages to oneself are sent, over a
                                 * connection like the others. */
    struct control *control;
};

struct peer_net_class {
    /* Takes a message.  'body' is valid until the function returns.
     * Returns false if it cannot yet: it is offered again after
     * peer_net_retry(). */
    bool (*take)(void *aux, int from, const struct frame *, const float *body);

    /* The send queue of peer 'to' is empty. */
    void (*on_writable)(void *aux, int to);

    /* Peer 'i' has ended its training, or has died. */
    void (*gone)(void *aux, int i, bool died);
};

/* Returns NULL or a message. */
char *peer_net_create(const struct peer_net_config *, struct peer_net **);

/* Starts the thread.  Returns NULL or a message. */
char *peer_net_start(struct peer_net *, const struct peer_net_class *,
                     void *aux);

/* Ends the thread and closes all connections. */
void peer_net_destroy(struct peer_net *);

void peer_net_lock(struct peer_net *);
void peer_net_unlock(struct peer_net *);

/* Waits until peer_net_notify() or a time of clock_monotonic_us(). */
void peer_net_wait(struct peer_net *, int64_t until_us);
void peer_net_notify(struct peer_net *);

/* Whether messages to 'i' can be sent. */
bool peer_net_present(const struct peer_net *, int i);

/* Whether the send queue of 'i' is not empty. */
bool peer_net_busy(const struct peer_net *, int i);

/* Whether 'n' values can be queued for 'i'.  Always true in on_writable(). */
bool peer_net_has_space(const struct peer_net *, int i, uint32_t n);

/* Sends 'frame'; sets its type and payload length.  Does nothing if 'to' is
 * not present. */
void peer_net_send(struct peer_net *, int to, struct frame *,
                   const float *body);
void peer_net_send_copy(struct peer_net *, int to, struct frame *,
                        const float *body);

/* Does the same as peer_net_send_copy(), and gives the queue to the kernel
 * without waiting for the thread, as far as that takes it. */
void peer_net_send_now(struct peer_net *, int to, struct frame *,
                       const float *body);

/* Stores the address of 'i', without a port, in 'address'; "" if 'i' is not
 * present. */
void peer_net_address(const struct peer_net *, int i, char address[],
                      size_t size);

/* Sends a bye to all after the queued frames, and waits for their byes,
 * or 'until_us': closing earlier could drop the last messages. */
void peer_net_bye(struct peer_net *, int64_t until_us);

/* Offers the messages again that were not taken. */
void peer_net_retry(struct peer_net *);

/* Makes the thread call on_writable() for all peers with empty queues. */
void peer_net_wake(struct peer_net *);

/* Bytes received from 'i'; sent to and received from all. */
uint64_t peer_net_received_from(const struct peer_net *, int i);
void peer_net_bytes(const struct peer_net *, uint64_t *sent,
                    uint64_t *received);

#endif /* trainer/net/mesh.h */
