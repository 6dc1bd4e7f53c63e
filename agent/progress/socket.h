/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROGRESS_SOCKET_H
#define PROGRESS_SOCKET_H 1

/* Socket to which jobs send their progress.
 *
 *
 * Motivation
 * ==========
 *
 * Senders never wait and expect no reply.  The agent reads a bounded number of
 * datagrams per call; an invalid one costs a counter and at most one log line
 * a minute.
 *
 * Any process may send, but only for its own job; the kernel passes the
 * process that sent a datagram.
 *
 *
 * Usage
 * =====
 *
 *    error = progress_socket_open(path, report, aux, &ps);
 *    progress_socket_run(ps);
 *    progress_socket_wait(ps);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/progress-datagram.h"

struct progress_socket;

struct ucred;

enum progress_verdict {
    PROGRESS_TAKEN,
    PROGRESS_UNKNOWN,           /* This host has no such job. */
    PROGRESS_REFUSED,           /* The sender is no process of the job. */
};

typedef enum progress_verdict progress_func(const char *name,
                                            const struct progress *,
                                            const struct ucred *sender,
                                            void *aux);

struct progress_counts {
    uint64_t received;
    uint64_t malformed;
    uint64_t unknown;           /* Datagrams for unknown jobs. */
    uint64_t refused;           /* Datagrams of other processes. */
};

int progress_socket_open(const char *path, progress_func *, void *aux,
                         struct progress_socket **);
void progress_socket_close(struct progress_socket *);

void progress_socket_run(struct progress_socket *);
void progress_socket_wait(struct progress_socket *);

const struct progress_counts *progress_socket_counts(
    const struct progress_socket *);

#endif /* agent/progress/socket.h */
