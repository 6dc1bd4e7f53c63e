/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HELD_SOCKETS_H
#define HELD_SOCKETS_H 1

/* Which process has a socket open.
 *
 * The kernel tells the sockets of a process and not the process of a socket,
 * so what a look at some processes saw is kept:
 *
 *    held_sockets_begin(h);
 *    ...process_walk_sockets(pid, held_sockets_see, h) for some of 'pids'...
 *    held_sockets_end(h, pids, n);
 *
 *    pid = held_sockets_holder(h, inode);
 *
 * Without the end, what was known before stays known.  Main thread only. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct held_sockets;

struct held_sockets *held_sockets_create(void);
void held_sockets_destroy(struct held_sockets *);
void held_sockets_clear(struct held_sockets *);

void held_sockets_begin(struct held_sockets *);
void held_sockets_see(uint32_t inode, pid_t, void *held_sockets);
void held_sockets_end(struct held_sockets *, const pid_t *pids, size_t n);

pid_t held_sockets_holder(const struct held_sockets *, uint32_t inode);

#endif /* agent/identify/held-sockets.h */
