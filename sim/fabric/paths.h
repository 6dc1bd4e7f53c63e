/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_PATHS_H
#define SIM_PATHS_H 1

/* The paths that flows take, each once.
 *
 * There are many flows and few pairs of hosts.  What flows of one pair have in
 * common, the ports that they pass and whatever a rate allocation keeps of
 * them, is kept once, by the path's number.
 *
 * The table owns its paths; pointers hold until the next path is added.  It
 * keeps a reference to the fabric.  One thread. */

#include <stddef.h>
#include <stdint.h>

#include "sim/fabric/fabric.h"

struct path {
    int src, dst;               /* Hosts. */
    int n_ports;                /* 2 to SIM_FABRIC_MAX_PATH, even. */
    int ports[SIM_FABRIC_MAX_PATH];
};

struct paths {
    const struct sim_fabric *fabric;
    size_t n, allocated;
    struct path *paths;
    uint32_t *slots;            /* Open addressing: 1 + a path's number, 0 is
                                 * free. */
    size_t n_slots;             /* Power of 2. */
};

void paths_init(struct paths *, const struct sim_fabric *);
void paths_uninit(struct paths *);

/* Returns the number of the path from 'src' to 'dst', which is added if it is
 * new.  Numbers go from 0 without gaps. */
uint32_t paths_find(struct paths *, int src, int dst);

#endif /* sim/fabric/paths.h */
