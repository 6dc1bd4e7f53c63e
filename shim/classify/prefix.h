/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PREFIX_H
#define PREFIX_H 1

/* Prefixes of IP addresses, and the list of endpoints of tunnels.
 *
 * The inner headers of a tunnel's packet are written by its sender.  The
 * kernel or a virtual switch writes those of its guests, but any process can
 * send a datagram to the port of VXLAN or Geneve with the addresses of another
 * job's connection inside, and would get its priority.  So inner headers count
 * only between the endpoints of the cluster's tunnels, which the operator
 * lists: pods and guests have other addresses.  A process on the address of an
 * endpoint is believed; keep tenants from sending UDP to these ports there.
 *
 *    struct prefix_list tunnels = { .n = 0 };
 *
 *    if (prefix_parse("10.0.0.0/24", &tunnels.prefixes[tunnels.n])) {
 *        tunnels.n++;
 *    }
 *    if (prefix_list_has(&tunnels, 4, address)) {
 *        ...
 *    }
 *
 * Plain data of the caller.  Thread-safe. */

#include <stdbool.h>
#include <stdint.h>

struct address_prefix {
    uint8_t family;             /* 4 or 6; 0 matches everything. */
    uint8_t bits;               /* Length of the prefix. */
    uint8_t address[16];
};

#define PREFIX_LIST_MAX 16

struct prefix_list {
    struct address_prefix prefixes[PREFIX_LIST_MAX];
    int n;                      /* 0 to PREFIX_LIST_MAX. */

    /* Of these tunnels; 0: the usual ones that the other one does not have,
     * 4789 and 8472, and 6081. */
    uint32_t vxlan_port, geneve_port;
};

/* Reads "ADDRESS" or "ADDRESS/BITS". */
bool prefix_parse(const char *text, struct address_prefix *);

bool prefix_fits(const struct address_prefix *, uint8_t family,
                 const uint8_t *address);
bool prefix_list_has(const struct prefix_list *, uint8_t family,
                     const uint8_t *address);

#endif /* shim/classify/prefix.h */
