/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/hosts-db.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "controller/hosts/host-wanted.h"
#include "controller/model/cluster.h"
#include "controller/model/rank-keys.h"
#include "controller/ovsdb/answers.h"
#include "controller/ovsdb/leader-search.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"
#include "wire/certificate.h"
#include "wire/host-row.h"
#include "wire/hosts-idl.h"
#include "wire/shim-protocol.h"
#include "wire/tls-defaults.h"

VLOG_DEFINE_THIS_MODULE(hosts_db);

/* A connection of an agent to the relay without traffic is probed after this
 * time. */
#define AGENT_PROBE_MS 10000

/* Shortest time between two transactions. */
#define WRITE_MS 100

#define AGENT_ROLE "agent"

struct hosts_db {
    struct ovsdb_idl_loop loop;
    struct leader_search search;
    struct answers answers;
    struct ovsdb_idl_txn *txn;  /* Of this iteration, NULL if the previous one
                                 * has not been acknowledged. */
    struct cluster *cluster;
    unsigned int seqno;         /* Of the database, last loaded. */
    int64_t version;            /* Largest version of any row. */
    int64_t stored;             /* Of these, that the database has. */
    long long written_at;       /* time_msec() when an order was last written,
                                 * 0 before the first. */
    int64_t generation;         /* Largest generation of any row. */
    bool dirty;                 /* Rows must be compared. */
    bool observe;               /* Hosts got no job in the last rows. */
    long long next_write;       /* time_msec() of the next transaction. */
};

