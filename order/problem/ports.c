/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/ports.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/problem/sort.h"

void
by_port_init(struct by_port *bp, const struct order_problem *op)
{
    size_t *next;

    bp->by_id = op->by_id;
    bp->scratch = op->scratch;
    bp->first = scratch_alloc(bp->scratch, (size_t) op->n_ports + 1,
                             sizeof *bp->first);
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];

        for (size_t j = 0; j < stage->n_demands; j++) {
            bp->first[stage->demands[j].port + 1]++;
        }
    }
    for (int p = 0; p < op->n_ports; p++) {
        bp->first[p + 1] += bp->first[p];
    }

    bp->demands = scratch_alloc(bp->scratch, bp->first[op->n_ports],
                               sizeof *bp->demands);
    next = scratch_alloc(bp->scratch, op->n_ports, sizeof *next);
    memcpy(next, bp->first, op->n_ports * sizeof *next);
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[bp->by_id[i]];

        for (size_t j = 0; j < stage->n_demands; j++) {
            const struct order_demand *d = &stage->demands[j];
            struct by_port_demand *entry = &bp->demands[next[d->port]++];

            entry->stage = bp->by_id[i];
            entry->seconds = d->seconds;
        }
    }
    scratch_free(bp->scratch, next);
}

void
by_port_uninit(struct by_port *bp)
{
    scratch_free(bp->scratch, bp->demands);
    scratch_free(bp->scratch, bp->first);
}

/* A released, unfinished job. */
struct waiting {
    double remaining;           /* Seconds of service; the job with the fewest
                                 * is served. */
    int rank;                   /* Breaks ties. */
    size_t job;                 /* Index in struct port's 'jobs'. */
};

struct port {
    struct one_port_job *jobs;
    double now;                 /* Seconds. */
    struct waiting *heap;       /* Released jobs, the shortest first. */
    size_t n;                   /* Number of elements of 'heap'. */
};

static bool
before(const struct waiting *a, const struct waiting *b)
{
    return a->remaining != b->remaining ? a->remaining < b->remaining
                                        : a->rank < b->rank;
}

static void
swap(struct waiting *a, struct waiting *b)
{
    struct waiting tmp = *a;

    *a = *b;
    *b = tmp;
}

static void
port_push(struct port *port, size_t index)
{
    const struct one_port_job *job = &port->jobs[index];
    struct waiting *heap = port->heap;
    size_t i = port->n++;

    heap[i] = (struct waiting){ job->seconds, job->rank, index };
    for (; i > 0 && before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2) {
        swap(&heap[i], &heap[(i - 1) / 2]);
    }
}

static void
port_pop(struct port *port)
{
    struct waiting *heap = port->heap;
    size_t i = 0;

    heap[0] = heap[--port->n];
    for (;;) {
        size_t least = i;

        for (size_t c = 2 * i + 1; c <= 2 * i + 2 && c < port->n; c++) {
            if (before(&heap[c], &heap[least])) {
                least = c;
            }
        }
        if (least == i) {
            break;
        }
        swap(&heap[i], &heap[least]);
        i = least;
    }
}

/* Serves the shortest waiting job until it ends, at most until 'until', the
 * next release. */
static void
port_run(struct port *port, double until)
{
    struct waiting *first = &port->heap[0];

    if (port->now + first->remaining <= until) {
        port->now += first->remaining;
        port->jobs[first->job].end = port->now;
        port_pop(port);
    } else {
        first->remaining -= until - port->now; /* It stays the first. */
        port->now = until;
    }
}

static int
compare_releases(const void *a_, const void *b_)
{
    const struct one_port_job *a = a_, *b = b_;

    if (a->release != b->release) {
        return a->release < b->release ? -1 : 1;
    }
    return (a->rank > b->rank) - (a->rank < b->rank);
}

void
one_port_serve(struct one_port_job *jobs, size_t n, struct scratch *scratch)
{
    struct port port = { .jobs = jobs,
                         .heap =
                             scratch_alloc(scratch, n, sizeof *port.heap) };
    size_t next = 0;

    scratch_sort(scratch, jobs, n, sizeof *jobs, compare_releases);
    while (next < n || port.n) {
        if (!port.n) {
            port.now = fmax(port.now, jobs[next].release);
        }
        while (next < n && jobs[next].release <= port.now) {
            port_push(&port, next++);
        }
        port_run(&port, next < n ? jobs[next].release : INFINITY);
    }
    scratch_free(scratch, port.heap);
}
