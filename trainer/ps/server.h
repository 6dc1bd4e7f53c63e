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
 * they have ended.
 *
 * A worker that loses its connection may come back for 'patience_us'; after
 * that, or when its heartbeats stop, the others are told that it is gone,
 * since under most schemes they would wait for ever.
 *
 * Under a scheme that has messages of its own nobody may come back: what was
 * said on the lost connection is lost too.
 *
 * With checkpoints, a server that was killed may be started again, and a
 * worker too: the job then goes back to the last checkpoint.
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
    uint16_t control_port;      /* Of heartbeats; 0: the kernel's choice. */
    int64_t patience_us;        /* How long a worker may be away. */
    int64_t deadline_us;        /* How long one may be silent; 0: for ever. */
    const char *checkpoint;     /* Folder, or NULL. */
    uint64_t checkpoint_every;  /* Iterations. */
    bool resume;                /* From the last checkpoint, if any. */
    const char *group_program;  /* What starts group servers, if the scheme
                                 * has them; NULL: somebody else does. */
    struct control *control;    /* Whose end, or stop, ends the server. */
};

/* Returns NULL if the workers ended, or the server was told to, otherwise a
 * message. */
char *ps_server_run(const struct ps_server_config *);

#endif /* trainer/ps/server.h */