struct hosts_db *
hosts_db_create(const char *remote, struct cluster *cluster)
{
    struct hosts_db *hdb = xzalloc(sizeof *hdb);
    struct ovsdb_idl *idl = ovsdb_idl_create(remote, &hostsrec_idl_class,
                                             true, true);

    /* Only the active controller writes these rows, so unchanged columns need
     * not be written. */
    ovsdb_idl_set_write_changed_only_all(idl, true);
    hdb->loop.idl = idl;
    leader_search_init(&hdb->search, idl, remote, ANSWERS_PROBE_MS);
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

void
hosts_db_set_remote(struct hosts_db *hdb, const char *remote)
{
    leader_search_set_remote(&hdb->search, remote);
}

/* Accepts a database that is older than what was read before, and
 * reconnects. */
void
hosts_db_accept_older(struct hosts_db *hdb)
{
    ovsdb_idl_reset_min_index(hdb->loop.idl);
    ovsdb_idl_force_reconnect(hdb->loop.idl);
}

static void
load_reported(struct hosts_db *hdb, const struct hostsrec_host_reported *row)
{
    struct host *host = cluster_get_host(hdb->cluster, row->host);

    if (host->removing) {
        return;
    }
    host->reports = true;
    host->later = strverscmp(row->agent, STAGECOACH_VERSION) > 0;
    if (!host_row_fits(&row->health)) {
        host->oversized_at = time_msec();
    }
    if (!host_is_barred(host) && !host->connected) {
        struct simap ports = SIMAP_INITIALIZER(&ports);

        host_set_applied(host, row->applied);
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
load_rows(struct hosts_db *hdb)
{
    const struct hostsrec_host_reported *reported;
    const struct hostsrec_host_wanted *wanted;
    struct shash_node *node;

    SHASH_FOR_EACH (node, &hdb->cluster->hosts) {
        struct host *host = node->data;

        host->reports = host->wants = false;
    }
    HOSTSREC_HOST_REPORTED_FOR_EACH (reported, hdb->loop.idl) {
        load_reported(hdb, reported);
    }
    HOSTSREC_HOST_WANTED_FOR_EACH (wanted, hdb->loop.idl) {
        struct host *host = cluster_get_host(hdb->cluster, wanted->host);

        if (!host->removing) {
            host->wants = true;
            host_set_wanted(host, wanted->version);
        }
        hdb->stored = MAX(hdb->stored, wanted->version);
        hdb->version = MAX(hdb->version, wanted->version);
        hdb->generation = MAX(hdb->generation, wanted->generation);
    }
}

void
hosts_db_run(struct hosts_db *hdb)
{
    hdb->txn = ovsdb_idl_loop_run(&hdb->loop);
    answers_run(&hdb->answers, ovsdb_idl_is_connected(hdb->loop.idl),
                ovsdb_idl_get_seqno(hdb->loop.idl));
    leader_search_run(&hdb->search);
    if (hdb->seqno != ovsdb_idl_get_seqno(hdb->loop.idl)) {
        hdb->seqno = ovsdb_idl_get_seqno(hdb->loop.idl);
        if (ovsdb_idl_has_ever_connected(hdb->loop.idl)) {
            load_rows(hdb);
            hdb->dirty = true;
        }
    }
}

/* Must be called if there is another order: rows are compared again. */
void
hosts_db_mark(struct hosts_db *hdb)
{
    hdb->dirty = true;
}

void
hosts_db_remove(struct hosts_db *hdb, struct host *host)
{
    host->reports = host->wants = false;
    host->generation = -1;
    host->later_at = 0;
    host->removing = true;
    hdb->dirty = true;
}

bool
hosts_db_answers(const struct hosts_db *hdb)
{
    return hdb->answers.now;
}

int64_t
hosts_db_generation(const struct hosts_db *hdb)
{
    return hdb->generation;
}

/* Returns true once the contents of the database have been received. */
bool
hosts_db_is_ready(const struct hosts_db *hdb)
{
    return ovsdb_idl_has_ever_connected(hdb->loop.idl);
}

/* Copies the ranks and levels of the hosts' rows to the cluster's jobs, so
 * that a new leader starts from the order in force. */
void
hosts_db_restore(struct hosts_db *hdb)
{
    const struct shash *jobs = &hdb->cluster->jobs;
    const struct hostsrec_host_wanted *row;
    struct job *job;

    HOSTSREC_HOST_WANTED_FOR_EACH (row, hdb->loop.idl) {
        for (size_t i = 0; i < row->n_level; i++) {
            job = shash_find_data(jobs, row->key_level[i]);
            if (job) {
                job->level = MIN(row->value_level[i], POLICY_MAX_LEVELS - 1);
            }
        }
        for (size_t i = 0; i < row->n_rank; i++) {
            job = shash_find_data(jobs, row->key_rank[i]);
            if (job) {
                job->key = MIN(row->value_rank[i], RANK_KEYS_END - 1);
                job->rank = job->key;
            }
        }
    }
}

/* Returns true if a host has jobs in its row, and its agent has not sent
 * telemetry yet or 'missing' is set.  An order would remove its jobs from the
 * row. */
bool
hosts_db_awaits_agents(const struct hosts_db *hdb, bool missing)
{
    const struct hostsrec_host_wanted *row;

    HOSTSREC_HOST_WANTED_FOR_EACH (row, hdb->loop.idl) {
        const struct host *host = shash_find_data(&hdb->cluster->hosts,
                                                  row->host);

        if (row->n_level && (missing || !(host && host->connected))) {
            return true;
        }
    }
    return false;
}

/* What all rows of Host_Wanted of a transaction have in common. */
struct rows {
    struct host_jobs jobs;
    const struct policy *policy;
    int64_t generation; /* Of the leader. */
    int64_t version;    /* Of rows that are written. */
};

/* Writes all columns of 'row' but its version.  Returns true if the row has
 * changed: the IDL does not write a value that the column has. */
static bool
write_columns(const struct rows *rows, const struct host_wanted *w,
              const struct hostsrec_host_wanted *row)
{
    /* By the names of the policy's members. */
    static const char *congestion[] = { "beta", "floor", "gamma" };
    const struct policy *policy = rows->policy;
    const double values[] = { policy->congestion_beta,
                              policy->congestion_floor,
                              policy->congestion_gamma };
    /* By the shim's level, which is also the queue. */
    int64_t levels[POLICY_MAX_LEVELS + 2] = { 0 };
    int64_t dscps[POLICY_MAX_LEVELS + 2] = { policy->control_dscp };
    int n;

    for (n = 1; n <= policy->n_levels; n++) {
        levels[n] = n;
        dscps[n] = policy->dscp[n - 1];
    }
    levels[n] = SHIM_LEVEL_DEFAULT;
    dscps[n++] = policy->default_dscp;
    hostsrec_host_wanted_set_generation(row, rows->generation);
    hostsrec_host_wanted_set_lease_ms(row, policy->lease_ms);
    hostsrec_host_wanted_set_level_dscp(row, levels, dscps, n);
    hostsrec_host_wanted_set_min_share(row, &policy->min_share, 1);
    hostsrec_host_wanted_set_congestion(row, congestion, values,
                                        ARRAY_SIZE(values));
    hostsrec_host_wanted_set_trust(row, policy_trusts[policy->trust]);
    hostsrec_host_wanted_set_owner_uid(row, w->owned, w->owners, w->n_owned);
    hostsrec_host_wanted_set_policy(row, policy->name);
    hostsrec_host_wanted_set_rank(row, w->names, w->ranks, w->n);
    hostsrec_host_wanted_set_level(row, w->names, w->levels, w->n);
    hostsrec_host_wanted_set_weight(row, w->names, w->weights, w->n);
    return !hmap_node_is_null(&row->header_.txn_node);
}

static void
write_role(struct ovsdb_idl_txn *txn)
{
    static const char *columns[] = { "agent", "applied", "applied_at",
                                     "health", "ports", "state" };
    static const char *authorization[] = { "identity" };
    static const char *tables[] = { "Host_Reported" };
    struct hostsrec_rbac_permission *permission;
    struct hostsrec_rbac_role *role;

    permission = hostsrec_rbac_permission_insert(txn);
    hostsrec_rbac_permission_set_table(permission, tables[0]);
    hostsrec_rbac_permission_set_authorization(permission, authorization,
                                               ARRAY_SIZE(authorization));
    hostsrec_rbac_permission_set_insert_delete(permission, false);
    hostsrec_rbac_permission_set_update(permission, columns,
                                        ARRAY_SIZE(columns));

    role = hostsrec_rbac_role_insert(txn);
    hostsrec_rbac_role_set_name(role, AGENT_ROLE);
    hostsrec_rbac_role_set_permissions(role, tables, &permission, 1);
}

static void
write_connection(struct ovsdb_idl_txn *txn)
{
    struct hostsrec_connection *connection = hostsrec_connection_insert(txn);
    char *target = xasprintf("pssl:%d", RELAY_PORT);
    int64_t probe = AGENT_PROBE_MS;

    hostsrec_connection_set_target(connection, target);
    hostsrec_connection_set_role(connection, AGENT_ROLE);
    hostsrec_connection_set_inactivity_probe(connection, &probe, 1);
    hostsrec_global_set_connections(hostsrec_global_insert(txn), &connection,
                                    1);
    free(target);
}

/* Inserts the RBAC rows. */
static void
write_access(struct hosts_db *hdb)
{
    if (!hostsrec_rbac_role_first(hdb->loop.idl)) {
        write_role(hdb->txn);
    }
    if (!hostsrec_global_first(hdb->loop.idl)) {
        write_connection(hdb->txn);
    }
}

/* Deletes the rows of 'host'.  Returns false if there are none. */
static bool
delete_rows(struct hosts_db *hdb, const char *host)
{
    const struct hostsrec_host_reported *reported;
    const struct hostsrec_host_wanted *wanted;
    bool found = false;

    HOSTSREC_HOST_REPORTED_FOR_EACH_SAFE (reported, hdb->loop.idl) {
        if (!strcmp(reported->host, host)) {
            hostsrec_host_reported_delete(reported);
            found = true;
        }
    }
    HOSTSREC_HOST_WANTED_FOR_EACH_SAFE (wanted, hdb->loop.idl) {
        if (!strcmp(wanted->host, host)) {
            hostsrec_host_wanted_delete(wanted);
            found = true;
        }
    }
    return found;
}

/* Inserts the row of Host_Reported of 'host', unless there is one. */
static void
write_reported(struct hosts_db *hdb, const char *host)
{
    const struct hostsrec_host_reported *row;
    char identity[CERTIFICATE_NAME_SIZE];

    HOSTSREC_HOST_REPORTED_FOR_EACH (row, hdb->loop.idl) {
        if (!strcmp(row->host, host)) {
            return;
        }
    }
    row = hostsrec_host_reported_insert(hdb->txn);
    hostsrec_host_reported_set_host(row, host);
    name_shorten(host, identity, sizeof identity);
    hostsrec_host_reported_set_identity(row, identity);
    hostsrec_host_reported_set_state(row, "fair");
}

/* Writes the row of 'host' if it differs; inserts it if 'row' is NULL.
 * Returns true if it was written. */
static bool
write_wanted(struct hosts_db *hdb, const struct rows *rows,
             const struct host *host, const struct hostsrec_host_wanted *row)
{
    struct host_wanted w;
    bool written;

    if (!row) {
        row = hostsrec_host_wanted_insert(hdb->txn);
        hostsrec_host_wanted_set_host(row, host->name);
    }
    host_wanted_init(&w, &rows->jobs, rows->policy, host);
    written = write_columns(rows, &w, row);
    host_wanted_uninit(&w);
    if (written) {
        hostsrec_host_wanted_set_version(row, rows->version);
    }
    return written;
}

/* Writes the rows that differ from what the cluster's jobs have, with one new
 * version, if a transaction can be made now.  With 'observe', hosts get no
 * job, so that all traffic is sent as if there were no order.  Agents still
 * count it.
 *
 * Writes nothing if the rows have a generation newer than 'generation': a
 * controller that was cut off may see them before it learns that it was
 * replaced. */
void
hosts_db_write(struct hosts_db *hdb, const struct policy *policy,
               int64_t generation, bool observe)
{
    struct ovsdb_idl *idl = hdb->loop.idl;
    struct rows rows = { .policy = policy,
                         .generation = generation,
                         .version = hdb->version + 1 };
    const struct hostsrec_host_wanted *row;
    struct shash_node *node;
    struct shash present;
    size_t n = 0;

    hdb->dirty |= hdb->observe != observe;
    hdb->observe = observe;
    if (!hdb->dirty || !hdb->txn || !hosts_db_is_ready(hdb)
        || generation < hdb->generation || !ovsdb_idl_is_connected(idl)
        || time_msec() < hdb->next_write) {
        return;
    }
    hdb->dirty = false;

    host_jobs_init(&rows.jobs, observe ? NULL : hdb->cluster);
    shash_init(&present);
    HOSTSREC_HOST_WANTED_FOR_EACH (row, idl) {
        shash_add(&present, row->host, row);
    }
    write_access(hdb);
    SHASH_FOR_EACH (node, &hdb->cluster->hosts) {
        struct host *host = node->data;

        host->removing &= !host->connected;
        if (host->removing || host_is_barred(host)) {
            host->removing &= delete_rows(hdb, host->name);
            continue;
        } else if (host->connected && !host->reports) {
            write_reported(hdb, host->name);
        }
        row = shash_find_data(&present, host->name);
        if (row || host->reports || host->connected || host->named) {
            n += write_wanted(hdb, &rows, host, row);
        }
    }
    shash_destroy(&present);
    host_jobs_uninit(&rows.jobs);
    if (n) {
        hdb->version = rows.version;
        hdb->written_at = time_msec();
        hdb->next_write = hdb->written_at + WRITE_MS;
        ovsdb_idl_txn_add_comment(hdb->txn,
                                  "stagecoach-controller: order "
                                  "%" PRId64,
                                  rows.version);
        VLOG_DBG("order %" PRId64 " for %" PRIuSIZE " hosts", rows.version, n);
    }
}

/* Commits the transaction and arranges to be woken up. */
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

/* Returns true if the database has the last order. */
bool
hosts_db_is_settled(const struct hosts_db *hdb)
{
    return (ovsdb_idl_is_connected(hdb->loop.idl) && !hdb->dirty
            && !hdb->loop.committing_txn);
}

int64_t
hosts_db_version(const struct hosts_db *hdb)
{
    return hdb->version;
}

struct stage_rows
hosts_db_rows(const struct hosts_db *hdb)
{
    return (struct stage_rows){ .written = hdb->dirty ? -1 : hdb->version,
                                .stored = hdb->stored };
}

/* Returns the age of the last order in seconds, -1 if none was written. */
double
hosts_db_order_age(const struct hosts_db *hdb)
{
    return (hdb->written_at ? (time_msec() - hdb->written_at) / 1000.0 : -1);
}

struct json *
hosts_db_facts_to_json(const struct hosts_db *hdb)
{
    const struct hostsrec_host_reported *row;
    struct json *facts = json_array_create_empty();
    struct json *json = json_object_create();

    HOSTSREC_HOST_REPORTED_FOR_EACH (row, hdb->loop.idl) {
        struct json *host = json_object_create();
        struct json *health = json_object_create();
        const struct smap_node *node;

        SMAP_FOR_EACH (node, &row->health) {
            json_object_put_string(health, node->key, node->value);
        }
        json_object_put_string(host, "host", row->host);
        json_object_put_string(host, "agent", row->agent);
        json_object_put(host, "health", health);
        json_array_add(facts, host);
    }
    json_object_put(json, "facts", facts);
    return json;
}
