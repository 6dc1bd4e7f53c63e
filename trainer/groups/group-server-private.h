/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_GROUP_SERVER_PRIVATE_H
#define PS_GROUP_SERVER_PRIVATE_H 1

/* What the parts of a group server share.
 *
 * group-server.c has the loop and the central server's side, group-seats.c the
 * workers' side: a "visitor" is a connection, a "seat" a worker's place in the
 * group, with or without a visitor. */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/groups/group-server.h"
#include "trainer/net/link.h"

#define GROUP_FIXED_FDS 4       /* Descriptors that are not visitors'. */
#define GROUP_MAX_STRANGERS 8   /* Visitors, more than two a seat. */

/* A worker's connection. */
struct visitor {
    struct link link;           /* Without a socket if it is unused. */
    char *name;                 /* For messages. */
    int64_t since_us;
    bool joined;
    uint64_t generation;        /* These two once it has joined. */
    uint64_t rank;
};

/* A worker's place in the group. */
struct seat {
    uint32_t rank;
    int visitor;                /* Or -1. */
    bool rests;                 /* It is not waited for. */
    bool pushed;                /* For the mean that comes next. */
    bool owed;                  /* It gets weights, for the last mean. */
    uint64_t iteration;         /* These three of its last push. */
    uint32_t n_samples;
    float loss;
    float *gradient;
};

struct group_server {
    const struct group_server_config *config;
    struct link central;
    char *name;                 /* "HOST:PORT" of ours. */
    int listener;
    struct visitor *visitors;
    struct pollfd *fds;
    int n_visitors;             /* Places for them. */

    uint64_t generation;        /* Of the group; 0: there is none yet. */
    struct seat *seats;
    int n_seats;
    bool owed;                  /* We get weights for our last mean. */
    size_t n_parameters;
    float *mean, *weights;
    uint64_t n_steps;           /* Of all groups. */
    int64_t beat_us, heard_us;  /* Heartbeats to and of the central server. */
    uint64_t n_sent, n_received;        /* Bytes, of closed connections. */
    bool over;
    char *failure;
};

/* group-seats.c */

/* Makes room for 'n' visitors.  Moves all of them. */
void group_seats_reserve(struct group_server *, int n);

/* Nobody and no group is here any more. */
void group_seats_clear(struct group_server *);

/* The central server has given us a group, by its last frame. */
char *group_seats_take_group(struct group_server *);

/* The central server says which of our workers rest. */
char *group_seats_take_rests(struct group_server *);

/* All that the last mean was of get 'weights', which have come. */
void group_seats_give_weights(struct group_server *);

struct visitor *group_seats_unused(struct group_server *);
void group_seats_accept(struct group_server *, struct visitor *);

/* Whether more of 'visitor' is to be received: one that comes for a group that
 * is not here yet is heard later. */
bool group_seats_hears(const struct group_server *, const struct visitor *);

/* Takes what visitors say, by the events of 'fds'. */
void group_seats_run(struct group_server *);

#endif /* trainer/groups/group-server-private.h */
