/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ONE_PORT_H
#define ONE_PORT_H 1

/* When stages end on one port, looked at as if there were no other.
 *
 *
 * Motivation
 * ==========
 *
 * Both the estimate of what an order reaches and one of the lower bounds
 * come from single ports: a port is a machine that serves one stage at a time
 * (or all at once, at a share each), may interrupt it, and is never idle while
 * somebody waits.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller's array is sorted anew and its 'end's are filled in. */

#include <stddef.h>

/* Who is served, of those that are there. */
enum one_port_rule {
    ONE_PORT_RANK,              /* The smallest rank. */
    ONE_PORT_SHORTEST,          /* The least left: the smallest possible sum
                                 * of ends (Schrage 1968). */
    ONE_PORT_SHARE,             /* All, at equal rates. */
};

struct one_port_job {
    int stage;                  /* For the caller. */
    int rank;                   /* For ONE_PORT_RANK; breaks all ties. */
    double release;             /* Seconds, >= 0: not served before. */
    double seconds;             /* Of service, > 0. */
    double end;                 /* Result. */
};

struct scratch;

void one_port_serve(enum one_port_rule, struct one_port_job *, size_t n,
                    struct scratch *);

#endif /* order/one-port.h */
