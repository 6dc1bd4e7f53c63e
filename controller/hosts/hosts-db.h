/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOSTS_DB_H
#define HOSTS_DB_H 1

/* The hosts database as the controller sees it: wanted and reported.
 *
 *
 * Motivation
 * ==========
 *
 * Each host has one row that says what its jobs shall have.  Rows are written
 * by difference: what is in the database is compared with what the cluster's
 * jobs say, and only hosts for which it differs are written, with the next
 * version.  So nothing needs to remember what was sent, and a lost
 * transaction is made up for in the next round.
 *
 *
 * Usage
 * =====
 *
 *    hosts_db_run(hdb);                // Takes in Host_Reported.
 *    if (...there is another order...) {
 *        hosts_db_mark(hdb);
 *    }
 *    if (active) {
 *        hosts_db_write(hdb, policy, generation);
 *    }
 *    hosts_db_commit(hdb);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct hosts_db;
struct policy;

struct hosts_db *hosts_db_create(const char *remote, struct cluster *);
void hosts_db_set_remote(struct hosts_db *, const char *remote);
void hosts_db_destroy(struct hosts_db *);

void hosts_db_run(struct hosts_db *);
int64_t hosts_db_generation(const struct hosts_db *);
bool hosts_db_is_connected(const struct hosts_db *);
bool hosts_db_is_ready(const struct hosts_db *);
bool hosts_db_is_settled(const struct hosts_db *);
void hosts_db_restore(struct hosts_db *);
bool hosts_db_has_order(const struct hosts_db *);
bool hosts_db_awaits_agents(const struct hosts_db *);

void hosts_db_mark(struct hosts_db *);
void hosts_db_observe(struct hosts_db *, bool observe);
void hosts_db_write(struct hosts_db *, const struct policy *,
                    int64_t generation);
void hosts_db_commit(struct hosts_db *);

int64_t hosts_db_version(const struct hosts_db *);

#endif /* controller/hosts/hosts-db.h */
