/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROGRESS_SOCKET_H
#define PROGRESS_SOCKET_H 1

/* The socket on which jobs tell how far they are.
 *
 *
 * Motivation
 * ==========
 *
 * Senders never wait and expect no answer, so the agent reads as fast as
 * datagrams come, up to a bound a turn, and what it does not understand costs
 * one line a minute and a counter, not more.
 *
 * Anybody may send, but only for the job that he is a process of; the kernel
 * says who sent a datagram.
 *
 *
 * Usage
 * =====
 *
 *    error = progress_socket_open(path, tell, aux, &ps);
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
    PROGRESS_UNKNOWN,           /* There is no job of that name here. */
    PROGRESS_REFUSED,           /* The sender is none of its processes. */
};

typedef enum progress_verdict progress_func(const char *name,
                                            const struct progress *,
                                            const struct ucred *sender,
                                            void *aux);

struct progress_counts {
    uint64_t received;
    uint64_t malformed;
    uint64_t unknown;           /* Of no job here. */
    uint64_t refused;           /* By none of the job's processes. */
};

int progress_socket_open(const char *path, progress_func *, void *aux,
                         struct progress_socket **);
void progress_socket_close(struct progress_socket *);

void progress_socket_run(struct progress_socket *);
void progress_socket_wait(struct progress_socket *);

const struct progress_counts *progress_socket_counts(
    const struct progress_socket *);

#endif /* agent/progress/socket.h */
