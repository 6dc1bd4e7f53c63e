/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_ROUTE_SOCKET_H
#define SHIM_ROUTE_SOCKET_H 1

/* A netlink client for interfaces, qdiscs and filters.
 *
 *    error = route_socket_open(-1, &rs);
 *    nlh = route_socket_begin_tc(rs, RTM_NEWQDISC, NLM_F_ACK, &tc);
 *    ...mnl_attr_put(nlh, ...);
 *    error = route_socket_transact(rs, nlh, see, aux);
 *    route_socket_close(rs);
 *
 * The socket has one buffer, for a request and then for its replies.  One
 * thread at a time; a call waits at most half a second for each reply. */

#include <stdint.h>

#include <libmnl/libmnl.h>

struct nlmsghdr;
struct route_socket;
struct tcmsg;

/* 'netns' is a file descriptor of a network namespace that stays the caller's,
 * or -1 for the caller's own.  Returns 0 or a positive errno. */
int route_socket_open(int netns, struct route_socket **);
void route_socket_close(struct route_socket *);

/* Begin a request.  The second one is for qdiscs, classes and filters, with
 * this header. */
struct nlmsghdr *route_socket_begin(struct route_socket *, uint16_t type,
                                    uint16_t flags);
struct nlmsghdr *route_socket_begin_tc(struct route_socket *, uint16_t type,
                                       uint16_t flags, const struct tcmsg *);

/* Sends the request and calls 'see', unless it is NULL, with 'aux' for each
 * message of the reply.  Returns 0 or a positive errno. */
int route_socket_transact(struct route_socket *, const struct nlmsghdr *,
                          mnl_cb_t see, void *aux);

/* Stores the index of 'iface' and returns 0, or stores 0 and returns a
 * positive errno. */
int route_socket_find(struct route_socket *, const char *iface, int *ifindex);

#endif /* shim/ports/route-socket.h */
