/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PORT_USE_H
#define PORT_USE_H 1

/* How busy each port was in the course of a simulation.
 *
 * How long a simulation will last is not known when it begins, and its events
 * are too many to keep.  So time is cut into slots of equal width; whenever
 * they run out, each two become one of twice the width.
 *
 *    port_use_init(&use, n_ports);
 *    ...in sim_options' 'observe':
 *        port_use_add(&use, seconds, flows, n);
 *    ...port_use_bytes(&use, slot, port) / use.width...
 *    port_use_uninit(&use);
 *
 * Owns its slots.  One thread. */

#include <stddef.h>

#define PORT_USE_SLOTS 256

struct sim_flow;

struct port_use {
    int n_ports;
    double now;                 /* Seconds that have been added. */
    double width;               /* Of a slot, seconds. */
    double *bytes;              /* PORT_USE_SLOTS rows of 'n_ports'. */
};

void port_use_init(struct port_use *, int n_ports);
void port_use_uninit(struct port_use *);

/* Lets all flows go on at their rates for 'seconds'. */
void port_use_add(struct port_use *, double seconds,
                  const struct sim_flow *, size_t n);

double port_use_bytes(const struct port_use *, int slot, int port);

#endif /* sim/run/port-use.h */
