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
 * so while there is no leader this module rotates the list of members once per
 * second.
 *
 *
 * Usage
 * =====
 *
 *    leader_search_init(&ls, remote);
 *    ovsdb_idl_run(idl);
 *    if (leader_search_run(&ls, idl)) {
 *        ovsdb_idl_set_probe_interval(idl, interval);  // Of the new session.
 *    }
 *    leader_search_wait(&ls);
 *    leader_search_set_remote(&ls, remote);  // The members have changed.
 *    leader_search_uninit(&ls);
 *
 * Main thread only.
 *
 *
 * Decisions
 * =========
 *
 * The search for a leader restarts every second.  An IDL that every member has
 * refused backs off for up to 8 s, longer than an election takes: measured,
 * the order was back after 15 s without the restart and after 4 s with it. */

#include <stdbool.h>

struct ovsdb_idl;

struct leader_search {
    char *remote;               /* Comma-separated list, in its rotation. */
    long long next;             /* time_msec() of the next rotation, 0 if the
                                 * connection is stable. */
    long long connected;        /* time_msec() when the connection was first
                                 * seen, 0 while disconnected. */
};

void leader_search_init(struct leader_search *, const char *remote);
void leader_search_uninit(struct leader_search *);
void leader_search_set_remote(struct leader_search *, const char *remote);
bool leader_search_run(struct leader_search *, struct ovsdb_idl *);
void leader_search_wait(const struct leader_search *);

/* The decision of leader_search_run(), without an IDL: rotates 'remote' and
 * returns true if it is due.  'now' is time_msec(). */
bool leader_search_rotate(struct leader_search *, bool connected,
                          long long now);

#endif /* controller/ovsdb/leader-search.h */
