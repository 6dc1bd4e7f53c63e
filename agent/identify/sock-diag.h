/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SOCK_DIAG_H
#define SOCK_DIAG_H 1

/* Whose cgroup each TCP socket of a network namespace is in.
 *
 *
 * Motivation
 * ==========
 *
 * The kernel notes in each socket the cgroup that made it, and tells it with
 * the addresses through NETLINK_SOCK_DIAG.  So flows of unmodified programs
 * are recognised without touching them.
 *
 *
 * Usage
 * =====
 *
 *    error = sock_diag_open(NULL, &sd);
 *    error = sock_diag_find(sd, &key, &info);
 *    error = sock_diag_dump(sd, cgroups, n, see_socket, aux);
 *
 * To find one socket takes a microsecond, however many there are.  A dump
 * looks at each; with a list of cgroups the kernel tells only of sockets in
 * those, which takes it a sixth of the time (100,000 sockets: 10 ms).
 *
 * The kernel may interrupt a dump; it is then begun anew, so that a socket can
 * be told twice.  Sockets that listen or wait in TIME_WAIT are left out, and
 * so is traffic that never leaves the host by its addresses (127.0.0.0/8,
 * ::1).  An IPv4 connection of an IPv6 socket is told as IPv4.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread at a time.  A dump blocks for as long as the kernel takes to
 * write it, at most half a second. */

#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct sock_diag;

/* Of more cgroups than that, a dump tells of all sockets. */
#define SOCK_DIAG_MAX_CGROUPS 64

struct sock_info {
    struct shim_flow_key key;
    uint64_t cgroup;            /* 0 if the kernel knows none: the connection
                                 * is still being made and has no socket of its
                                 * own. */
    uint32_t inode;             /* As in /proc/PID/fd; 0 if no process has
                                 * it. */
};

typedef void sock_diag_func(const struct sock_info *, void *aux);

/* Opens the namespace of the file 'netns', or that of the caller if it is
 * null.  As long as it is open, the kernel keeps the namespace. */
int sock_diag_open(const char *netns, struct sock_diag **);
void sock_diag_close(struct sock_diag *);

int sock_diag_find(struct sock_diag *, const struct shim_flow_key *,
                   struct sock_info *);
int sock_diag_tcp_info(struct sock_diag *, const struct shim_flow_key *,
                       void *tcp_info, size_t *sizep);
int sock_diag_dump(struct sock_diag *, const uint64_t *cgroups, size_t n,
                   sock_diag_func *, void *aux);

#endif /* agent/identify/sock-diag.h */
