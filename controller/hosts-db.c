/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts-db.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cluster.h"
#include "controller/hosts-access.h"
#include "controller/hosts-idl.h"
#include "controller/leader-search.h"
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

/* What one host's row shall say. */
struct wanted {
    const char *host;           /* Of the cluster's host. */
    const char **names;         /* "COJOB/JOB", of the cluster's jobs. */
    int64_t *ranks, *levels, *dscps;
    double *weights;
    size_t n, allocated;
};

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

/* Shims serve exactly by rank.  Where the order inside a level has no meaning,
 * jobs of one level have the same. */
static int64_t
rank_of(const struct job *job, const struct policy *policy)
{
    return (order_classes[policy->order.kind].service == ORDER_SERVICE_SHARE
            ? job->level : job->rank);
}

static void
wanted_add(struct wanted *w, const struct job *job,
           const struct policy *policy)
{
    if (w->n >= w->allocated) {
        size_t n = MAX(16, w->allocated * 2);

        w->names = xrealloc(w->names, n * sizeof *w->names);
        w->ranks = xrealloc(w->ranks, n * sizeof *w->ranks);
        w->levels = xrealloc(w->levels, n * sizeof *w->levels);
        w->dscps = xrealloc(w->dscps, n * sizeof *w->dscps);
        w->weights = xrealloc(w->weights, n * sizeof *w->weights);
        w->allocated = n;
    }
    w->names[w->n] = job->full_name;
    w->ranks[w->n] = rank_of(job, policy);
    w->levels[w->n] = job->level;
    w->dscps[w->n] = policy->dscp[job->level];
    w->weights[w->n] = job->cojob->weight;
    w->n++;
}

static void
wanted_clear(struct wanted *w)
{
    free(w->names);
    free(w->ranks);
    free(w->levels);
    free(w->dscps);
    free(w->weights);
    memset(w, 0, sizeof *w);
}

/* Fills in what 'host' shall have: each live job that has been there, or is
 * said to be, but for those that are excluded. */
static void
wanted_compute(struct wanted *w, const struct cluster *c,
               const struct host *host, const struct policy *policy)
{
    const struct shash_node *node;

    w->host = host->name;
    SHASH_FOR_EACH (node, &c->jobs) {
        const struct job *job = node->data;

        if (job->live && job->level >= 0
            && job->override != OVERRIDE_EXCLUDE
            && shash_find(&job->traffic, host->name)) {
            wanted_add(w, job, policy);
        }
    }
}

/* Index of 'name' among the 'n' sorted 'names' that a row has, or -1. */
static int
find_name(char *const *names, size_t n, const char *name)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int cmp = strcmp(name, names[mid]);

        if (!cmp) {
            return mid;
        } else if (cmp < 0) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return -1;
}

static bool
integers_differ(char *const *names, const int64_t *values, size_t n,
                const struct wanted *w, const int64_t *wanted_values)
{
    if (n != w->n) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        int at = find_name(names, n, w->names[i]);

        if (at < 0 || values[at] != wanted_values[i]) {
            return true;
        }
    }
    return false;
}

static bool
weights_differ(const struct hostsrec_host_wanted *row, const struct wanted *w)
{
    if (row->n_weight != w->n) {
        return true;
    }
    for (size_t i = 0; i < w->n; i++) {
        int at = find_name(row->key_weight, row->n_weight, w->names[i]);

        if (at < 0 || row->value_weight[at] < w->weights[i]
            || row->value_weight[at] > w->weights[i]) {
            return true;
        }
    }
    return false;
}

/* A database from before the column has none, and hosts go on without. */
static bool
has_guard(const struct hosts_db *hdb)
{
    return hostsrec_server_has_host_wanted_table_col_guard_share(
        hdb->loop.idl);
}

static bool
guard_differs(const struct hostsrec_host_wanted *row,
              const struct policy *policy)
{
    return (row->n_guard_share != 1
            || row->guard_share[0] < policy->guard_share
            || row->guard_share[0] > policy->guard_share);
}

/* The law of congestion control, by the names of the policy's members, sorted
 * as the database does it. */
static const char *const congestion_keys[] = { "beta", "floor", "gamma" };

static bool
has_congestion(const struct hosts_db *hdb)
{
    return hostsrec_server_has_host_wanted_table_col_congestion(
        hdb->loop.idl);
}

static void
get_congestion(const struct policy *policy, double values[3])
{
    values[0] = policy->congestion_beta;
    values[1] = policy->congestion_floor;
    values[2] = policy->congestion_gamma;
}

