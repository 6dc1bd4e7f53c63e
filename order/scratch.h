/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SCRATCH_H
#define SCRATCH_H 1

/* Memory that is used for a moment, again and again.
 *
 *
 * Motivation
 * ==========
 *
 * An order is computed for each event, and every room of it needs a few arrays
 * while it works.  To ask malloc() for them each time takes a while that
 * nobody can foretell.  So a problem keeps them: what is taken last is given
 * back first, and what was given back stays for whoever takes at the same
 * depth next.  Once each has been as large as it gets, nothing is allocated
 * any more.
 *
 *
 * Usage
 * =====
 *
 *    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);
 *    double *load = scratch_take(op->scratch, op->n_ports, sizeof *load);
 *    ...
 *    scratch_give(op->scratch, load);
 *    scratch_give(op->scratch, order);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The problem owns its scratch, the taker what it has taken.  Zeroed memory is
 * an initialized struct. */

#include <stddef.h>

/* Arrays that are taken at the same time, at most. */
#define SCRATCH_DEPTH 16

struct scratch {
    struct scratch_array {
        void *memory;
        size_t size;            /* Bytes. */
    } arrays[SCRATCH_DEPTH];
    int n_taken;                /* The first so many. */
};

void scratch_uninit(struct scratch *);

/* Returns 'n' zeroed elements of 'size' bytes; never NULL, even for 'n' 0. */
void *scratch_take(struct scratch *, size_t n, size_t size);

/* Gives back 'memory', the last that was taken. */
void scratch_give(struct scratch *, void *memory);

/* As qsort(), but stable and with the memory of 'scratch'. */
void scratch_sort(struct scratch *, void *items, size_t n, size_t size,
                  int (*compare)(const void *, const void *));

#endif /* order/scratch.h */
