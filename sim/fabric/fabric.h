/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H 1

/* What a flow has to pass, and how fast each part of it is.
 *
 * A fabric without bottlenecks inside is one big switch: all that flows fight
 * for are the two directions of each host's link.  Real fabrics are trees of
 * tiers, and the links between the tiers are often slower than what is below
 * them.  Each direction of each link is a port; a flow climbs from the sender
 * until it meets the way down to the receiver.  The rest of the simulator
 * knows only ports and paths.
 *
 * Parallel links between two tiers count as one of their summed capacity, as
 * if load balancing were perfect.
 *
 * Immutable after it is made; the caller destroys it. */

/* Ports that a flow passes at most: up and down four tiers. */
#define SIM_FABRIC_MAX_PATH 8

struct sim_fabric {
    int n_hosts;
    int n_tiers;                /* 1 to SIM_FABRIC_MAX_PATH / 2; 1 is a big
                                 * switch, where all paths have two ports. */
    int n_ports;                /* Port 2 * i is what node i sends up, port
                                 * 2 * i + 1 is what comes down to it; nodes
                                 * are the hosts, then the switches. */
    double *capacity;           /* Of each port, bytes per second. */
    int *parent;                /* Of each node, -1 if it is of the top. */
};

/* A big switch with links of 'capacity' bytes per second each way. */
struct sim_fabric *sim_fabric_create(int n_hosts, double capacity);

/* Leaves of 'hosts_per_leaf' hosts, the last maybe fewer, under spines.  What
 * a leaf's hosts can send is 'oversubscription' times what it can send up. */
struct sim_fabric *sim_fabric_create_leaf_spine(int n_hosts,
                                                int hosts_per_leaf,
                                                double capacity,
                                                double oversubscription);

/* The same fabric with 'factor' times the capacity everywhere. */
struct sim_fabric *sim_fabric_scale(const struct sim_fabric *, double factor);

/* Reads a topology, see topology.c.  Returns NULL and stores the fabric in
 * '*fabricp', or returns a malloc()'d message, "FILE:LINE: what was found,
 * what is allowed", and stores NULL. */
char *sim_fabric_from_csv(const char *file, double capacity,
                          double oversubscription,
                          struct sim_fabric **fabricp);
void sim_fabric_destroy(struct sim_fabric *);

/* Stores the ports of the path from host 'src' to 'dst' and returns their
 * number; the first is the sender's, the last the receiver's.  A host that
 * sends to itself uses its own two ports, as the racks of a trace do; loopback
 * traffic needs no path. */
int sim_fabric_path(const struct sim_fabric *, int src, int dst,
                    int ports[SIM_FABRIC_MAX_PATH]);

/* Adds a tier of 'n' switches.  Node i of the tier below is connected to
 * switch 'above[i]'. */
void sim_fabric_add_tier(struct sim_fabric *, const int *above, int n,
                         double oversubscription);

#endif /* sim/fabric/fabric.h */
