/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LEADER_SEARCH_H
#define LEADER_SEARCH_H 1

/* Finds the leader of a database's cluster soon after there is a new one.
 *
 *
 * Motivation
 * ==========
 *
 * While a cluster elects a leader, each of its members turns away who looks
 * for one, and an IDL that was turned away by all waits longer each time, up
 * to eight seconds: longer than the election takes.  A new list of members
 * makes it begin again at once, so as long as there is no leader this turns
 * the list by one, once a second.
 *
 *
 * Usage
 * =====
 *
 *    leader_search_init(&ls, remote);
 *    ovsdb_idl_run(idl);
 *    if (leader_search_run(&ls, idl)) {
 *        ovsdb_idl_set_probe_interval(idl, ...);     // Of the new session.
 *    }
 *    leader_search_wait(&ls);
 *    leader_search_set_remote(&ls, remote);              // It has grown.
 *    leader_search_uninit(&ls);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>

struct ovsdb_idl;

struct leader_search {
    char *remote;               /* The list, as it is now. */
    long long next;             /* When to turn it, 0 while connected. */
    long long connected;        /* Since when it is, 0 while not. */
};

void leader_search_init(struct leader_search *, const char *remote);
void leader_search_uninit(struct leader_search *);
void leader_search_set_remote(struct leader_search *, const char *remote);
bool leader_search_run(struct leader_search *, struct ovsdb_idl *);
void leader_search_wait(const struct leader_search *);

#endif /* controller/ovsdb/leader-search.h */
