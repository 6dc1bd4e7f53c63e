/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_GROUP_LINK_H
#define PS_GROUP_LINK_H 1

/* A worker's connection to its group server, under the scheme "groups".
 *
 *
 * Motivation
 * ==========
 *
 * The central server says where to push, and may say another place at any
 * time: when groups change, and when the group server is gone.  What was
 * pushed to the old one is then counted, or is pushed again to the new one;
 * the central server says which.  The connection is opened for a push, not
 * when the place is known: a worker may compute for long before.
 *
 *
 * Usage
 * =====
 *
 *    group_link_move(gl, generation, "h1:4000");       // FRAME_MOVE came.
 *    group_link_push(gl, &push, gradient);
 *    ...poll group_link_fd() for group_link_events()...
 *    switch (group_link_run(gl, weights, &frame, &error)) {
 *    case GROUP_LINK_LOST:
 *        ...tell the central server and wait for its next move...
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The gradient is the caller's and must stay until it is answered, pushed
 * elsewhere or dropped.  Nothing blocks but the look-up of a host's name.  One
 * thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/net/link.h"
#include "trainer/net/transfers.h"

struct group_link {
    struct link link;
    uint64_t generation;        /* Of our group; 0: none yet. */
    char address[FRAME_MAX_TEXT + 1];
    const char *congestion;
    int rank;
    bool connecting;
    bool lost;                  /* And there was no move since. */
    struct frame push;          /* Not answered; 'type' 0: there is none. */
    const float *gradient;      /* Its vector. */
    uint64_t n_sent, n_received;        /* Bytes, of closed connections. */
    struct transfers transfers;
};

enum group_link_state {
    GROUP_LINK_AGAIN,           /* No more for now. */
    GROUP_LINK_ANSWER,          /* The push has been answered. */
    GROUP_LINK_LOST,            /* The connection; said once. */
    GROUP_LINK_WRONG,           /* '*errorp' says what the server did. */
};

struct group_link *group_link_create(int rank, const char *congestion);
void group_link_destroy(struct group_link *);

/* Another group.  A push that was not answered is pushed to the new one,
 * unless it is 'counted'. */
void group_link_move(struct group_link *, uint64_t generation,
                     const char *address, bool counted);

void group_link_push(struct group_link *, const struct frame *push,
                     const float *gradient);

int group_link_fd(const struct group_link *);

/* False if group_link_run() is to be called without an event. */
bool group_link_waits(const struct group_link *);
short group_link_events(const struct group_link *);

/* Connects, sends and receives what can be.  The answer's header is '*answer',
 * its vector 'weights', of which 'n' are expected. */
enum group_link_state group_link_run(struct group_link *, float *weights,
                                     size_t n, struct frame_weights *answer,
                                     char **errorp);

#endif /* trainer/ps/group-link.h */
