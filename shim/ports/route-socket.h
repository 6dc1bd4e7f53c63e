/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_ROUTE_SOCKET_H
#define SHIM_ROUTE_SOCKET_H 1

/* A netlink client for interfaces, qdiscs, filters and connections.
 *
 *    error = route_socket_open(-1, &rs);
 *    nlh = route_socket_begin_tc(rs, RTM_NEWQDISC, NLM_F_ACK, &tc);
 *    ...mnl_attr_put(nlh, ...);
 *    error = route_socket_transact(rs, nlh, NULL, NULL);
 *    error = route_socket_list_links(rs, see, aux);
 *    route_socket_close(rs);
 *
 * The socket has one buffer, for a request and then for its replies.  One
 * thread at a time; a call waits at most half a second for each reply. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libmnl/libmnl.h>

struct nlattr;
struct nlmsghdr;
struct route_socket;
struct tcmsg;

/* 'netns' is a file descriptor of a network namespace that stays the caller's,
 * or -1 for the caller's own.  The second function's is for sock_diag.  Return
 * 0 or a positive errno. */
int route_socket_open(int netns, struct route_socket **);
int route_socket_open_diag(int netns, struct route_socket **);
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

/* Do that for one interface, for all interfaces, or for all qdiscs, classes or
 * filters: 'type' is of such a request.  The kernel lists the qdiscs of all
 * interfaces. */
int route_socket_get_link(struct route_socket *, const char *iface,
                          mnl_cb_t see, void *aux);
int route_socket_list_links(struct route_socket *, mnl_cb_t see, void *aux);
int route_socket_list_tc(struct route_socket *, uint16_t type, int ifindex,
                         uint32_t parent, mnl_cb_t see, void *aux);

/* Lists the TCP connections in 'states', a bit for each state.  The kernel
 * adds the attribute 'extension' of sock_diag, 0 for none, and what its
 * programs have stored for the socket in the map 'storage', -1 for none. */
int route_socket_list_tcp(struct route_socket *, uint32_t states,
                          int extension, int storage, mnl_cb_t see, void *aux);

/* Stores the index of 'iface' and returns 0, or stores 0 and returns a
 * positive errno. */
int route_socket_find(struct route_socket *, const char *iface, int *ifindex);

/* Where the kernel sends packets. */
struct route {
    int type;    /* RTN_*. */
    int ifindex; /* 0: none. */
};

/* Stores the route to an address of AF_INET or AF_INET6.  Returns 0 or a
 * positive errno. */
int route_socket_get_route(struct route_socket *, int family,
                           const uint8_t *address, struct route *);

/* Returns the id that this namespace has for the one of 'fd', -1 if none. */
int route_socket_get_nsid(struct route_socket *, int fd);

/* Return the first attribute of this type of a message about an interface, a
 * route, a namespace, or a qdisc, class or filter; or of those within another
 * one, which may be NULL.  NULL without one. */
const struct nlattr *route_attr(const struct nlmsghdr *, uint16_t type);
const struct nlattr *route_attr_in(const struct nlattr *, uint16_t type);

/* Read an attribute, which may be NULL.  The first one copies 'size' bytes, or
 * returns false if it has fewer; without a string, the result is "". */
bool route_attr_copy(const struct nlattr *, void *to, size_t size);
uint32_t route_attr_u32(const struct nlattr *, uint32_t deflt);
const char *route_attr_string(const struct nlattr *);

/* Returns the kind of the interface, such as "veth", or "". */
const char *route_link_kind(const struct nlmsghdr *);

#endif /* shim/ports/route-socket.h */
