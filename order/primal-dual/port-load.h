/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PORT_LOAD_H
#define PORT_LOAD_H 1

/* Finds the port with the largest remaining load.
 *
 * The permutation needs the busiest port once for each stage.  With hundreds
 * of ports a scan of all of them would cost more than the rest.  Loads only
 * fall during a permutation, so the few ports above a threshold, the line, are
 * enough until all of them have fallen below it.
 *
 *    port_load_start(&pl, n_ports, n_on_port);
 *    port_load_add(&pl, port, seconds);          ...for all demands...
 *    while ((port = port_load_busiest(&pl)) >= 0) {
 *        port_load_remove(&pl, port, seconds);   ...some...
 *    }
 *
 * The caller owns the struct, which keeps its memory between uses. */

struct port_load {
    const struct permute_kernel *kernel;
    int n_ports, allocated;     /* A multiple of PERMUTE_LANES. */
    double *seconds;            /* Remaining load of each port, with rounding
                                 * errors; exactly 0 without a demand. */
    int *n;                     /* Number of remaining demands of each port. */
    int *hot;                   /* Ports that had at least 'line' when it was
                                 * set, by number. */
    int n_hot;
    double line;                /* Seconds; INFINITY before it is set. */
    double depth;               /* Distance of the next line below the largest
                                 * load, as a share of that load. */
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

#endif /* order/primal-dual/port-load.h */
