/* SPDX-License-Identifier: Apache-2.0 */

#include "order/primal-dual/port-load.h"

#include <math.h>
#include <string.h>

#include "order/primal-dual/permute-kernel.h"
#include "order/problem/memory.h"

/* Desired number of ports above the line. */
#define MIN_HOT 8
#define MAX_HOT 32

#define MIN_DEPTH 1e-6
#define MAX_DEPTH 0.5

/* Smallest load of a port with a demand, in spite of rounding. */
#define MIN_SECONDS 1e-300

void
port_load_uninit(struct port_load *pl)
{
    free(pl->seconds);
    free(pl->n);
    free(pl->hot);
}

/* Prepares 'pl' for 'n_ports' ports.  'n' is the number of demands of each
 * port that will be added. */
void
port_load_start(struct port_load *pl, int n_ports, const int *n)
{
    int size = (n_ports + PERMUTE_LANES - 1) / PERMUTE_LANES * PERMUTE_LANES;

    if (!pl->seconds || size > pl->allocated) {
        port_load_uninit(pl);
        pl->seconds = order_alloc(size, sizeof *pl->seconds);
        pl->n = order_alloc(size, sizeof *pl->n);
        pl->hot = order_alloc(size, sizeof *pl->hot);
        pl->allocated = size;
    }
    memset(pl->seconds, 0, size * sizeof *pl->seconds);
    memcpy(pl->n, n, n_ports * sizeof *n);
    pl->n_ports = size;
    pl->n_hot = 0;
    pl->line = INFINITY;
    pl->depth = 0.125;
    pl->kernel = permute_kernel();
}

/* Sets the load of all ports with a demand to at least MIN_SECONDS. */
static void
fix_rounding(struct port_load *pl)
{
    for (int p = 0; p < pl->n_ports; p++) {
        if (pl->n[p]) {
            pl->seconds[p] = fmax(pl->seconds[p], MIN_SECONDS);
        }
    }
}

static void
collect_hot(struct port_load *pl, double line)
{
    pl->line = line;
    pl->n_hot = pl->kernel->at_least(pl->seconds, pl->n_ports, line, pl->hot);
}

/* Sets the line below 'most', the largest load.  The depth adapts to the loads
 * of the problem. */
static void
set_line(struct port_load *pl, double most)
{
    collect_hot(pl, most * (1 - pl->depth));
    while (pl->n_hot > MAX_HOT && pl->depth > MIN_DEPTH) {
        pl->depth /= 2;
        collect_hot(pl, most * (1 - pl->depth));
    }
    if (pl->n_hot < MIN_HOT) {
        pl->depth = fmin(2 * pl->depth, MAX_DEPTH);
    }
}

/* Returns the first port with the largest load, regardless of rounding errors,
 * or -1 if that load is below the line. */
static int
busiest_hot(const struct port_load *pl)
{
    double most = 0;
    int i = 0;

    for (int j = 0; j < pl->n_hot; j++) {
        double seconds = pl->seconds[pl->hot[j]];

        most = seconds > most ? seconds : most;
    }
    most *= 1 - PERMUTE_TIE;
    if (most <= 0 || most < pl->line) {
        return -1;
    }
    while (pl->seconds[pl->hot[i]] < most) {
        i++;
    }
    return pl->hot[i];
}

/* Returns the port with the largest remaining load, of equals the first, or -1
 * if no load remains. */
int
port_load_busiest(struct port_load *pl)
{
    int port = busiest_hot(pl);

    if (port < 0) {
        double most = pl->kernel->most(pl->seconds, pl->n_ports);

        if (most <= 0) {
            fix_rounding(pl);
            most = pl->kernel->most(pl->seconds, pl->n_ports);
        }
        if (most > 0) {
            set_line(pl, most);
            port = busiest_hot(pl);
        }
    }
    return port;
}
