/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PORT_LOAD_H
#define PORT_LOAD_H 1

/* Which port has the most left to do.
 *
 *
 * Motivation
 * ==========
 *
 * The permutation asks for the busiest port once for each stage, and with
 * hundreds of ports looking at all of them would cost more than the rest.
 * Loads only fall while it works, so the few ports above some line are enough
 * until all of them have fallen below it.
 *
 *
 * Usage
 * =====
 *
 *    port_load_start(&pl, n_ports, n_on_port);
 *    port_load_add(&pl, port, seconds);          ...for all demands...
 *    while ((port = port_load_busiest(&pl)) >= 0) {
 *        port_load_remove(&pl, port, seconds);   ...some...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller owns the struct, which keeps its memory between uses. */

#include <stddef.h>

struct port_load {
    const struct permute_kernel *kernel;
    int n_ports, allocated;     /* A multiple of PERMUTE_LANES. */
    double *seconds;            /* That each port has left: 0 without a
                                 * demand, else off by some roundings. */
    int *n;                     /* Demands that each port has left. */
    int *hot;                   /* All ports that had at least 'line' when it
                                 * was drawn, by number. */
    int n_hot;
    double line;                /* Seconds; INFINITY before it is drawn. */
    double depth;               /* The next line is so far below the busiest
                                 * port, as a share of that. */
};

/* Zeroed memory is an initialized struct. */
void port_load_uninit(struct port_load *);
void port_load_start(struct port_load *, int n_ports, const int *n);

static inline void
port_load_add(struct port_load *pl, int port, double seconds)
{
    pl->seconds[port] += seconds;
}

static inline void
port_load_remove(struct port_load *pl, int port, double seconds)
{
    pl->seconds[port] -= seconds;
    if (!--pl->n[port]) {
        pl->seconds[port] = 0;
    }
}

int port_load_busiest(struct port_load *);

#endif /* order/port-load.h */
