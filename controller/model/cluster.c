/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/cluster-private.h"

#include <stdlib.h>
#include <string.h>

#include "timeval.h"
#include "util.h"

struct cluster *
cluster_create(void)
{
    struct cluster *c = xzalloc(sizeof *c);

    shash_init(&c->hosts);
    shash_init(&c->cojobs);
    shash_init(&c->jobs);
    ovs_list_init(&c->ended);
    return c;
}

void
cluster_destroy(struct cluster *c)
{
    struct shash_node *node;

    if (!c) {
        return;
    }
    cluster_intent_uninit(c);
    SHASH_FOR_EACH (node, &c->hosts) {
        struct host *host = node->data;

        simap_destroy(&host->ports);
        free(host->state);
        free(host->name);
        free(host);
    }
    shash_destroy(&c->hosts);
    free(c);
}

/* Returns the host 'name', which comes into being when it is first named. */
struct host *
cluster_get_host(struct cluster *c, const char *name)
{
    struct host *host = shash_find_data(&c->hosts, name);

    if (!host) {
        host = xzalloc(sizeof *host);
        host->name = xstrdup(name);
        host->index = c->n_hosts++;
        host->state = xstrdup("");
        simap_init(&host->ports);
        shash_add(&c->hosts, name, host);
    }
    return host;
}

/* 'ports' are capacities in kbit/s. */
void
host_set_ports(struct cluster *c, struct host *host,
               const struct simap *ports)
{
    const struct simap_node *node;
    double bps = 0;

    if (simap_equal(&host->ports, ports)) {
        return;
    }
    SIMAP_FOR_EACH (node, ports) {
        bps += node->data * 1e3;
    }
    simap_clear(&host->ports);
    SIMAP_FOR_EACH (node, ports) {
        simap_put(&host->ports, node->name, node->data);
    }
    host->capacity_bps = bps;
    c->changes++;
}

/* Bits per second of each direction, never 0. */
double
host_capacity(const struct host *host)
{
    return host->capacity_bps > 0 ? host->capacity_bps : CLUSTER_UNKNOWN_BPS;
}

/* The host shall have the order of 'version'. */
void
host_set_wanted(struct host *host, int64_t version)
{
    if (host->applied >= host->wanted) {
        host->in_step = time_msec();    /* Until now. */
    }
    host->wanted = version;
}

/* The host has the order of 'version' in force. */
void
host_set_applied(struct host *host, int64_t version)
{
    if (version != host->applied || version >= host->wanted) {
        host->in_step = time_msec();
    }
    host->applied = version;
}

/* Has the host not done for some time what it shall do? */
bool
host_is_late(const struct host *host)
{
    return (host->connected && host->applied < host->wanted
            && time_msec() > host->in_step + CLUSTER_LATE_MS);
}

struct job_traffic *
job_get_traffic(struct job *job, struct host *host)
{
    struct job_traffic *t = shash_find_data(&job->traffic, host->name);

    if (!t) {
        t = xzalloc(sizeof *t);
        t->host = host;
        t->progress = PROGRESS_SOURCE_NONE;
        t->counted = -1;
        t->mark_iteration = -1;
        shash_add(&job->traffic, host->name, t);
    }
    return t;
}

bool
stage_is_running(const struct stage *stage)
{
    return stage->cojob && !stage->ended && stage->cojob->running;
}

static int
compare_stages(const void *a_, const void *b_)
{
    const struct stage *a = *(const struct stage *const *) a_;
    const struct stage *b = *(const struct stage *const *) b_;
    int cmp;

    if (a->began != b->began) {
        return a->began < b->began ? -1 : 1;
    }
    cmp = strcmp(a->cojob_name, b->cojob_name);
    return cmp ? cmp : a->rung < b->rung ? -1 : a->rung > b->rung;
}

/* Returns the '*np' running stages, the oldest first, in an array that the
 * caller frees. */
struct stage **
cluster_running_stages(const struct cluster *c, size_t *np)
{
    struct stage **stages = NULL;
    size_t n = 0, allocated = 0;
    struct shash_node *node;

    SHASH_FOR_EACH (node, &c->cojobs) {
        struct cojob *cojob = node->data;
        struct stage *stage;

        LIST_FOR_EACH (stage, node, &cojob->stages) {
            if (!stage_is_running(stage)) {
                continue;
            }
            if (n >= allocated) {
                stages = x2nrealloc(stages, &allocated, sizeof *stages);
            }
            stages[n++] = stage;
        }
    }
    if (n) {
        qsort(stages, n, sizeof *stages, compare_stages);
    }
    *np = n;
    return stages;
}

/* "COJOB/rung N", for people; the caller frees. */
char *
stage_to_string(const struct stage *stage)
{
    return xasprintf("%s/rung %d", stage->cojob_name, stage->rung);
}

struct stage_bytes *
stage_get_bytes(struct stage *stage, struct host *host)
{
    struct stage_bytes *b = shash_find_data(&stage->moved, host->name);

    if (!b) {
        b = xzalloc(sizeof *b);
        b->host = host;
        shash_add(&stage->moved, host->name, b);
    }
    return b;
}
