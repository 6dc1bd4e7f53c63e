/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_DB_H
#define INTENT_DB_H 1

/* Connection of the controller to the intent database.
 *
 * Copies the intent and the overrides to memory, takes the leadership
 * (leadership.h), and writes events, overrides and the name of the policy.
 * Transactions are at least 200 ms apart, so that many events become one
 * transaction; overrides are written at once.
 *
 *
 * Usage
 * =====
 *
 *    intent_db_run(idb, lease_ms);     // May change the cluster.
 *    if (intent_db_is_active(idb)) {
 *        intent_db_event(idb, DECISION_POLICY, "stage", "policy", "...");
 *    }
 *    intent_db_commit(idb);            // Last in each iteration.
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "compiler.h"
#include "controller/decide/decision-log.h"

struct cluster;
struct intent_db;
struct overrides;
struct policy;

/* Copies the database at 'remote' to the cluster and the overrides.  'address'
 * is what agents connect to; it is written to the Leader table.  Events are
 * added to the log, too. */
struct intent_db *intent_db_create(const char *remote, const char *address,
                                   struct cluster *, struct overrides *,
                                   struct decision_log *);
void intent_db_set_remote(struct intent_db *, const char *remote);
void intent_db_destroy(struct intent_db *);

/* 'lease_ms' is written to the Leader table. */
void intent_db_run(struct intent_db *, int64_t lease_ms);
void intent_db_commit(struct intent_db *);

/* The hosts database has orders of 'generation'. */
void intent_db_note_generation(struct intent_db *, int64_t generation);

bool intent_db_is_connected(const struct intent_db *);
bool intent_db_is_active(const struct intent_db *);
int64_t intent_db_generation(const struct intent_db *);

/* "active", "standby" (another controller leads), "starting" or
 * "disconnected". */
const char *intent_db_state(const struct intent_db *);

/* Writes the name and text of the policy in force to the database. */
void intent_db_set_policy(struct intent_db *, const struct policy *);

/* Adds an event to the Event table and the logs: 'what' happened to 'subject',
 * by this controller or by operator 'actor'.  A standby controller adds none,
 * because the active one does. */
void intent_db_event(struct intent_db *, enum decision_kind,
                     const char *subject, const char *what,
                     const char *why, ...) OVS_PRINTF_FORMAT(5, 6);
void intent_db_operator_event(struct intent_db *, const char *actor,
                              const char *subject, const char *what,
                              const char *why, ...) OVS_PRINTF_FORMAT(5, 6);

#endif /* controller/intent/intent-db.h */
