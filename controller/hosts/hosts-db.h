/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOSTS_DB_H
#define HOSTS_DB_H 1

/* Connection of the controller to the hosts database.
 *
 * Each host has a row of Host_Wanted, with the ranks and levels of its jobs.
 * The rows are compared with what the cluster's jobs have, and a host whose
 * row differs gets a new one, with the next version: 'order' of struct host,
 * which telemetry.h pushes to its agent.  The database gets it later, for
 * agents that start without a controller, and for the next leader, so that no
 * transaction is in the way of an order.  What was not written, for whatever
 * reason, is found by its version in the next iteration.
 *
 * A compromised host must not be able to speak for another one.  An agent,
 * which the relay identifies by the common name of its certificate, may only
 * update some columns of the row of Host_Reported that has its name; it cannot
 * insert or delete rows.  The active controller inserts these rows, and the
 * RBAC rows that grant the permission, unless an operator has replaced them.
 *
 *    hosts_db_run(hdb);                // Loads Host_Reported.
 *    if (...there is another order...) {
 *        hosts_db_mark(hdb);
 *    }
 *    if (active) {
 *        hosts_db_compare(hdb, policy, generation, observe, pushes);
 *        ...push...
 *        hosts_db_write(hdb);
 *    }
 *    hosts_db_commit(hdb);
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/model/stage-start.h"

struct cluster;
struct host;
struct hosts_db;
struct json;
struct policy;

struct hosts_db *hosts_db_create(const char *remote, struct cluster *);
void hosts_db_destroy(struct hosts_db *);

/* Sets the addresses of the database's members. */
void hosts_db_set_remote(struct hosts_db *, const char *remote);
void hosts_db_accept_older(struct hosts_db *);

void hosts_db_run(struct hosts_db *);

/* Newest generation and version of all rows. */
int64_t hosts_db_generation(const struct hosts_db *);
int64_t hosts_db_version(const struct hosts_db *);
struct stage_rows hosts_db_rows(const struct hosts_db *);
double hosts_db_order_age(const struct hosts_db *);

/* Returns {"facts": [{"host", "agent", "health"}]}: version and health of the
 * agents as in Host_Reported. */
struct json *hosts_db_facts_to_json(const struct hosts_db *);

bool hosts_db_answers(const struct hosts_db *);
bool hosts_db_is_ready(const struct hosts_db *);
bool hosts_db_is_settled(const struct hosts_db *);

/* For a controller that begins to lead. */
void hosts_db_restore(struct hosts_db *);
bool hosts_db_awaits_agents(const struct hosts_db *, bool missing);

/* Removes 'host' from the reports at once, and its rows with the next
 * transaction, unless its agent connects before.  The rows are inserted again
 * when it connects. */
void hosts_db_remove(struct hosts_db *, struct host *);

void hosts_db_mark(struct hosts_db *);

/* Gives the hosts whose rows differ from what the cluster's jobs have a new
 * one.  With 'observe', hosts get no job, so that all traffic is sent as if
 * there were no order.  Agents still count it.  With 'pushes', writing may
 * wait.
 *
 * Does nothing, as hosts_db_write(), if the rows have a generation newer than
 * 'generation': a controller that was cut off may see them before it learns
 * that it was replaced. */
void hosts_db_compare(struct hosts_db *, const struct policy *,
                      int64_t generation, bool observe, bool pushes);

/* Returns the row that 'host' is to have, as in wire/host-order.h. */
struct json *hosts_db_order(const struct host *);

/* Writes the rows that the database does not have, if it is time. */
void hosts_db_write(struct hosts_db *);
void hosts_db_commit(struct hosts_db *);

#endif /* controller/hosts/hosts-db.h */
