/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FACTORISE_MANUAL_H
#define FACTORISE_MANUAL_H 1

/* Matrix factorisation without a key store, as an expert would write it by
 * hand; a baseline for the store.
 *
 * Each node has its rows in an array, and one block of columns.  After
 * training on the block it sends it to the node that needs it next, in large
 * messages, and continues with the block that it receives.  The steps are the
 * same as those of factorise.c.
 *
 * Blocks until the end; uses one thread and that of the mesh. */

#include <stdint.h>

struct control;
struct options;
struct pace;
struct report;

struct factorise_manual_in {
    const struct options *o;
    const char *const *names;   /* "HOST:PORT" of each node. */
    int n_nodes;
    uint16_t port;              /* Port to listen on. */
    int64_t connect_us;         /* Time limit for all nodes to connect. */
    struct control *control;
    struct report *report;      /* Report of the first node, NULL on others. */
    struct pace *pace;
};

/* Returns NULL or a message. */
char *factorise_manual_run(const struct factorise_manual_in *);

#endif /* trainer/tasks/factorise-manual.h */
