/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NODE_H
#define NODE_H 1

/* A node: one process of a job with a parameter for each of many keys.
 *
 * It reads the task's data (tasks/node-task.h), opens its part of the store
 * (keys/key-store.h) and starts threads, which train until the task's end.  If
 * a node dies, the others end with a message that names it. */

struct control;
struct options;

/* Trains as node 'o->rank'.  Returns NULL if training reached its end or was
 * stopped, otherwise a message. */
char *node_run(const struct options *, struct control *);

#endif /* trainer/loop/node.h */
