/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_LEAF_SPINE_H
#define LAB_LEAF_SPINE_H 1

/* Switches and cables of a lab with racks, and the topology file for its
 * controller.
 *
 *      spine0       spine1         Each leaf has one cable to each spine;
 *      hosts
 *       |  \_______/  |            are divided among the leaves in order.
 *       |  /       \  |
 *      leaf0        leaf1          A cable is a pair of veth interfaces in the
 *      p0 p1        p2 p3          fabric's namespace, "l0s1" at leaf0 and
 *      |  |         |  |           "s1l0" at spine1.
 *      h0 h1        h2 h3
 *
 * One switch is one leaf without spines.
 *
 * All switches are bridges of one Open vSwitch.  Cables are interfaces and not
 * patch ports, so that HTB can limit the rate of each direction, and so that a
 * cable can fail.  The bridges forward nothing by themselves: the controller
 * reads the topology file and writes the routes, over all spines, as in a
 * deployment.
 *
 *    for (int i = 0; i < leaf_spine_n_links(plan); i++) {
 *        struct switch_port leaf = leaf_spine_link_port(plan, i, 0);
 *        struct switch_port spine = leaf_spine_link_port(plan, i, 1);
 *        ...leaf.interface, spine.interface...
 *    }
 *    error = leaf_spine_write_topology(plan);
 *
 * Plain data, for plans with plan_has_topology() only. */

#include <stdint.h>

struct plan;

struct switch_port {
    int sw;                     /* Number of the switch: leaves, then
                                 * spines. */
    int number;                 /* OpenFlow port number. */
    char interface[16];
};

int leaf_spine_n_switches(const struct plan *);
int leaf_spine_n_links(const struct plan *);

/* Returns the name of a switch; the caller frees.  Its datapath id is its
 * number + 1. */
char *leaf_spine_switch_name(const struct plan *, int sw);

struct switch_port leaf_spine_host_port(const struct plan *, int host);

/* Returns the port at the leaf (end 0) or at the spine (end 1) of a link. */
struct switch_port leaf_spine_link_port(const struct plan *, int link,
                                        int end);

/* Returns the rate of each direction of a link, bit/s. */
int64_t leaf_spine_rate(const struct plan *);

/* Returns the path of the topology file; the caller frees. */
char *leaf_spine_topology(const struct plan *);

/* Writes the topology file (docs/interfaces.md).  In the file of a plan with
 * 'blind', links have a capacity that no traffic of the lab uses up.  Returns
 * NULL or a message. */
char *leaf_spine_write_topology(const struct plan *);

#endif /* lab/cluster/leaf-spine.h */
