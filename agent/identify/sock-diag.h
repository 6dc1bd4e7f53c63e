/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SOCK_DIAG_H
#define SOCK_DIAG_H 1

/* What the kernel has measured of the TCP connections of this host.
 *
 *    sock_diag_dump(4096, see_connection, aux);
 *
 * One dump of NETLINK_SOCK_DIAG reads the connections of the caller's network
 * namespace, a microsecond each.  Connections with a loopback address
 * (127.0.0.0/8, ::1) are left out.  An IPv4 connection of an IPv6 socket is
 * reported as IPv4.  A connection that begins or ends meanwhile may be
 * missing.
 *
 * No state. */

#include <linux/tcp.h>
#include <stddef.h>
#include <stdint.h>

struct sock_diag_connection {
    int family; /* AF_INET or AF_INET6. */
    uint8_t remote[16];
    struct tcp_info info; /* Its first 'size' bytes are valid. */
    size_t size;
};

typedef void sock_diag_func(const struct sock_diag_connection *, void *aux);

/* Calls 'see' for at most 'max' connections. */
void sock_diag_dump(size_t max, sock_diag_func *see, void *aux);

#endif /* agent/identify/sock-diag.h */
