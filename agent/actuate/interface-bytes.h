/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTERFACE_BYTES_H
#define INTERFACE_BYTES_H 1

/* Bytes that an interface has sent and received, of whatever job or none, by
 * the kernel's own count.  RDMA passes a card without the kernel and is not in
 * it. */

#include <stdint.h>

struct route_socket;

struct interface_bytes {
    uint64_t tx, rx;
};

/* Stores what 'iface' has counted since it was made, zeros if there is no such
 * interface.  Returns 0 or a positive errno. */
int interface_bytes_get(struct route_socket *, const char *iface,
                        struct interface_bytes *);

#endif /* agent/actuate/interface-bytes.h */
