/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_GROUP_CHILDREN_H
#define PS_GROUP_CHILDREN_H 1

/* Group servers that a central server starts on its own machine.
 *
 *    children = group_children_create(config, port);
 *    error = group_children_keep(children, 3);     // Starts what lacks.
 *    group_children_destroy(children);
 *
 * They are this program with "server --central", listen at the central
 * server's address, and get SIGTERM when it dies.
 *
 * The caller owns 'config', which must live as long.  One thread. */

#include <stdint.h>
#include <sys/types.h>

struct group_children;
struct ps_server_config;

/* 'port' is the central server's. */
struct group_children *group_children_create(const struct ps_server_config *,
                                             uint16_t port);

/* Waits for all to end, and kills those that do not soon. */
void group_children_destroy(struct group_children *);

/* Makes 'n' of them run.  Returns NULL, or why they do not. */
char *group_children_keep(struct group_children *, int n);

/* Kills 'pid' if it is one of them. */
void group_children_end(struct group_children *, pid_t pid);

#endif /* trainer/groups/group-children.h */
