/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FABRIC_H
#define FABRIC_H 1

/* Links between switches, as ports of the order.
 *
 * Two jobs that share no host may share the uplink of a rack.  The order sees
 * that only if the uplink is a port.  This module has what the order needs to
 * know of a fabric: the ports inside it, and which of them the traffic between
 * two leaves uses, and for how long.  The part that reads the topology makes
 * it; the model does not know switches, routes or files.
 *
 *    struct fabric *f = fabric_create(2);            // Two leaves.
 *    int port = fabric_add_port(f, "leaf0>spine0");
 *
 *    fabric_add_crossing(f, 0, 1, port, 1e-9);       // Leaf 0 to leaf 1.
 *    fabric_add_host(f, "h0", 0x0a000001, 0);        // Is at leaf 0.
 *    cluster_set_fabric(c, f);                       // Takes ownership.
 *
 * demand_port_names() has the number and the name of each port in an order
 * problem.  Does not change once it is complete. */

#include <stddef.h>
#include <stdint.h>

#include "openvswitch/hmap.h"
#include "simap.h"

/* Use of a port by the traffic from one leaf to another. */
struct fabric_crossing {
    int port;                   /* From fabric_add_port(). */
    double seconds_per_bit;     /* Share of the traffic that uses the port,
                                 * 0 to 1, by the port's bit/s. */
};

struct fabric_pair {
    struct fabric_crossing *crossings;
    size_t n, allocated;
};

struct fabric {
    int n_leaves;
    struct fabric_pair *pairs;  /* From leaf i to j: [i * n_leaves + j]. */
    char **ports;               /* Names, by port. */
    int n_ports;
    size_t allocated_ports;
    struct simap hosts;         /* Name -> leaf. */
    struct hmap addresses;      /* Contains struct fabric_address. */
};

struct fabric *fabric_create(int n_leaves);
void fabric_destroy(struct fabric *);

int fabric_add_port(struct fabric *, const char *name);
void fabric_add_crossing(struct fabric *, int from, int to, int port,
                         double seconds_per_bit);
/* 'ip' is the host's IPv4 address in host byte order. */
void fabric_add_host(struct fabric *, const char *name, uint32_t ip, int leaf);

/* Returns the name of the host with the address 'ip', or NULL. */
const char *fabric_find_address(const struct fabric *, uint32_t ip);

/* Returns the leaf of host 'name', -1 if it is unknown. */
int fabric_find_host(const struct fabric *, const char *name);

/* Returns the crossings from leaf 'from' to leaf 'to'. */
const struct fabric_pair *fabric_get_pair(const struct fabric *, int from,
                                          int to);

#endif /* controller/model/fabric.h */
