/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SCRATCH_H
#define SCRATCH_H 1

/* Temporary arrays, allocated and freed in LIFO order without malloc().
 *
 * An order is computed for each event, and each step of it needs a few arrays.
 * Calling malloc() for each of them would add unpredictable latency.  A
 * problem therefore keeps its freed arrays and uses them again for the next
 * allocation at the same depth.  Once each has reached its largest size,
 * nothing is allocated any more.
 *
 *    int *order = scratch_alloc(op->scratch, op->n_stages, sizeof *order);
 *    double *load = scratch_alloc(op->scratch, op->n_ports, sizeof *load);
 *    ...
 *    scratch_free(op->scratch, load);
 *    scratch_free(op->scratch, order);
 *
 * The problem owns its scratch; an array belongs to the caller until it is
 * freed.  Zeroed memory is an initialized struct. */

#include <stddef.h>

/* Maximum number of arrays in use at a time. */
#define SCRATCH_DEPTH 16

struct scratch {
    struct scratch_array {
        void *memory;
        size_t size;            /* Bytes. */
    } arrays[SCRATCH_DEPTH];
    int n_used;                 /* Number of 'arrays' in use. */
    void *kept;                 /* Memory of scratch_keep(), or NULL. */
    void (*uninit_kept)(void *);
};

void scratch_uninit(struct scratch *);

/* Returns 'n' zeroed elements of 'size' bytes; never NULL, even for 'n' 0. */
void *scratch_alloc(struct scratch *, size_t n, size_t size);

/* Frees 'memory', which must be the most recent allocation. */
void scratch_free(struct scratch *, void *memory);

/* Returns the state of 'size' bytes that one module keeps from call to call.
 * It is zeroed at the first call.  scratch_uninit() passes it to 'uninit',
 * which frees what it refers to. */
void *scratch_keep(struct scratch *, size_t size, void (*uninit)(void *));

#endif /* order/problem/scratch.h */
