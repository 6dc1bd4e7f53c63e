/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/hosts-db.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "controller/hosts/host-wanted.h"
#include "controller/model/cluster.h"
#include "controller/model/cooldown.h"
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
#include "wire/host-order.h"
#include "wire/host-row.h"
#include "wire/json-put.h"
#include "wire/tls-defaults.h"

VLOG_DEFINE_THIS_MODULE(hosts_db);

/* A connection of an agent to the relay without traffic is probed after this
 * time. */
#define AGENT_PROBE_MS 10000

/* Time from a change until rows are written, in which others come: agents have
 * it by then, if it was pushed, and otherwise wait for it. */
#define PUSHED_MS 500
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
    long long written_at;       /* time_msec() when an order was last made,
                                 * 0 before the first. */
    int64_t generation;         /* Largest generation of any row. */
    bool dirty;                 /* Rows must be compared. */
    long long due;              /* time_msec() when they must be. */
    struct cooldown cooldown;   /* Delay after that. */
    bool observe;               /* Hosts got no job in the last rows. */
    bool unwritten;             /* The database may have other rows. */
    long long next_write;       /* time_msec() of the next transaction. */
    long long sent_at;          /* Of the last one. */
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
    hdb->due = LLONG_MAX;
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

    host->reported = row;
    if (host->removing) {
        return;
    }
    host->reports = true;
    hdb->dirty |= !host->order;
    host->later = strverscmp(row->agent, STAGECOACH_VERSION) > 0;
    if (!host_row_fits(&row->health)) {
        host->oversized_at = time_msec();
    }
    if (!host_is_barred(host) && !host->connected) {
        struct simap ports = SIMAP_INITIALIZER(&ports);

        host->applied_generation = -1;
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

/* Has rows written 'ms' from now, unless they are to be written before. */
static void
plan_write(struct hosts_db *hdb, int ms)
{
    long long at = MAX(time_msec() + ms, hdb->sent_at + WRITE_MS);

    hdb->next_write = hdb->unwritten ? MIN(hdb->next_write, at) : at;
    hdb->unwritten = true;
}

static void
load_rows(struct hosts_db *hdb)
{
    const struct hostsrec_host_reported *reported;
    const struct hostsrec_host_wanted *wanted;
    struct shash_node *node;

    SHASH_FOR_EACH (node, &hdb->cluster->hosts) {
        struct host *host = node->data;

        host->reports = false;
        host->reported = NULL;
        host->desired = NULL;
    }
    HOSTSREC_HOST_REPORTED_FOR_EACH (reported, hdb->loop.idl) {
        load_reported(hdb, reported);
    }
    HOSTSREC_HOST_WANTED_FOR_EACH (wanted, hdb->loop.idl) {
        struct host *host = cluster_get_host(hdb->cluster, wanted->host);

        host->desired = wanted;
        host->reports |= !host->removing;
        if (!host->removing && !host->order) {
            host_set_wanted(host, wanted->version);
            host->wanted_generation = wanted->generation;
            hdb->dirty = true;
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
            plan_write(hdb, PUSHED_MS);
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
    host->reports = false;
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

static void
set_order(struct host *host, char *order)
{
    free(host->order);
    host->order = order;
}

/* Copies the ranks and levels of the hosts' rows to the cluster's jobs, so
 * that a new leader starts from the order in force. */
void
hosts_db_restore(struct hosts_db *hdb)
{
    const struct shash *jobs = &hdb->cluster->jobs;
    const struct hostsrec_host_wanted *row;
    const struct shash_node *node;
    struct job *job;

    SHASH_FOR_EACH (node, &hdb->cluster->hosts) {
        set_order(node->data, NULL);
    }
    hdb->dirty = true;
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
delete_rows(const struct host *host)
{
    if (host->reported) {
        hostsrec_host_reported_delete(host->reported);
    }
    if (host->desired) {
        hostsrec_host_wanted_delete(host->desired);
    }
    return host->reported || host->desired;
}

/* Inserts the row of Host_Reported of 'host'. */
static void
insert_reported(struct hosts_db *hdb, const char *host)
{
    const struct hostsrec_host_reported *row =
        hostsrec_host_reported_insert(hdb->txn);
    char identity[CERTIFICATE_NAME_SIZE];

    hostsrec_host_reported_set_host(row, host);
    name_shorten(host, identity, sizeof identity);
    hostsrec_host_reported_set_identity(row, identity);
    hostsrec_host_reported_set_state(row, "fair");
}

struct json *
hosts_db_order(const struct host *host)
{
    struct json *json = json_from_string(host->order);

    json_put_integer(json, "version", host->wanted);
    return json;
}

/* Writes the order of 'host' to its row, unless it is there, or orders of a
 * newer generation are; inserts one if there is none.  Returns true if there
 * was something to write. */
static bool
write_wanted(struct hosts_db *hdb, const struct host *host)
{
    const struct hostsrec_host_wanted *row = host->desired;
    struct ovsdb_datum data[HOSTSREC_HOST_WANTED_N_COLUMNS];
    struct json *json;
    char *error;

    if (!host->order || host->wanted_generation < hdb->generation
        || (row && row->version == host->wanted
            && row->generation == host->wanted_generation)) {
        return false;
    }
    json = hosts_db_order(host);
    error = host_order_read(json, data);
    ovs_assert(!error);
    json_destroy(json);
    row = row ? row : hostsrec_host_wanted_insert(hdb->txn);
    for (size_t i = 0; i < HOSTSREC_HOST_WANTED_N_COLUMNS; i++) {
        ovsdb_idl_txn_write(&row->header_, &hostsrec_host_wanted_columns[i],
                            &data[i]);
    }
    return true;
}

/* Returns true if 'host' is to have no rows. */
static bool
is_out(struct host *host)
{
    host->removing &= !host->connected;
    return host->removing || host_is_barred(host);
}

void
hosts_db_compare(struct hosts_db *hdb, const struct policy *policy,
                 int64_t generation, bool observe, bool pushes)
{
    long long now = time_msec(), began = time_usec();
    int64_t version = hdb->version + 1;
    struct shash_node *node;
    struct host_jobs jobs;

    hdb->dirty |= hdb->observe != observe || now >= hdb->due;
    hdb->observe = observe;
    if (!hdb->dirty) {
        poll_timer_wait_until(hdb->due);
        return;
    } else if (!hosts_db_is_ready(hdb) || generation < hdb->generation) {
        return;
    } else if (now < hdb->cooldown.until) {
        poll_timer_wait_until(hdb->cooldown.until);
        return;
    }
    hdb->dirty = false;
    host_jobs_init(&jobs, observe ? NULL : hdb->cluster, policy, generation);
    SHASH_FOR_EACH (node, &hdb->cluster->hosts) {
        struct host *host = node->data;
        char *order;

        if (is_out(host)) {
            set_order(host, NULL);
            continue;
        } else if (!host->reports && !host->connected && !host->named) {
            continue;
        }
        order = host_wanted_compose(&jobs, host);
        if (host->order && !strcmp(order, host->order)) {
            free(order);
            continue;
        }
        set_order(host, order);
        host_set_wanted(host, version);
        host->wanted_generation = generation;
        hdb->version = version;
        hdb->written_at = now;
    }
    hdb->due = jobs.due;
    poll_timer_wait_until(hdb->due);
    host_jobs_uninit(&jobs);
    cooldown_after(&hdb->cooldown, now, time_usec() - began);
    plan_write(hdb, pushes ? PUSHED_MS : 0);
}

void
hosts_db_write(struct hosts_db *hdb)
{
    struct shash_node *node;
    size_t n = 0;

    if (!hdb->unwritten || !hdb->txn
        || !ovsdb_idl_is_connected(hdb->loop.idl)) {
        return;
    } else if (time_msec() < hdb->next_write) {
        poll_timer_wait_until(hdb->next_write);
        return;
    }
    hdb->unwritten = false;
    hdb->sent_at = time_msec();
    write_access(hdb);
    SHASH_FOR_EACH (node, &hdb->cluster->hosts) {
        struct host *host = node->data;

        if (is_out(host)) {
            host->removing &= delete_rows(host);
            continue;
        } else if (host->connected && !host->reported) {
            insert_reported(hdb, host->name);
        }
        n += write_wanted(hdb, host);
    }
    if (n) {
        ovsdb_idl_txn_add_comment(hdb->txn,
                                  "stagecoach-controller: order "
                                  "%" PRId64,
                                  hdb->version);
        VLOG_DBG("order %" PRId64 " for %" PRIuSIZE " hosts", hdb->version, n);
    }
}

/* Commits the transaction and arranges to be woken up. */
void
hosts_db_commit(struct hosts_db *hdb)
{
    leader_search_wait(&hdb->search);
    if (!ovsdb_idl_loop_commit_and_wait(&hdb->loop)) {
        plan_write(hdb, WRITE_MS);
    }
    hdb->txn = NULL;
}

/* Returns true if all hosts have their last order in 'order'. */
bool
hosts_db_is_settled(const struct hosts_db *hdb)
{
    return !hdb->dirty;
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
