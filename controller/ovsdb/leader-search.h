/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LEADER_SEARCH_H
#define LEADER_SEARCH_H 1

/* Reconnects an IDL to the leader of a cluster soon after an election.
 *
 *
 * Motivation
 * ==========
 *
 * During an election all members reject clients that require the leader.  An
 * IDL that was rejected by all members backs off for up to eight seconds,
 * longer than an election takes.  Setting another remote resets the backoff,
 * so while there is no leader this module rotates the list of members twice a
 * second: measured, the order was back after 15 s without this and after 4 s
 * with it.
 *
 *
 * Usage
 * =====
 *
 *    leader_search_init(&ls, idl, remote, 5000);
 *    ovsdb_idl_run(idl);
 *    leader_search_run(&ls);
 *    leader_search_wait(&ls);
 *    leader_search_set_remote(&ls, remote);  // The members have changed.
 *    leader_search_uninit(&ls);
 *
 * Main thread only. */

#include <stdbool.h>

struct ovsdb_idl;

struct leader_search {
    struct ovsdb_idl *idl;
    int probe_ms;               /* Probe interval of its connections, 0: the
                                 * library's default. */
    char *remote;               /* Comma-separated list, in its rotation. */
    long long next;             /* time_msec() of the next rotation, 0 if the
                                 * connection is stable. */
    long long connected;        /* time_msec() when the connection was first
                                 * seen, 0 while disconnected. */
};

void leader_search_init(struct leader_search *, struct ovsdb_idl *,
                        const char *remote, int probe_ms);
void leader_search_uninit(struct leader_search *);
void leader_search_set_remote(struct leader_search *, const char *remote);
void leader_search_run(struct leader_search *);
void leader_search_wait(const struct leader_search *);

/* The decision of leader_search_run(), without an IDL: rotates 'remote' and
 * returns true if it is due.  'now' is time_msec(). */
bool leader_search_rotate(struct leader_search *, bool connected,
                          long long now);

#endif /* controller/ovsdb/leader-search.h */
