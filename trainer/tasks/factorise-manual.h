/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FACTORISE_MANUAL_H
#define FACTORISE_MANUAL_H 1

/* Matrix factorisation without a store of keys: what somebody writes by hand
 * who knows the task, to compare with.
 *
 * Each node has its rows in an array, and one block of columns.  When it is
 * done with that, it sends the block to whose turn it is next, in large
 * messages, and goes on with the one that it gets.  The steps are the same as
 * those of factorise.c.
 *
 * Blocks until the end; one thread, and that of peer-net.h. */

#include <stdint.h>

struct control;
struct options;
struct pace;
struct report;

struct factorise_manual_in {
    const struct options *o;
    const char *const *names;   /* "HOST:PORT" of each node. */
    int n_nodes;
    uint16_t port;              /* To listen at. */
    int64_t connect_us;         /* All are there by then, or it fails. */
    struct control *control;
    struct report *report;      /* Of the first node. */
    struct pace *pace;
};

/* Returns NULL or a message. */
char *factorise_manual_run(const struct factorise_manual_in *);

#endif /* trainer/tasks/factorise-manual.h */
