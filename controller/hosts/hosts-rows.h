/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOSTS_ROWS_H
#define HOSTS_ROWS_H 1

/* Rows of Host_Wanted: what one host is told of the order.
 *
 *
 * Motivation
 * ==========
 *
 * A row that is written is a message to a host.  So what a host shall have is
 * made from the cluster's jobs, compared with the row that is there, and
 * written if it differs.
 *
 *
 * Usage
 * =====
 *
 *    struct hosts_rows hr = { ... };
 *
 *    n += hosts_rows_write(&hr, host, row);      // For each host.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Keeps nothing.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct host;
struct hostsrec_host_wanted;
struct ovsdb_idl;
struct ovsdb_idl_txn;
struct policy;

/* What is the same for all rows of a transaction. */
struct hosts_rows {
    struct ovsdb_idl *idl;
    struct ovsdb_idl_txn *txn;
    const struct cluster *cluster;
    const struct policy *policy;
    int64_t generation;         /* Of the leader. */
    int64_t version;            /* That a row gets if it differs. */
    bool observe;               /* Hosts are told of no job. */
};

/* Compares with the 'row' of 'host', NULL if there is none, and writes it if
 * it differs.  Returns true if it did. */
bool hosts_rows_write(const struct hosts_rows *, const struct host *,
                      const struct hostsrec_host_wanted *row);

#endif /* controller/hosts/hosts-rows.h */
