/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SOCKET_OWNERS_H
#define SOCKET_OWNERS_H 1

/* Processes by the sockets that they have open.
 *
 * The kernel reports the sockets of a process but not the process of a socket,
 * so the sockets of inspected processes are stored:
 *
 *    socket_owners_begin(h);
 *    ...process_walk_sockets(pid, socket_owners_add, h) for some of 'pids'...
 *    socket_owners_end(h, pids, n);
 *
 *    pid = socket_owners_find(h, inode);
 *
 * Without socket_owners_end(), earlier results stay valid.  Main thread
 * only. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct socket_owners;

struct socket_owners *socket_owners_create(void);
void socket_owners_destroy(struct socket_owners *);
void socket_owners_clear(struct socket_owners *);

void socket_owners_begin(struct socket_owners *);
void socket_owners_add(uint32_t inode, pid_t, void *socket_owners);
void socket_owners_end(struct socket_owners *, const pid_t *pids, size_t n);

pid_t socket_owners_find(const struct socket_owners *, uint32_t inode);

#endif /* agent/identify/socket-owners.h */
