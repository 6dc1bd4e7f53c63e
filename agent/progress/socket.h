/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROGRESS_SOCKET_H
#define PROGRESS_SOCKET_H 1

/* Socket to which jobs send their progress.
 *
 * Senders never wait and expect no reply.  The agent reads a bounded number of
 * datagrams per call; an invalid one costs a counter and at most one log line
 * a minute.
 *
 * Progress changes the rank of a job, so it is accepted only from processes of
 * the job, from processes of its user that belong to another job of its cojob,
 * such as the driver of a search, and from the host's root.  The kernel passes
 * the process that sent a datagram and its user; its cgroup, or a claim on it,
 * identifies its job.  A sender that has exited before its datagram is read is
 * not accepted.  The controller checks the number of iterations
 * (controller/model/progress-bound.h).
 *
 *    error = progress_socket_open(path, report, aux, &ps);
 *    progress_socket_run(ps);
 *    progress_socket_wait(ps);
 *
 * The directory of 'path' must have passed run_directory_check().  Main thread
 * only. */

#include <stdbool.h>

#include "wire/progress-datagram.h"

struct job;
struct json;
struct progress_socket;
struct registry;
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

int progress_socket_open(const char *path, progress_func *, void *aux,
                         struct progress_socket **);
void progress_socket_close(struct progress_socket *);

void progress_socket_run(struct progress_socket *);
void progress_socket_wait(struct progress_socket *);

/* Returns the numbers of datagrams by what became of them. */
struct json *progress_socket_to_json(const struct progress_socket *);

/* Returns true if 'sender' may report the progress of the job.  'mount' is the
 * mount of cgroup v2, or NULL. */
bool progress_may_report(const struct registry *, const char *mount,
                         const struct ucred *sender, const struct job *);

#endif /* agent/progress/socket.h */
