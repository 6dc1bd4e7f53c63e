/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROLLERS_H
#define CONTROLLERS_H 1

/* The controllers that share the intent database, and their policies.
 *
 * A standby controller orders by its own policy file as soon as it leads.  If
 * that file differs from the leader's, the whole order changes in the moment
 * of a failure.  So each controller keeps a row of the table Controller, with
 * the hash of its policy, and has an alarm while the row of another one that
 * is there has another hash.
 *
 *    cs = controllers_create(remote, address);
 *    controllers_run(cs, policy);
 *    controllers_alarms(cs, alarms);
 *    controllers_wait(cs);
 *
 * The connection holds no lock, because standby controllers write as well.
 * Main thread only. */

struct controllers;
struct json;
struct policy;

/* 'address' is what agents connect to, and the name of the row. */
struct controllers *controllers_create(const char *remote,
                                       const char *address);
void controllers_destroy(struct controllers *);

/* Sets the addresses of the database's members. */
void controllers_set_remote(struct controllers *, const char *remote);

void controllers_run(struct controllers *, const struct policy *);
void controllers_wait(struct controllers *);

/* Appends an alarm while controllers have different policies. */
void controllers_alarms(const struct controllers *, struct json *alarms);

#endif /* controller/intent/controllers.h */
