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

#include "agent/progress/datagram.h"

struct progress_socket;

/* Returns false if there is no job called 'name' here. */
typedef bool progress_func(const char *name, const struct progress *,
                           void *aux);

struct progress_counts {
    uint64_t received;
    uint64_t malformed;
    uint64_t unknown;           /* Of no job here. */
};

int progress_socket_open(const char *path, progress_func *, void *aux,
                         struct progress_socket **);
void progress_socket_close(struct progress_socket *);

void progress_socket_run(struct progress_socket *);
void progress_socket_wait(struct progress_socket *);

const struct progress_counts *progress_socket_counts(
    const struct progress_socket *);

#endif /* agent/progress/socket.h */
