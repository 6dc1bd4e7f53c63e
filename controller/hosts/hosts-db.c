/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/hosts-db.h"

#include <inttypes.h>
#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/hosts/hosts-access.h"
#include "wire/hosts-idl.h"
#include "controller/hosts/hosts-rows.h"
#include "controller/ovsdb/leader-search.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(hosts_db);

#define PROBE_MS 5000

/* Time between two transactions. */
#define WRITE_MS 100

struct hosts_db {
    struct ovsdb_idl_loop loop;
    struct leader_search search;
    struct ovsdb_idl_txn *txn;  /* Of this round, NULL if one is on its way. */
    struct cluster *cluster;
    unsigned int seqno;         /* Of the database, last taken in. */
    int64_t version;            /* The highest that any row has or got. */
    int64_t generation;         /* The same. */
    bool dirty;                 /* Rows must be compared. */
    bool observe;               /* Hosts are told of no job. */
    long long next_write;       /* time_msec() of the next transaction. */
};

struct hosts_db *
hosts_db_create(const char *remote, struct cluster *cluster)
{
    struct hosts_db *hdb = xzalloc(sizeof *hdb);
    struct ovsdb_idl *idl;

    idl = ovsdb_idl_create(remote, &hostsrec_idl_class, false, true);
    ovsdb_idl_add_table(idl, &hostsrec_table_host_wanted);
    ovsdb_idl_add_table(idl, &hostsrec_table_host_reported);
    for (size_t i = 0; i < HOSTSREC_HOST_WANTED_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &hostsrec_host_wanted_columns[i]);
    }
    for (size_t i = 0; i < HOSTSREC_HOST_REPORTED_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &hostsrec_host_reported_columns[i]);
    }
    /* Nobody else writes these rows, so what has not changed need not be
     * written again to be sure that it is there. */
    ovsdb_idl_set_write_changed_only_all(idl, true);
    hosts_access_init(idl);
    ovsdb_idl_set_probe_interval(idl, PROBE_MS);
    hdb->loop.idl = idl;
    leader_search_init(&hdb->search, remote);
    hdb->cluster = cluster;
    return hdb;
}

void
hosts_db_destroy(struct hosts_db *hdb)
{
    if (hdb) {
        ovsdb_idl_loop_destroy(&hdb->loop);
        leader_search_uninit(&hdb->search);
        free(hdb);
    }
}

/* The database's members are at 'remote' now. */
void
hosts_db_set_remote(struct hosts_db *hdb, const char *remote)
{
    leader_search_set_remote(&hdb->search, remote);
}

static void
take_in_reported(struct hosts_db *hdb,
                 const struct hostsrec_host_reported *row)
{
    struct host *host = cluster_get_host(hdb->cluster, row->host);

    host->reports = true;
    if (!host->connected) {
        host_set_applied(host, row->applied);
        struct simap ports = SIMAP_INITIALIZER(&ports);

        for (size_t i = 0; i < row->n_ports; i++) {
            simap_put(&ports, row->key_ports[i],
                      MIN(row->value_ports[i] / 1000, UINT32_MAX));
        }
        if (!simap_is_empty(&ports)) {
            host_set_ports(hdb->cluster, host, &ports);
        }
        simap_destroy(&ports);
        free(host->state);
        host->state = xstrdup(row->state);
    }
}

static void
take_in(struct hosts_db *hdb)
{
    const struct hostsrec_host_reported *reported;
    const struct hostsrec_host_wanted *wanted;
    struct shash_node *node;

    SHASH_FOR_EACH (node, &hdb->cluster->hosts) {
        struct host *host = node->data;

        host->reports = false;
    }
    HOSTSREC_HOST_REPORTED_FOR_EACH (reported, hdb->loop.idl) {
        take_in_reported(hdb, reported);
    }
    HOSTSREC_HOST_WANTED_FOR_EACH (wanted, hdb->loop.idl) {
        struct host *host = cluster_get_host(hdb->cluster, wanted->host);

        host_set_wanted(host, wanted->version);
        hdb->version = MAX(hdb->version, wanted->version);
        hdb->generation = MAX(hdb->generation, wanted->generation);
    }
}

void
hosts_db_run(struct hosts_db *hdb)
{
    hdb->txn = ovsdb_idl_loop_run(&hdb->loop);
    if (leader_search_run(&hdb->search, hdb->loop.idl)) {
        ovsdb_idl_set_probe_interval(hdb->loop.idl, PROBE_MS);
    }
    if (hdb->seqno != ovsdb_idl_get_seqno(hdb->loop.idl)) {
        hdb->seqno = ovsdb_idl_get_seqno(hdb->loop.idl);
        if (ovsdb_idl_has_ever_connected(hdb->loop.idl)) {
            take_in(hdb);
            hdb->dirty = true;
        }
    }
}

/* Rows must be compared again: there is another order. */
void
hosts_db_mark(struct hosts_db *hdb)
{
    hdb->dirty = true;
}

/* While 'observe' is true no job is given to a host, so that the traffic of
 * all is as if there were no order; who counts it goes on. */
void
hosts_db_observe(struct hosts_db *hdb, bool observe)
{
    hdb->dirty |= hdb->observe != observe;
    hdb->observe = observe;
}

