/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATABASE_CLUSTER_H
#define DATABASE_CLUSTER_H 1

/* What a database's server knows of its cluster.
 *
 *
 * Motivation
 * ==========
 *
 * A cluster is its own list of members, so nobody else keeps one: whoever
 * needs to know where the members are asks the one beside it.
 *
 *
 * Usage
 * =====
 *
 *    error = database_cluster_ask(&database_intent, rundir, &dc);
 *    remote = database_cluster_remote(&database_intent, rundir, &dc);
 *    database_cluster_uninit(&dc);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data; the functions' strings belong to the caller. */

#include "svec.h"

struct database;

struct database_cluster {
    char *status;               /* "cluster member", or what is wrong. */
    char *role;                 /* "leader", "follower" or "candidate". */
    char *leader;               /* "self", an id, or "unknown". */
    char *term;                 /* Digits. */
    char *address;              /* Of this member, "ssl:ADDRESS:PORT". */
    struct svec members;        /* Addresses of all. */
};

char *database_cluster_ask(const struct database *, const char *rundir,
                           struct database_cluster *);
void database_cluster_parse(const char *reply, struct database_cluster *);
void database_cluster_uninit(struct database_cluster *);

/* Where clients find the members, for an IDL: the socket in 'rundir' for the
 * one beside it, and the others' ports. */
char *database_cluster_remote(const struct database *, const char *rundir,
                              const struct database_cluster *);

#endif /* controller/ovsdb/database-cluster.h */
