/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOSTS_ACCESS_H
#define HOSTS_ACCESS_H 1

/* Who may do what in the hosts database.
 *
 *
 * Motivation
 * ==========
 *
 * A host that somebody has broken into must not speak for another one.  So an
 * agent, which a relay knows by the common name of its certificate, may change
 * the columns of the row of Host_Reported that has its name, and nothing else;
 * it makes no rows.  The leading controller makes them, and the rows that say
 * all this, unless an operator has put others in their place.
 *
 *
 * Usage
 * =====
 *
 *    hosts_access_init(idl);                  // Before the IDL runs.
 *    hosts_access_write(idl, txn);            // With each transaction.
 *    hosts_access_write_host(idl, txn, "h0");
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state. */

struct ovsdb_idl;
struct ovsdb_idl_txn;

void hosts_access_init(struct ovsdb_idl *);
void hosts_access_write(struct ovsdb_idl *, struct ovsdb_idl_txn *);

/* Makes the row that 'host' reports in, if there is none. */
void hosts_access_write_host(struct ovsdb_idl *, struct ovsdb_idl_txn *,
                             const char *host);

#endif /* controller/hosts/hosts-access.h */