static bool
congestion_differs(const struct hostsrec_host_wanted *row,
                   const struct policy *policy)
{
    double values[3];

    get_congestion(policy, values);
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        if (row->n_congestion != ARRAY_SIZE(values)
            || strcmp(row->key_congestion[i], congestion_keys[i])
            || row->value_congestion[i] < values[i]
            || row->value_congestion[i] > values[i]) {
            return true;
        }
    }
    return false;
}

static void
write_congestion(const struct hostsrec_host_wanted *row,
                 const struct policy *policy)
{
    const char *keys[ARRAY_SIZE(congestion_keys)];
    double values[ARRAY_SIZE(congestion_keys)];

    memcpy(keys, congestion_keys, sizeof keys);
    get_congestion(policy, values);
    hostsrec_host_wanted_set_congestion(row, keys, values,
                                        ARRAY_SIZE(values));
}

static bool
row_differs(const struct hostsrec_host_wanted *row, const struct wanted *w,
            const struct policy *policy, int64_t generation)
{
    return (row->generation != generation
            || row->lease_ms != policy->lease_ms
            || row->default_dscp != policy->default_dscp
            || strcmp(row->policy, policy->name)
            || integers_differ(row->key_level, row->value_level,
                               row->n_level, w, w->levels)
            || integers_differ(row->key_rank, row->value_rank, row->n_rank,
                               w, w->ranks)
            || integers_differ(row->key_dscp, row->value_dscp, row->n_dscp,
                               w, w->dscps)
            || weights_differ(row, w));
}

static void
row_write(const struct hosts_db *hdb,
          const struct hostsrec_host_wanted *row, const struct wanted *w,
          const struct policy *policy, int64_t generation, int64_t version)
{
    hostsrec_host_wanted_set_version(row, version);
    hostsrec_host_wanted_set_generation(row, generation);
    hostsrec_host_wanted_set_lease_ms(row, policy->lease_ms);
    hostsrec_host_wanted_set_default_dscp(row, policy->default_dscp);
    if (has_guard(hdb)) {
        hostsrec_host_wanted_set_guard_share(row, &policy->guard_share, 1);
    }
    if (has_congestion(hdb)) {
        write_congestion(row, policy);
    }
    hostsrec_host_wanted_set_policy(row, policy->name);
    hostsrec_host_wanted_set_rank(row, w->names, w->ranks, w->n);
    hostsrec_host_wanted_set_level(row, w->names, w->levels, w->n);
    hostsrec_host_wanted_set_dscp(row, w->names, w->dscps, w->n);
    hostsrec_host_wanted_set_weight(row, w->names, w->weights, w->n);
}

/* Compares with the row of one host, or the lack of one, and writes it with
 * 'version' if it differs.  Returns true if it did. */
static bool
write_host(struct hosts_db *hdb, const struct host *host,
           const struct hostsrec_host_wanted *row,
           const struct policy *policy, int64_t generation, int64_t version)
{
    struct wanted w = { .n = 0 };
    bool differs;

    if (hdb->observe) {
        w.host = host->name;
    } else {
        wanted_compute(&w, hdb->cluster, host, policy);
    }
    differs = (!row || row_differs(row, &w, policy, generation)
               || (has_guard(hdb) && guard_differs(row, policy))
               || (has_congestion(hdb) && congestion_differs(row, policy)));
    if (differs) {
        if (!row) {
            row = hostsrec_host_wanted_insert(hdb->txn);
            hostsrec_host_wanted_set_host(row, host->name);
        }
        row_write(hdb, row, &w, policy, generation, version);
    }
    wanted_clear(&w);
    return differs;
}

/* Writes the rows that differ from what the cluster's jobs say, each with the
 * same new version, if a transaction may be made now. */
void
hosts_db_write(struct hosts_db *hdb, const struct policy *policy,
               int64_t generation)
{
    const struct hostsrec_host_wanted *row;
    int64_t version = hdb->version + 1;
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
            n += write_host(hdb, host, row, policy, generation, version);
        }
    }
    shash_destroy(&rows);
    if (n) {
        hdb->version = version;
        hdb->next_write = time_msec() + WRITE_MS;
        ovsdb_idl_txn_add_comment(hdb->txn, "stagecoach-controller: order "
                                  "%"PRId64, version);
        VLOG_DBG("order %"PRId64" for %"PRIuSIZE" hosts", version, n);
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
