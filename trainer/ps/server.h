/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_SERVER_H
#define PS_SERVER_H 1

/* A parameter server: one shard of one job's parameters.
 *
 *
 * Motivation
 * ==========
 *
 * A server is told how many workers to expect and learns the rest from their
 * hellos, so it can be started before anybody knows the model.  It ends when
 * they have ended.  When one of them dies the others are told, since under
 * most schemes they would wait for ever.
 *
 * Somebody else's connection costs one line on standard error and nothing
 * else.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * ps_server_run() blocks until the end; one thread. */

#include <stdbool.h>
#include <stdint.h>

struct control;
struct sync_spec;

struct ps_server_config {
    const char *address;        /* To listen at. */
    uint16_t port;              /* 0: the kernel's choice. */
    int n_workers;
    int n_threads;
    const char *congestion;     /* TCP congestion control, or NULL. */
    const struct sync_spec *sync;
    struct control *control;    /* Whose end, or stop, ends the server. */
};

/* Returns NULL if the workers ended, or the server was told to, otherwise a
 * message. */
char *ps_server_run(const struct ps_server_config *);

#endif /* trainer/ps/server.h */
