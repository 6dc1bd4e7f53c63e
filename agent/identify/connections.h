/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONNECTIONS_H
#define CONNECTIONS_H 1

/* Users of TCP connections.
 *
 * The tables of a shim are shared among jobs, and connections of no job are
 * one job there.  The user that fills that share is found when the shim has
 * refused an entry: the kernel lists the connections, each with the process
 * that made its socket, as its programs have stored it (identity-maps.h).
 * Nothing is counted for a packet or for a connection.
 *
 * The kernel lists the connections of one network namespace at a time: of the
 * agent's, and of those that processes without a job are in.  A list takes a
 * microsecond for each connection.
 *
 *    user = connections_most(identity, questions, users);
 *    if (user) {
 *        user->n_other += n;
 *    }
 *
 * No state.  Main thread only. */

#include <stdint.h>

struct identity;
struct identity_copy;
struct questions;
struct user;
struct users;

/* Returns the user with most connections of no job, or NULL. */
struct user *connections_most(const struct identity *,
                              const struct questions *, struct users *);

/* Returns the user of the connection of the agent's namespace that has these
 * addresses and ports, -1 without one. */
int64_t connections_user(const struct identity_copy *);

#endif /* agent/identify/connections.h */