/* True while the database answers. */
bool
hosts_db_is_connected(const struct hosts_db *hdb)
{
    return ovsdb_idl_is_connected(hdb->loop.idl);
}

/* The newest generation that has told a host anything. */
int64_t
hosts_db_generation(const struct hosts_db *hdb)
{
    return hdb->generation;
}

/* True once the database's contents are here. */
bool
hosts_db_is_ready(const struct hosts_db *hdb)
{
    return ovsdb_idl_has_ever_connected(hdb->loop.idl);
}

/* Takes back levels and ranks that an earlier controller gave to jobs, so that
 * a new one begins with the order that is in force. */
void
hosts_db_restore(struct hosts_db *hdb)
{
    const struct hostsrec_host_wanted *row;

    HOSTSREC_HOST_WANTED_FOR_EACH (row, hdb->loop.idl) {
        for (size_t i = 0; i < row->n_level; i++) {
            struct job *job = shash_find_data(&hdb->cluster->jobs,
                                              row->key_level[i]);

            if (job) {
                job->level = MIN(row->value_level[i], POLICY_MAX_LEVELS - 1);
            }
        }
        for (size_t i = 0; i < row->n_rank; i++) {
            struct job *job = shash_find_data(&hdb->cluster->jobs,
                                              row->key_rank[i]);

            if (job) {
                job->rank = row->value_rank[i];
            }
        }
    }
}

/* True if the agent of some host that has an order with jobs in it has not
 * told yet which jobs there are: they would be taken from the host. */
bool
hosts_db_awaits_agents(const struct hosts_db *hdb)
{
    const struct hostsrec_host_wanted *row;

    HOSTSREC_HOST_WANTED_FOR_EACH (row, hdb->loop.idl) {
        const struct host *host = shash_find_data(&hdb->cluster->hosts,
                                                  row->host);

        if (row->n_level && !(host && host->connected)) {
            return true;
        }
    }
    return false;
}

/* True if some host has an order with jobs in it. */
bool
hosts_db_has_order(const struct hosts_db *hdb)
{
    const struct hostsrec_host_wanted *row;

    HOSTSREC_HOST_WANTED_FOR_EACH (row, hdb->loop.idl) {
        if (row->n_level) {
            return true;
        }
    }
    return false;
}

static bool
is_needed(const struct host *host)
{
    return host->reports || host->connected || host->named;
}

/* Writes the rows that differ from what the cluster's jobs say, each with the
 * same new version, if a transaction may be made now. */
void
hosts_db_write(struct hosts_db *hdb, const struct policy *policy,
               int64_t generation)
{
    const struct hosts_rows hr = {
        .idl = hdb->loop.idl, .txn = hdb->txn, .cluster = hdb->cluster,
        .policy = policy, .generation = generation,
        .version = hdb->version + 1, .observe = hdb->observe,
    };
    const struct hostsrec_host_wanted *row;
    struct shash_node *node;
    struct shash rows;
    size_t n = 0;

    if (!hdb->dirty || !hdb->txn || !hosts_db_is_ready(hdb)
        || !ovsdb_idl_is_connected(hdb->loop.idl)
        || time_msec() < hdb->next_write) {
        return;
    }
    hdb->dirty = false;

    shash_init(&rows);
    HOSTSREC_HOST_WANTED_FOR_EACH (row, hdb->loop.idl) {
        shash_add(&rows, row->host, row);
    }
    hosts_access_write(hdb->loop.idl, hdb->txn);
    SHASH_FOR_EACH (node, &hdb->cluster->hosts) {
        const struct host *host = node->data;

        if (host->connected && !host->reports) {
            hosts_access_write_host(hdb->loop.idl, hdb->txn, host->name);
        }
        row = shash_find_data(&rows, host->name);
        if (row || is_needed(host)) {
            n += hosts_rows_write(&hr, host, row);
        }
    }
    shash_destroy(&rows);
    if (n) {
        hdb->version = hr.version;
        hdb->next_write = time_msec() + WRITE_MS;
        ovsdb_idl_txn_add_comment(hdb->txn, "stagecoach-controller: order "
                                  "%"PRId64, hr.version);
        VLOG_DBG("order %"PRId64" for %"PRIuSIZE" hosts", hr.version, n);
    }
}

/* Sends what was written and arranges to be woken. */
void
hosts_db_commit(struct hosts_db *hdb)
{
    leader_search_wait(&hdb->search);
    if (!ovsdb_idl_loop_commit_and_wait(&hdb->loop)) {
        hdb->dirty = true;
    }
    if (hdb->dirty && hdb->txn && ovsdb_idl_is_connected(hdb->loop.idl)) {
        poll_timer_wait_until(MAX(hdb->next_write,
                                  time_msec() + WRITE_MS / 10));
    }
    hdb->txn = NULL;
}

/* True if the database has the last order as it was made. */
bool
hosts_db_is_settled(const struct hosts_db *hdb)
{
    return (ovsdb_idl_is_connected(hdb->loop.idl) && !hdb->dirty
            && !hdb->loop.committing_txn);
}

/* The last order's version. */
int64_t
hosts_db_version(const struct hosts_db *hdb)
{
    return hdb->version;
}
