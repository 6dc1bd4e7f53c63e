/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GROUP_CHILDREN_H
#define GROUP_CHILDREN_H 1

/* Group servers that a central server starts on its own machine.
 *
 *    children = group_children_create(config, port);
 *    error = group_children_keep(children, 3);
 *    group_children_destroy(children);
 *
 * They run this program with "server --central", listen at the central
 * server's address, and get SIGTERM when the central server dies.
 *
 * 'config' is the caller's and must outlive the children.  One thread. */

#include <stdint.h>
#include <sys/types.h>

struct group_children;
struct ps_server_config;

/* 'port' is the central server's. */
struct group_children *group_children_create(const struct ps_server_config *,
                                             uint16_t port);

/* Ends all, at last by SIGKILL, and waits for them. */
void group_children_destroy(struct group_children *);

/* Starts as many as are missing from 'n'.  Returns NULL or a message. */
char *group_children_keep(struct group_children *, int n);

/* Kills 'pid' if it is one of them. */
void group_children_end(struct group_children *, pid_t pid);

#endif /* trainer/groups/group-children.h */
