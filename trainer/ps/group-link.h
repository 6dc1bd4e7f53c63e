/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GROUP_LINK_H
#define GROUP_LINK_H 1

/* A worker's connection to its group server, under the scheme "groups".
 *
 * The central server assigns the group server and may assign another one at
 * any time.  A gradient that was pushed to the old one either counts or is
 * pushed to the new one; the central server decides.  The connection is opened
 * for a push, not at the assignment: a worker may compute for long before.
 *
 *    group_link_move(gl, generation, address, n, counted);      // FRAME_MOVE.
 *    group_link_push(gl, &push, gradient);
 *    fd = group_link_wait(gl, &events, &until_us);
 *    switch (group_link_run(gl, weights, &error)) {
 *    case GROUP_LINK_LOST:
 *        ...send FRAME_LOST to the central server...
 *    }
 *
 * The gradient is the caller's and must not change until it is answered,
 * pushed elsewhere or dropped.  Only the lookup of a host name blocks.  One
 * thread. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/net/link.h"
#include "trainer/net/transfers.h"

struct group_link {
    struct link link;
    uint64_t generation;        /* Of the group; 0: none yet. */
    char address[FRAME_MAX_TEXT + 1];   /* HOST:PORT of the group server. */
    const char *congestion;     /* TCP congestion control, or NULL. */
    int rank;                   /* Of the worker. */
    bool connecting;
    bool lost;                  /* Since the last move. */
    struct frame push;          /* Not answered yet; 'type' 0: none. */
    const float *gradient;      /* Of 'push'. */
    float *weights;             /* Where the answer goes, or NULL. */
    bool answered;              /* In this run; the body is in 'link'. */
    uint64_t n_sent, n_received;        /* Bytes, of closed connections. */
    struct transfers transfers;
};

enum group_link_state {
    GROUP_LINK_AGAIN,           /* No more for now. */
    GROUP_LINK_ANSWER,          /* The push was answered. */
    GROUP_LINK_LOST,            /* Connection lost; returned once. */
    GROUP_LINK_WRONG,           /* The server sent what is not allowed. */
};

struct group_link *group_link_create(int rank, const char *congestion);
void group_link_destroy(struct group_link *);

/* Uses another group server, "HOST:PORT" in the 'n' bytes at 'address'.  A
 * push without an answer goes to it, unless the gradient is 'counted'. */
void group_link_move(struct group_link *, uint64_t generation,
                     const char *address, size_t n, bool counted);

void group_link_push(struct group_link *, const struct frame *push,
                     const float *gradient);

/* For a source of an event loop: group_link_run() is to be called after an
 * event, or at '*until_us'. */
int group_link_wait(const struct group_link *, short *events,
                    int64_t *until_us);

/* Connects, sends and receives what is possible.  Stores an answer in
 * 'weights', which is as long as the gradient; its body is in 'link'.  Stores
 * a message in '*errorp' after GROUP_LINK_WRONG. */
enum group_link_state group_link_run(struct group_link *, float *weights,
                                     char **errorp);

#endif /* trainer/ps/group-link.h */
