/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_CGROUP_TREE_H
#define LAB_CGROUP_TREE_H 1

/* A cgroup v2 tree that holds every process of a lab.
 *
 * Processes of a lab fork, change their session, and are started by other
 * processes of the lab.  One cgroup tree for all of them makes it possible to
 * kill exactly these processes, even after the lab itself was killed.
 *
 * Paths are relative to the cgroup v2 mount, such as "stagecoach/lab-x". */

char *cgroup_tree_create(const char *path);
int cgroup_tree_join(const char *path);
char *cgroup_tree_destroy(const char *path);

#endif /* lab/cluster/cgroup-tree.h */
