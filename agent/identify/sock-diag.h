/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SOCK_DIAG_H
#define SOCK_DIAG_H 1

/* Cgroups of the TCP sockets of a network namespace.
 *
 * The kernel stores in each socket the cgroup that created it, and reports it
 * with the addresses by NETLINK_SOCK_DIAG.  So flows of unmodified programs
 * are recognised without touching them.
 *
 *    error = sock_diag_open(NULL, &sd);
 *    error = sock_diag_find(sd, &key, &info);
 *    error = sock_diag_dump(sd, cgroups, n, handle_socket, aux);
 *
 * Looking up one socket takes a microsecond, however many there are.  A dump
 * reads all of them; with a list of cgroups the kernel reports only sockets in
 * those, in a sixth of the time (100,000 sockets: 10 ms).
 *
 * The kernel may interrupt a dump; it is then repeated, so that a socket can
 * be reported twice.  Listening sockets and sockets in TIME_WAIT are left out,
 * and so are connections with a loopback address (127.0.0.0/8, ::1).  An IPv4
 * connection of an IPv6 socket is reported as IPv4.
 *
 * One thread at a time.  A dump blocks until the kernel has written it, at
 * most half a second. */

#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct sock_diag;

/* With more cgroups, a dump reports all sockets. */
#define SOCK_DIAG_MAX_CGROUPS 64

struct sock_info {
    struct shim_flow_key key;
    uint64_t cgroup;            /* 0 if unknown: the connection is being
                                 * established and has no socket of its own. */
    uint32_t inode;             /* As in /proc/PID/fd; 0 if no process has
                                 * it open. */
};

typedef void sock_diag_func(const struct sock_info *, void *aux);

/* Opens the namespace of the file 'netns', or the caller's if that is NULL.
 * While it is open, the kernel keeps the namespace. */
int sock_diag_open(const char *netns, struct sock_diag **);
void sock_diag_close(struct sock_diag *);

int sock_diag_find(struct sock_diag *, const struct shim_flow_key *,
                   struct sock_info *);
int sock_diag_tcp_info(struct sock_diag *, const struct shim_flow_key *,
                       void *tcp_info, size_t *sizep);
int sock_diag_dump(struct sock_diag *, const uint64_t *cgroups, size_t n,
                   sock_diag_func *, void *aux);

#endif /* agent/identify/sock-diag.h */
