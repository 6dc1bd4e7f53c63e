/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/host-wanted.h"

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "wire/hosts-idl.h"
#include "policies/policy.h"
#include "util.h"

/* Shims serve by rank.  If the policy shares the network, the order inside a
 * level has no meaning, and jobs of one level get the same rank. */
static int64_t
rank_of(const struct job *job, const struct policy *policy)
{
    return (order_classes[policy->order.kind].service == ORDER_SERVICE_SHARE
            ? job->level : job->rank);
}

/* Collects the live jobs that have traffic or a process on 'host', except
 * excluded ones. */
void
host_wanted_init(struct host_wanted *w, const struct host_wanted_ctx *ctx,
                 const struct host *host)
{
    const struct policy *policy = ctx->policy;
    const struct shash_node *node;
    size_t max = ctx->observe ? 0 : shash_count(&ctx->cluster->jobs);

    *w = (struct host_wanted) {
        .names = xmalloc(max * sizeof *w->names),
        .ranks = xmalloc(max * sizeof *w->ranks),
        .levels = xmalloc(max * sizeof *w->levels),
        .dscps = xmalloc(max * sizeof *w->dscps),
        .weights = xmalloc(max * sizeof *w->weights),
    };
    SHASH_FOR_EACH (node, &ctx->cluster->jobs) {
        const struct job *job = node->data;

        if (!ctx->observe && job->live && job->level >= 0
            && job->override != OVERRIDE_EXCLUDE
            && shash_find(&job->traffic, host->name)) {
            w->names[w->n] = job->full_name;
            w->ranks[w->n] = rank_of(job, policy);
            w->levels[w->n] = job->level;
            w->dscps[w->n] = policy->dscp[job->level];
            w->weights[w->n] = job->cojob->weight;
            w->n++;
        }
    }
}

void
host_wanted_uninit(struct host_wanted *w)
{
    free(w->names);
    free(w->ranks);
    free(w->levels);
    free(w->dscps);
    free(w->weights);
}

static int
compare_names(const void *name, const void *element)
{
    return strcmp(name, *(char *const *) element);
}

/* Returns the index of 'name' in the sorted 'names' of a row, or -1. */
static int
find_name(char *const *names, size_t n, const char *name)
{
    char *const *found = n ? bsearch(name, names, n, sizeof *names,
                                     compare_names) : NULL;

    return found ? found - names : -1;
}

static bool
integers_differ(char *const *names, const int64_t *values, size_t n,
                const struct host_wanted *w, const int64_t *wanted)
{
    if (n != w->n) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        int at = find_name(names, n, w->names[i]);

        if (at < 0 || values[at] != wanted[i]) {
            return true;
        }
    }
    return false;
}

static bool
numbers_differ(double a, double b)
{
    return a < b || a > b;
}

static bool
weights_differ(const struct hostsrec_host_wanted *row,
               const struct host_wanted *w)
{
    if (row->n_weight != w->n) {
        return true;
    }
    for (size_t i = 0; i < w->n; i++) {
        int at = find_name(row->key_weight, row->n_weight, w->names[i]);

        if (at < 0 || numbers_differ(row->value_weight[at], w->weights[i])) {
            return true;
        }
    }
    return false;
}

/* Parameters of congestion control, by the names of the policy's members,
 * sorted as the database does it. */
static const char *const congestion_keys[] = { "beta", "floor", "gamma" };

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
            || numbers_differ(row->value_congestion[i], values[i])) {
            return true;
        }
    }
    return false;
}

/* Returns true if 'row' must be written.  Its version does not count. */
bool
host_wanted_differs(const struct host_wanted *w,
                    const struct host_wanted_ctx *ctx,
                    const struct hostsrec_host_wanted *row)
{
    const struct policy *policy = ctx->policy;

    return (row->generation != ctx->generation
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
            || (ctx->has_guard_share
                && (row->n_guard_share != 1
                    || numbers_differ(row->guard_share[0],
                                      policy->min_share)))
            || (ctx->has_congestion && congestion_differs(row, policy)));
}

void
host_wanted_write(const struct host_wanted *w,
                  const struct host_wanted_ctx *ctx,
                  const struct hostsrec_host_wanted *row)
{
    const struct policy *policy = ctx->policy;

    hostsrec_host_wanted_set_version(row, ctx->version);
    hostsrec_host_wanted_set_generation(row, ctx->generation);
    hostsrec_host_wanted_set_lease_ms(row, policy->lease_ms);
    hostsrec_host_wanted_set_default_dscp(row, policy->default_dscp);
    if (ctx->has_guard_share) {
        hostsrec_host_wanted_set_guard_share(row, &policy->min_share, 1);
    }
    if (ctx->has_congestion) {
        const char *keys[ARRAY_SIZE(congestion_keys)];
        double values[ARRAY_SIZE(congestion_keys)];

        memcpy(keys, congestion_keys, sizeof keys);
        get_congestion(policy, values);
        hostsrec_host_wanted_set_congestion(row, keys, values,
                                            ARRAY_SIZE(values));
    }
    hostsrec_host_wanted_set_policy(row, policy->name);
    hostsrec_host_wanted_set_rank(row, w->names, w->ranks, w->n);
    hostsrec_host_wanted_set_level(row, w->names, w->levels, w->n);
    hostsrec_host_wanted_set_dscp(row, w->names, w->dscps, w->n);
    hostsrec_host_wanted_set_weight(row, w->names, w->weights, w->n);
}
