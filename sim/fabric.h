/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H 1

/* What a flow has to pass, and how fast each part of it is.
 *
 *
 * Motivation
 * ==========
 *
 * A fabric without bottlenecks inside is one big switch: all that flows fight
 * for are the two directions of each host's link.  Each of them is a port; a
 * flow takes the sender's and the receiver's.  The rest of the simulator knows
 * only ports and paths, so that other fabrics can come behind the same calls.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Immutable after it is made; the caller destroys it. */

/* Ports that a flow passes at most. */
#define SIM_FABRIC_MAX_PATH 2

struct sim_fabric {
    int n_hosts;
    int n_ports;                /* Port 2 * h is what host h sends by, port
                                 * 2 * h + 1 is what it receives by. */
    double *capacity;           /* Of each port, bytes per second. */
};

/* A big switch with links of 'capacity' bytes per second each way. */
struct sim_fabric *sim_fabric_create(int n_hosts, double capacity);
void sim_fabric_destroy(struct sim_fabric *);

/* Stores the ports on the way from host 'src' to 'dst' and returns how many.
 * A host that sends to itself passes its own two, as the racks of a trace do;
 * whoever means loopback asks for no path. */
int sim_fabric_path(const struct sim_fabric *, int src, int dst,
                    int ports[SIM_FABRIC_MAX_PATH]);

#endif /* sim/fabric.h */
