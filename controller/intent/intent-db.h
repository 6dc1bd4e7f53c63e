/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_DB_H
#define INTENT_DB_H 1

/* The intent database as the controller sees it: what shall run, who leads.
 *
 *
 * Motivation
 * ==========
 *
 * One controller is active, others follow and do nothing.  Which one is
 * decided by an OVSDB lock; because a lock is no fence against a controller
 * that has not noticed that it lost it, the transaction that takes leadership
 * also increments Leader.generation, and agents ignore older generations.
 *
 * A leader that loses the connection goes on from memory: if another one takes
 * over meanwhile, the generation tells agents.
 *
 *
 * Usage
 * =====
 *
 *    intent_db_run(idb);               // May change the cluster.
 *    if (intent_db_is_active(idb)) {
 *        ...decide, intent_db_event(idb, DECISION_POLICY, "stage",
 *                                   "policy", "..."), ...
 *    }
 *    intent_db_commit(idb);            // Once, after all else in the loop.
 *
 *
 * Ownership and thread-safety
 * ===========================
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

struct intent_db *intent_db_create(const char *remote, const char *address,
                                   struct cluster *, struct overrides *,
                                   struct decision_log *);
void intent_db_set_remote(struct intent_db *, const char *remote);
void intent_db_destroy(struct intent_db *);

void intent_db_run(struct intent_db *, int64_t lease_ms);
void intent_db_note_generation(struct intent_db *, int64_t generation);
void intent_db_commit(struct intent_db *);

bool intent_db_is_connected(const struct intent_db *);
bool intent_db_is_active(const struct intent_db *);
int64_t intent_db_generation(const struct intent_db *);
const char *intent_db_state(const struct intent_db *);

void intent_db_set_policy(struct intent_db *, const struct policy *);
void intent_db_event(struct intent_db *, enum decision_kind,
                     const char *subject, const char *what,
                     const char *why, ...) OVS_PRINTF_FORMAT(5, 6);
void intent_db_operator_event(struct intent_db *, const char *who, const char *subject,
                    const char *what, const char *why, ...)
    OVS_PRINTF_FORMAT(5, 6);

#endif /* controller/intent/intent-db.h */
