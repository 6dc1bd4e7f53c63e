/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_GROUP_SERVER_H
#define PS_GROUP_SERVER_H 1

/* A server of one group of workers, under the scheme "groups".
 *
 *
 * Motivation
 * ==========
 *
 * The workers of a group wait for each other, and need a server for that
 * only: it makes one mean of their gradients, pushes it to the central
 * server, and gives them the weights that it gets back.  So a group's traffic
 * stays near it, and the central server has one gradient a group.
 *
 * A group server knows nothing for longer than a step.  The central server
 * says who is in its group, and may say so again at any time; when the group
 * server is gone, its workers push what was not counted to another one.
 *
 *
 * Usage
 * =====
 *
 *    error = group_server_run(&config);
 *
 * The central server ends it.  If the connection to that one breaks, it comes
 * back as a new server, without a group.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * group_server_run() blocks until the end; one thread. */

#include <stdint.h>

struct control;

struct group_server_config {
    const char *central;        /* "HOST:PORT". */
    const char *address;        /* To listen at; workers connect to it. */
    uint16_t port;              /* 0: the kernel's choice. */
    const char *congestion;     /* TCP congestion control, or NULL. */
    int64_t patience_us;        /* How long the central one may be away. */
    int64_t deadline_us;        /* How long it may be silent; 0: for ever. */
    struct control *control;    /* Whose end, or stop, ends the server. */
};

/* Returns NULL if the training ended, or the server was told to, otherwise a
 * message. */
char *group_server_run(const struct group_server_config *);

#endif /* trainer/groups/group-server.h */
