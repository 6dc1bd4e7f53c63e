/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/host-wanted.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "controller/model/cluster.h"
#include "openvswitch/json.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"
#include "wire/shim-protocol.h"

/* Columns with a value for each job. */
enum { OWNER_UID, RANK, LEVEL, WEIGHT, N_MAPS };
static const char *const map_names[] = { "owner_uid", "rank", "level",
                                         "weight" };

/* A job, and its entries of these columns, each after a comma. */
struct job_entries {
    const struct job *job;
    struct ds text;
    size_t ends[N_MAPS]; /* In 'text'. */
};

/* The jobs of a host. */
struct job_list {
    const struct job_entries **a;
    size_t n, allocated;
};

static void
add_job(struct host_jobs *jobs, const char *host,
        const struct job_entries *entries)
{
    struct job_list *list = shash_find_data(&jobs->by_host, host);

    if (!list) {
        list = xzalloc(sizeof *list);
        shash_add(&jobs->by_host, host, list);
    }
    if (list->n == list->allocated) {
        list->a = x2nrealloc(list->a, &list->allocated, sizeof *list->a);
    }
    list->a[list->n++] = entries;
}

static void
entries_init(struct job_entries *e, const struct job *job, bool shares)
{
    struct ds name = DS_EMPTY_INITIALIZER;

    e->job = job;
    ds_init(&e->text);
    json_string_escape(job->full_name, &name);
    for (int i = 0; i < N_MAPS; i++) {
        if (i != OWNER_UID || job->cojob->uid) {
            ds_put_format(&e->text, ",[%s,", ds_cstr(&name));
            if (i == WEIGHT) {
                ds_put_format(&e->text, "%.17g]", job->cojob->weight);
            } else {
                ds_put_format(&e->text, "%" PRId64 "]",
                              i == OWNER_UID         ? job->cojob->uid
                              : i == LEVEL || shares ? (int64_t) job->level
                                                     : (int64_t) job->key);
            }
        }
        e->ends[i] = e->text.length;
    }
    ds_destroy(&name);
}

static void
put_common(struct ds *ds, const struct policy *p, int64_t generation)
{
    ds_put_format(ds,
                  "\"generation\":%" PRId64 ",\"lease_ms\":%" PRId64
                  ",\"policy\":\"%s\",\"trust\":\"%s\",\"min_share\":%.17g,"
                  "\"congestion\":[\"map\",[[\"beta\",%.17g],[\"floor\",%.17g]"
                  ",[\"gamma\",%.17g]]],\"level_dscp\":[\"map\",[[0,%d]",
                  generation, (int64_t) p->lease_ms, p->name,
                  policy_trusts[p->trust], p->min_share, p->congestion_beta,
                  p->congestion_floor, p->congestion_gamma, p->control_dscp);
    /* By the shim's level, which is also the queue. */
    for (int n = 1; n <= p->n_levels; n++) {
        ds_put_format(ds, ",[%d,%d]", n, p->dscp[n - 1]);
    }
    ds_put_format(ds, ",[%d,%d]]]", SHIM_LEVEL_DEFAULT, p->default_dscp);
}

void
host_jobs_init(struct host_jobs *jobs, const struct cluster *c,
               const struct policy *policy, int64_t generation)
{
    bool shares =
        order_classes[policy->order.kind].service == ORDER_SERVICE_SHARE;
    const struct shash_node **nodes, *place;
    long long now = time_msec();

    *jobs = (struct host_jobs){ .due = LLONG_MAX };
    shash_init(&jobs->by_host);
    put_common(&jobs->common, policy, generation);
    if (!c) {
        return;
    }
    nodes = shash_sort(&c->jobs);
    jobs->entries = xcalloc(shash_count(&c->jobs), sizeof *jobs->entries);
    for (size_t i = 0; i < shash_count(&c->jobs); i++) {
        const struct job *job = nodes[i]->data;
        struct job_entries *entries = &jobs->entries[jobs->n];

        if (!job->live) {
            long long until = job->stopped_at + HOST_WANTED_LINGER_MS;

            if (now >= until) {
                continue;
            }
            jobs->due = MIN(jobs->due, until);
        }
        entries_init(entries, job, shares);
        jobs->n++;
        SHASH_FOR_EACH (place, &job->traffic) {
            add_job(jobs, place->name, entries);
        }
        SHASH_FOR_EACH (place, &job->refused) {
            if (!shash_find(&job->traffic, place->name)) {
                add_job(jobs, place->name, entries);
            }
        }
    }
    free(nodes);
}

void
host_jobs_uninit(struct host_jobs *jobs)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &jobs->by_host) {
        free(((struct job_list *) node->data)->a);
    }
    shash_destroy_free_data(&jobs->by_host);
    for (size_t i = 0; i < jobs->n; i++) {
        ds_destroy(&jobs->entries[i].text);
    }
    free(jobs->entries);
    ds_destroy(&jobs->common);
}

/* Returns the number of columns, from the first one, that have an entry of
 * 'job', which has a place on 'host'. */
static int
n_columns(const struct job *job, const struct host *host)
{
    const struct job_refusal *refusal =
        shash_is_empty(&job->refused) ? NULL : job_refusal(job, host->name);

    return (job->level >= 0 && job->override != OVERRIDE_EXCLUDE
                    && (!refusal || refusal->reason == MEMBERSHIP_ELSEWHERE)
                ? N_MAPS
                : OWNER_UID + 1);
}

char *
host_wanted_compose(const struct host_jobs *jobs, const struct host *host)
{
    const struct job_list *list = shash_find_data(&jobs->by_host, host->name);
    struct ds maps[N_MAPS] = { DS_EMPTY_INITIALIZER };
    struct ds row = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; list && i < list->n; i++) {
        const struct job_entries *e = list->a[i];
        int n = n_columns(e->job, host);

        for (int m = 0; m < n; m++) {
            size_t begin = m ? e->ends[m - 1] : 0;

            ds_put_buffer(&maps[m], e->text.string + begin,
                          e->ends[m] - begin);
        }
    }
    ds_put_format(&row, "{%s,\"host\":", ds_cstr_ro(&jobs->common));
    json_string_escape(host->name, &row);
    for (int m = 0; m < N_MAPS; m++) {
        ds_put_format(&row, ",\"%s\":[\"map\",[%s]]", map_names[m],
                      maps[m].length ? ds_cstr(&maps[m]) + 1 : "");
        ds_destroy(&maps[m]);
    }
    ds_put_char(&row, '}');
    return ds_steal_cstr(&row);
}
