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
 *    error = sock_diag_dump(sd, see_socket, aux);
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

#include <stdint.h>

#include "shim/control/protocol.h"

struct sock_diag;

/* 'cgroup' is 0 if the kernel knows none: the connection is still being made
 * and has no socket of its own. */
typedef void sock_diag_func(const struct shim_flow_key *, uint64_t cgroup,
                            void *aux);

/* Opens the namespace 'netns' of /run/netns, or that of the caller if it is
 * null. */
int sock_diag_open(const char *netns, struct sock_diag **);
void sock_diag_close(struct sock_diag *);

int sock_diag_dump(struct sock_diag *, sock_diag_func *, void *aux);

#endif /* agent/identify/sock-diag.h */
