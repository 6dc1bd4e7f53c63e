/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LEADER_SEARCH_H
#define LEADER_SEARCH_H 1

/* Reconnects an IDL to the leader of a cluster soon after an election.
 *
 * An IDL that is given all members tries them in a random order, an attempt
 * takes a second if a member does not answer, and after each round it backs
 * off, for up to eight seconds.  During an election all members reject clients
 * that require the leader, and a machine that was cut off does not answer.
 * This module therefore gives the IDL one member at a time: the next one if
 * the member refuses or rejects the IDL, if the connection is lost, or after
 * half a second without a connection.  A member with a lost connection is thus
 * the last that is tried again.  Measured, the order was back after 15 s
 * without this module, and if the machine of the leader was cut off, after 3.3
 * to 8.4 s with all members in a random order, a new one twice a second.
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
#include <stddef.h>

#include "svec.h"

struct ovsdb_idl;

struct leader_search {
    struct ovsdb_idl *idl;
    int probe_ms;               /* Probe interval of its connections, 0: the
                                 * library's default. */
    struct svec members;        /* Remotes, in the order of their turns. */
    size_t current;             /* Index of the member that has its turn. */
    long long since;            /* time_msec() when its turn began, or 0. */
    long long next;             /* time_msec() when its turn ends, 0 while it
                                 * is connected. */
    bool connected;             /* At the last look. */
};

/* 'remote' is a comma-separated list of members.  'idl' may be null only for
 * leader_search_advance(). */
void leader_search_init(struct leader_search *, struct ovsdb_idl *,
                        const char *remote, int probe_ms);
void leader_search_uninit(struct leader_search *);

/* Sets the list of members to 'remote'.  A current connection is kept. */
void leader_search_set_remote(struct leader_search *, const char *remote);

void leader_search_run(struct leader_search *);
void leader_search_wait(const struct leader_search *);

/* The decision of leader_search_run(), without an IDL: advances 'current' and
 * returns true if the turn has ended.  'refused' is true if an attempt of this
 * turn has failed; 'now' is time_msec(). */
bool leader_search_advance(struct leader_search *, bool connected,
                           bool refused, long long now);

#endif /* controller/ovsdb/leader-search.h */
