/* SPDX-License-Identifier: Apache-2.0 */

#include "order/port-load.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "order/memory.h"
#include "order/permute-kernel.h"

/* How many ports should be above the line. */
#define MIN_HOT 8
#define MAX_HOT 32

#define MIN_DEPTH 1e-6
#define MAX_DEPTH 0.5

/* Least that a port with a demand has, whatever was rounded. */
#define MIN_SECONDS 1e-300

void
port_load_uninit(struct port_load *pl)
{
    free(pl->seconds);
    free(pl->n);
    free(pl->hot);
}

/* Prepares 'pl' for ports that have 'n' demands each, still to be added. */
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

/* Makes sure that all ports with a demand have something left. */
static void
mend_roundings(struct port_load *pl)
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

/* Draws the line anew below the busiest port, which has 'most'.  How deep is
 * learned from the last lines, because loads are as different as problems
 * are. */
static void
draw_line(struct port_load *pl, double most)
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

/* Returns the first port whose load is the largest but for a rounding, -1 if
 * it is below the line. */
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

/* Returns the port with the most left to do, of equals the first, -1 if
 * nothing is left to do. */
int
port_load_busiest(struct port_load *pl)
{
    int port = busiest_hot(pl);

    if (port < 0) {
        double most = pl->kernel->most(pl->seconds, pl->n_ports);

        if (most <= 0) {
            mend_roundings(pl);
            most = pl->kernel->most(pl->seconds, pl->n_ports);
        }
        if (most > 0) {
            draw_line(pl, most);
            port = busiest_hot(pl);
        }
    }
    return port;
}
