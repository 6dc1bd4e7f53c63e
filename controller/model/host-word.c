/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/host-word.h"

#include "controller/model/cluster.h"
#include "openvswitch/shash.h"

/* What the hosts that count know of another one. */
struct hearsay {
    bool any;      /* There is such a host. */
    bool present;  /* One of them has the job, or is still to
                    * begin it. */
    bool named;    /* One of them sends to the other host. */
    bool complete; /* One of them sends to known hosts, mostly. */
};

static bool
has_workers(const int workers[N_ROLES])
{
    return workers[ROLE_WORKER] || workers[ROLE_SERVER] || workers[ROLE_PEER];
}

/* Returns true if the host of 't', NULL if it has none, counts for 'job' by
 * what is known already. */
static bool
counts(const struct job *job, const struct job_traffic *t)
{
    if (!t || !job->live) {
        return t && t->at;
    }
    return has_workers(t->workers) || t->standing == HOST_NAMED
           || (t->standing == HOST_FIRST && !has_workers(job->workers));
}

static void
hear(struct hearsay *h, const struct job_traffic *t, const char *host,
     long long now)
{
    const struct shash_node *node;
    double named = 0;

    SHASH_FOR_EACH (node, &t->sent_to) {
        named += *(const uint64_t *) node->data;
    }
    h->any = true;
    h->present = h->present || !t->at || now <= t->at + HOST_WORD_STALE_MS;
    h->named = h->named || shash_find(&t->sent_to, host);
    h->complete = h->complete || (named > 0 && 2 * named >= t->sent);
}

bool
host_word_counts(struct job *job, struct host *host, long long now)
{
    struct job_traffic *t = shash_find_data(&job->traffic, host->name);
    struct hearsay h = { .any = false };
    const struct shash_node *node;

    if (counts(job, t) || !job->live) {
        return true;
    }
    SHASH_FOR_EACH (node, &job->traffic) {
        if (counts(job, node->data)) {
            hear(&h, node->data, host->name, now);
        }
    }
    if (h.any && h.present && !h.named) {
        return !host->certified && !h.complete && !has_workers(job->workers);
    }
    job_get_traffic(job, host)->standing = h.any ? HOST_NAMED : HOST_FIRST;
    return true;
}
