/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_SERVER_H
#define PS_SERVER_H 1

/* A parameter server: one shard of the parameters of one job.
 *
 * A server knows the number of workers; the model it learns from their hellos,
 * so that it can be started first.  It ends when they have ended.
 *
 * A worker that has lost its connection may come back within the reconnect
 * timeout.  After that, or when its heartbeats stop, the job fails and the
 * other workers are aborted.  Under a scheme with messages of its own no
 * worker may come back, because messages may have been lost.
 *
 * With checkpoints, a server or a worker that was killed may be started again:
 * the job goes back to the last checkpoint.
 *
 * A connection that is not of the job costs one line on standard error.
 *
 * ps_server_run() blocks until the end; one thread. */

#include <stdbool.h>
#include <stdint.h>

struct central_class;
struct control;
struct sync_spec;

struct ps_server_config {
    const char *address;        /* To listen at. */
    uint16_t port;              /* 0: the kernel's choice. */
    int n_workers;
    int n_threads;
    const char *congestion;     /* TCP congestion control, or NULL. */
    const struct sync_spec *sync;
    uint16_t control_port;      /* For heartbeats; 0: the kernel's choice. */
    int64_t reconnect_timeout_us;       /* Of a lost worker. */
    int64_t heartbeat_timeout_us;       /* 0: silence is never too long. */
    const char *checkpoint;     /* Folder, or NULL. */
    uint64_t checkpoint_every;  /* Iterations. */
    bool resume;                /* Continue from the last checkpoint, if there
                                 * is one; false: delete the shard's
                                 * checkpoints and begin at iteration 0. */
    bool new_rate;              /* Checkpoints of other learning rates and
                                 * schedules are of this training. */
    const struct central_class *central; /* For the scheme "groups". */
    const char *group_program;  /* Starts group servers, if the scheme has
                                 * them; NULL: they are started elsewhere. */
    struct control *control;    /* Its end, or stop, ends the server. */
};

/* Returns NULL if the workers ended or the server was stopped, otherwise a
 * message. */
char *ps_server_run(const struct ps_server_config *);

#endif /* trainer/ps/server.h */
