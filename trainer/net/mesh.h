/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PEER_NET_H
#define PEER_NET_H 1

/* A connection between any two peers, and a thread that serves them.
 *
 *
 * Motivation
 * ==========
 *
 * Peers answer each other while they compute.  So messages are taken and sent
 * by a thread of their own, which runs the scheme's functions as messages
 * come; the thread that computes only looks in.  One lock keeps the two apart:
 * everything of a scheme is touched under it.
 *
 * Messages are frames of type FRAME_PEER, whose body is at most
 * PEER_NET_MAX_FLOATS floats.  A message that a scheme has no use for yet
 * stays where it is, and those behind it wait: the sender is slowed down and
 * no memory is needed.
 *
 * Little is given to the kernel in advance, so that what is asked for no more
 * does not occupy a slow link.
 *
 * A peer whose process has stopped keeps its connections.  So the threads also
 * send heartbeats on links where nothing else waits to be sent: who sends
 * nothing for the deadline has died, and so it is for the others.
 *
 *
 * Usage
 * =====
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
 * Of any two peers the one of higher rank connects to the other.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The functions from peer_net_send() on want the lock, which callbacks have.
 * Bodies that are sent are the caller's and stay as they are until the link
 * is idle, but for those of peer_net_send_copy(). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/net/frame.h"

#define PEER_NET_MAX 32
#define PEER_NET_MAX_FLOATS (FRAME_MAX_UPDATE / sizeof(float))

struct control;
struct peer_net;

struct peer_net_config {
    int rank, n;
    const char *const *names;   /* HOST:PORT of each rank. */
    const char *address;        /* Where to listen, */
    uint16_t port;              /* at which port. */
    struct frame_hello hello;   /* Must be the same at all, but for ranks. */
    const char *congestion;
    int64_t connect_us;         /* All are there by then, or it fails. */
    int64_t deadline_us;        /* Silent, or unacknowledged data, for so
                                 * long: dead.  0: never. */
    bool loop;                  /* Messages to oneself come back, over a
                                 * connection like the others. */
    struct control *control;
};

struct peer_net_class {
    /* Takes a message whose 'body' is there until it returns.  False: not
     * yet; asked again after peer_net_retry(). */
    bool (*take)(void *aux, int from, const struct frame *,
                 const float *body);

    /* Nothing waits to be sent to 'to'. */
    void (*room)(void *aux, int to);

    /* 'i' has ended its training, or has died. */
    void (*gone)(void *aux, int i, bool died);
};

char *peer_net_create(const struct peer_net_config *, struct peer_net **);

/* Starts the thread.  Returns NULL or a message. */
char *peer_net_start(struct peer_net *, const struct peer_net_class *,
                     void *aux);

/* Ends the thread and closes all connections. */
void peer_net_destroy(struct peer_net *);

void peer_net_lock(struct peer_net *);
void peer_net_unlock(struct peer_net *);

/* Waits until peer_net_notify() or a time of report_monotonic_us(). */
void peer_net_wait(struct peer_net *, int64_t until_us);
void peer_net_notify(struct peer_net *);

/* Whether messages to 'i' can be sent. */
bool peer_net_present(const struct peer_net *, int i);

/* Whether something waits to be sent to 'i'. */
bool peer_net_busy(const struct peer_net *, int i);

/* Whether peer_net_send() may be called now.  Always true after 'room'. */
bool peer_net_has_room(const struct peer_net *, int i, uint32_t n);

/* Sends 'frame', of which type and body length are filled in.  To who is not
 * there, nothing is sent. */
void peer_net_send(struct peer_net *, int to, struct frame *,
                   const float *body);
void peer_net_send_copy(struct peer_net *, int to, struct frame *,
                        const float *body);

/* Stores the address of 'i', without a port, in 'address'; "" if it is not
 * there. */
void peer_net_address(const struct peer_net *, int i, char address[],
                      size_t size);

/* Says that there is more to come to no one, once what waits is sent, and
 * waits until the others have said so too, or 'until_us': what is closed
 * before that may take the message with it. */
void peer_net_bye(struct peer_net *, int64_t until_us);

/* Asks again for messages that were not taken. */
void peer_net_retry(struct peer_net *);

/* Has the thread call 'room' for all to whom nothing waits to be sent. */
void peer_net_wake(struct peer_net *);

/* Bytes from 'i', and of all. */
uint64_t peer_net_received_from(const struct peer_net *, int i);
uint64_t peer_net_sent(const struct peer_net *);
uint64_t peer_net_received(const struct peer_net *);

#endif /* trainer/net/mesh.h */
