/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/hosts-rows.h"

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "wire/hosts-idl.h"
#include "policies/policy.h"
#include "util.h"

/* What one host's row shall say. */
struct wanted {
    const char **names;         /* "COJOB/JOB", of the cluster's jobs. */
    int64_t *ranks, *levels, *dscps;
    double *weights;
    size_t n, allocated;
};

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
has_guard(const struct hosts_rows *hr)
{
    return hostsrec_server_has_host_wanted_table_col_guard_share(hr->idl);
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
has_congestion(const struct hosts_rows *hr)
{
    return hostsrec_server_has_host_wanted_table_col_congestion(hr->idl);
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
row_differs(const struct hosts_rows *hr,
            const struct hostsrec_host_wanted *row, const struct wanted *w)
{
    const struct policy *policy = hr->policy;

    return (row->generation != hr->generation
            || row->lease_ms != policy->lease_ms
            || row->default_dscp != policy->default_dscp
            || strcmp(row->policy, policy->name)
            || integers_differ(row->key_level, row->value_level,
                               row->n_level, w, w->levels)
            || integers_differ(row->key_rank, row->value_rank, row->n_rank,
                               w, w->ranks)
            || integers_differ(row->key_dscp, row->value_dscp, row->n_dscp,
                               w, w->dscps)
            || weights_differ(row, w)
            || (has_guard(hr) && guard_differs(row, policy))
            || (has_congestion(hr) && congestion_differs(row, policy)));
}

static void
row_write(const struct hosts_rows *hr,
          const struct hostsrec_host_wanted *row, const struct wanted *w)
{
    const struct policy *policy = hr->policy;

    hostsrec_host_wanted_set_version(row, hr->version);
    hostsrec_host_wanted_set_generation(row, hr->generation);
    hostsrec_host_wanted_set_lease_ms(row, policy->lease_ms);
    hostsrec_host_wanted_set_default_dscp(row, policy->default_dscp);
    if (has_guard(hr)) {
        hostsrec_host_wanted_set_guard_share(row, &policy->guard_share, 1);
    }
    if (has_congestion(hr)) {
        write_congestion(row, policy);
    }
    hostsrec_host_wanted_set_policy(row, policy->name);
    hostsrec_host_wanted_set_rank(row, w->names, w->ranks, w->n);
    hostsrec_host_wanted_set_level(row, w->names, w->levels, w->n);
    hostsrec_host_wanted_set_dscp(row, w->names, w->dscps, w->n);
    hostsrec_host_wanted_set_weight(row, w->names, w->weights, w->n);
}

bool
hosts_rows_write(const struct hosts_rows *hr, const struct host *host,
                 const struct hostsrec_host_wanted *row)
{
    struct wanted w = { .n = 0 };
    bool differs;

    if (!hr->observe) {
        wanted_compute(&w, hr->cluster, host, hr->policy);
    }
    differs = !row || row_differs(hr, row, &w);
    if (differs) {
        if (!row) {
            row = hostsrec_host_wanted_insert(hr->txn);
            hostsrec_host_wanted_set_host(row, host->name);
        }
        row_write(hr, row, &w);
    }
    wanted_clear(&w);
    return differs;
}
