/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/stage-name.h"
#include "controller/model/fabric.h"
#include "controller/model/host-names.h"
#include "controller/model/intent-digest.h"
#include "controller/model/owners.h"
#include "controller/model/unannounced.h"
#include "timeval.h"
#include "util.h"

/* Longest time between the turns of two machines of one name, and the number
 * of turns from one address that shows two machines. */
#define TWIN_MS 10000
#define TWIN_TURNS 3

const char *const stage_idle_names[N_STAGE_IDLES] = {
    [STAGE_BUSY] = "",
    [STAGE_NO_PROCESS] = "no-process",
    [STAGE_NO_TRAFFIC] = "no-traffic",
};

struct cluster *
cluster_create(void)
{
    struct cluster *c = xzalloc(sizeof *c);

    shash_init(&c->hosts);
    shash_init(&c->labels);
    shash_init(&c->cojobs);
    shash_init(&c->jobs);
    shash_init(&c->owners);
    c->unannounced = unannounced_create();
    ovs_list_init(&c->starting);
    ovs_list_init(&c->ended);
    return c;
}

/* Returns a stage that has no jobs and is in no list. */
struct stage *
stage_create(const char *cojob, int rung, int64_t began)
{
    struct stage *stage = xzalloc(sizeof *stage);

    stage->cojob_name = xstrdup(cojob);
    stage->rung = rung;
    stage->began = began;
    stage->rank = -1;
    ovs_list_init(&stage->start.node);
    shash_init(&stage->moved);
    shash_init(&stage->parts);
    return stage;
}

void
stage_destroy(struct stage *stage)
{
    struct shash_node *node;

    if (!stage) {
        return;
    }
    SHASH_FOR_EACH (node, &stage->parts) {
        shash_destroy_free_data(&((struct stage_part *) node->data)->moved);
    }
    shash_destroy_free_data(&stage->parts);
    shash_destroy_free_data(&stage->moved);
    ovs_list_remove(&stage->start.node);
    free(stage->jobs);
    free(stage->later);
    stage_trials_uninit(&stage->trials);
    free(stage->cojob_name);
    free(stage);
}

static void
destroy_stages(struct ovs_list *stages)
{
    struct stage *stage;

    LIST_FOR_EACH_SAFE (stage, node, stages) {
        ovs_list_remove(&stage->node);
        stage_destroy(stage);
    }
}

static void
job_destroy(struct cluster *c, struct job *job)
{
    struct shash_node *node;

    shash_find_and_delete(&c->jobs, job->full_name);
    SHASH_FOR_EACH (node, &job->traffic) {
        struct job_traffic *t = node->data;

        shash_destroy_free_data(&t->sent_to);
    }
    shash_destroy_free_data(&job->traffic);
    shash_destroy_free_data(&job->refused);
    job_progress_uninit(&job->progress);
    free(job->ring);
    free(job->full_name);
    free(job->name);
    free(job);
}

/* Adds what 'cojob' was served so far to the account of its owner. */
static void
close_account(const struct cluster *c, struct cojob *cojob)
{
    owners_add(cojob->account, cojob->served, c->owner_memory_s);
    cojob->served = 0;
}

static void
set_account(const struct cluster *c, struct cojob *cojob, struct owner *owner)
{
    if (cojob->account != owner) {
        close_account(c, cojob);
        if (cojob->account) {
            cojob->account->n_cojobs--;
        }
        cojob->account = owner;
        if (owner) {
            owner->n_cojobs++;
        }
    }
}

static void
cojob_destroy(struct cluster *c, struct cojob *cojob)
{
    struct shash_node *node;

    destroy_stages(&cojob->stages);
    SHASH_FOR_EACH (node, &cojob->jobs) {
        job_destroy(c, node->data);
    }
    shash_destroy(&cojob->jobs);
    set_account(c, cojob, NULL);
    free(cojob->name);
    free(cojob->owner);
    free(cojob);
}

void
cluster_destroy(struct cluster *c)
{
    struct shash_node *node;

    if (!c) {
        return;
    }
    SHASH_FOR_EACH (node, &c->cojobs) {
        cojob_destroy(c, node->data);
    }
    shash_destroy(&c->cojobs);
    shash_destroy(&c->jobs);
    owners_destroy(&c->owners);
    destroy_stages(&c->ended);
    unannounced_destroy(c->unannounced);
    SHASH_FOR_EACH (node, &c->hosts) {
        struct host *host = node->data;

        simap_destroy(&host->ports);
        free(host->order);
        free(host->state);
        free(host->twins);
        free(host->name);
        free(host);
    }
    shash_destroy(&c->hosts);
    shash_destroy(&c->labels);
    fabric_destroy(c->fabric);
    free(c);
}

/* Replaces the links between switches and takes ownership of 'fabric'. */
void
cluster_set_fabric(struct cluster *c, struct fabric *fabric)
{
    const struct shash_node *node;

    fabric_destroy(c->fabric);
    c->fabric = fabric;
    SHASH_FOR_EACH (node, &c->hosts) {
        struct host *host = node->data;

        host->leaf = host_find_leaf(c, host);
    }
    c->changes++;
}

/* Hosts and traffic. */

/* Returns the host 'name'.  Creates it if it does not exist. */
struct host *
cluster_get_host(struct cluster *c, const char *name)
{
    struct host *host = shash_find_data(&c->hosts, name);

    if (!host) {
        host = xzalloc(sizeof *host);
        host->name = xstrdup(name);
        host->index = c->n_hosts++;
        host->state = xstrdup("");
        host->generation = -1;
        simap_init(&host->ports);
        shash_add(&c->hosts, name, host);
        host_add_name(c, host);
    }
    return host;
}

bool
cluster_wants_pairs(const struct cluster *c)
{
    return c->fabric || time_msec() < c->pairs_until;
}

/* Returns true if the agent of 'host' has seen a newer generation than this
 * leader's, so that it ignores this leader's orders. */
bool
host_refuses(const struct cluster *c, const struct host *host)
{
    return c->generation && host->generation > c->generation;
}

/* Notes that a connection from address 'now' reports as 'host' while one from
 * 'before' still did; they are null for local ones.  An agent that connects
 * again does that at most twice in a row and from one address. */
void
host_take_turn(struct host *host, const char *before, const char *now)
{
    bool again = time_msec() < host->twins_at + TWIN_MS;

    before = before ? before : "a local process";
    now = now ? now : "a local process";
    host->twins_at = time_msec();
    host->n_turns = again ? host->n_turns + 1 : 1;
    if (strcmp(before, now) || host->n_turns >= TWIN_TURNS) {
        free(host->twins);
        host->twins =
            (strcmp(before, now) > 0 ? xasprintf("%s, %s", now, before)
                                     : xasprintf("%s, %s", before, now));
    }
}

/* Returns true if 'host' must have no rows in the hosts database. */
bool
host_is_barred(const struct host *host)
{
    return (host->revoked
            || (host->oversized_at
                && time_msec() < host->oversized_at + CLUSTER_OVERSIZED_MS));
}

/* Returns true if an operator has revoked the certificate of 'name'. */
bool
cluster_has_revoked(const struct cluster *c, const char *name)
{
    const struct host *host = shash_find_data(&c->hosts, name);

    return host && host->revoked;
}

/* Returns true if reports list 'host': it is connected, has a row in the hosts
 * database, has a process of a live job, is revoked, or its connections end
 * because it refuses the leader or is of a later version. */
static bool
host_is_known(const struct cluster *c, const struct host *host)
{
    return (host->connected || host->reports || host->named || host->revoked
            || host->later_at || host_refuses(c, host));
}

/* Returns the hosts that reports list, sorted by name, in an array of '*np'
 * that the caller frees.  The others are only named by what has ended. */
const struct host **
cluster_known_hosts(const struct cluster *c, size_t *np)
{
    const struct shash_node **nodes = shash_sort(&c->hosts);
    const struct host **hosts = xcalloc(shash_count(&c->hosts) + 1,
                                        sizeof *hosts);
    size_t n = 0;

    for (size_t i = 0; i < shash_count(&c->hosts); i++) {
        if (host_is_known(c, nodes[i]->data)) {
            hosts[n++] = nodes[i]->data;
        }
    }
    free(nodes);
    *np = n;
    return hosts;
}

/* Returns NULL if the rows of host 'name' may be removed, otherwise a message
 * that the caller frees. */
char *
cluster_check_remove(const struct cluster *c, const char *name)
{
    const struct host *host = shash_find_data(&c->hosts, name);

    if (!host || !host_is_known(c, host)) {
        return xasprintf(
            "%.64s: no such host; expected one that \"hosts\" lists", name);
    } else if (host->connected) {
        return xasprintf("%s: its agent is connected; expected a host after "
                         "its agent has been stopped",
                         name);
    } else if (host->named) {
        return xasprintf("%s: live jobs have processes there; expected a host"
                         " after its jobs have ended",
                         name);
    }
    return NULL;
}

/* Sets the capacities of the host's ports, in kbit/s. */
void
host_set_ports(struct cluster *c, struct host *host, const struct simap *ports)
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

/* Returns the capacity of the host's uplink in each direction, in bit/s,
 * greater than 0. */
double
host_capacity(const struct host *host)
{
    return host->capacity_bps > 0 ? host->capacity_bps : CLUSTER_UNKNOWN_BPS;
}

/* Returns by how many versions the host is behind its order, 0 if it has
 * applied it. */
int64_t
host_behind(const struct host *host)
{
    int64_t n = host->wanted - host->applied;

    return (host->applied_generation < 0
                    || host->applied_generation == host->wanted_generation
                ? MAX(n, 0)
            : host->applied_generation < host->wanted_generation ? MAX(n, 1)
                                                                 : 0);
}

/* Sets the version of the order that the host is to apply. */
void
host_set_wanted(struct host *host, int64_t version)
{
    if (!host_behind(host)) {
        host->synced_at = time_msec();
    }
    host->wanted = version;
}

/* Sets the version of the order that the host has applied. */
void
host_set_applied(struct host *host, int64_t version)
{
    bool news = version != host->applied;

    host->applied = version;
    if (news || !host_behind(host)) {
        host->synced_at = time_msec();
    }
}

/* Returns for how long the host has not applied a newer order although it is
 * connected and one is wanted, 0 if none is.  Orders may change five times a
 * second, so a healthy host is often behind the last one. */
long long
host_lag_ms(const struct host *host)
{
    return (host->connected && host_behind(host)
                ? time_msec() - host->synced_at
                : 0);
}

bool
host_is_lagging(const struct host *host)
{
    return host_lag_ms(host) > CLUSTER_LAG_MS;
}

struct job_traffic *
job_get_traffic(struct job *job, struct host *host)
{
    struct job_traffic *t = shash_find_data(&job->traffic, host->name);

    if (!t) {
        t = xzalloc(sizeof *t);
        t->host = host;
        t->progress = PROGRESS_SOURCE_NONE;
        t->estimated = -1;
        t->mark_iteration = -1;
        shash_init(&t->sent_to);
        shash_add(&job->traffic, host->name, t);
    }
    return t;
}

/* Notes that processes of 'host' claim 'job' and are not admitted. */
void
job_refuse(struct job *job, const struct host *host, enum membership reason,
           const struct membership_claim *claim)
{
    struct job_refusal *r = shash_find_data(&job->refused, host->name);
    long long now = time_msec(), since = now;

    if (!r) {
        r = xzalloc(sizeof *r);
        shash_add(&job->refused, host->name, r);
    } else if (r->reason == reason && now < r->at + CLUSTER_REFUSAL_MS) {
        since = r->since;
    }
    *r = (struct job_refusal){ .reason = reason,
                               .has_uid = claim->has_uid,
                               .uid = claim->uid,
                               .at = now,
                               .since = since };
}

/* Notes that the processes of 'host' that claim 'job' are admitted. */
void
job_admit(struct job *job, const struct host *host)
{
    free(shash_find_and_delete(&job->refused, host->name));
}

/* Returns the refusal that processes of 'host' have now, or NULL. */
const struct job_refusal *
job_refusal(const struct job *job, const char *host)
{
    const struct job_refusal *r = shash_find_data(&job->refused, host);

    return r && time_msec() < r->at + CLUSTER_REFUSAL_MS ? r : NULL;
}

/* Returns "user 1000", or 'space' if 'uid' is of a namespace of pods. */
static char *
user_to_string(uint64_t uid, const char *space)
{
    return (uid > MEMBERSHIP_MAX_UID ? xstrdup(space)
                                     : xasprintf("user %" PRIu64, uid));
}

/* Returns why processes are not admitted; the caller frees. */
char *
job_refusal_to_string(const struct job *job, const struct job_refusal *r)
{
    const struct cojob *cojob = job->cojob;
    char *theirs, *owner, *text;

    if (r->reason == MEMBERSHIP_UNREGISTERED) {
        return xstrdup("known by their environment only, which the policy's "
                       "/trust does not admit");
    } else if (r->reason == MEMBERSHIP_ELSEWHERE) {
        return xstrdup("not announced there, and no other host of the job "
                       "sends to them");
    }
    theirs = (r->has_uid ? user_to_string(r->uid, "another namespace")
                         : xstrdup("an unknown user"));
    owner =
        user_to_string(cojob->uid, cojob->owner ? cojob->owner : "another");
    text = xasprintf("of %s, and the owner of %s is %s", theirs, cojob->name,
                     owner);
    free(theirs);
    free(owner);
    return text;
}

/* Stages. */

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

    if (a->begin_ms != b->begin_ms) {
        return a->begin_ms < b->begin_ms ? -1 : 1;
    } else if (a->began != b->began) {
        return a->began < b->began ? -1 : 1;
    }
    cmp = strcmp(a->cojob_name, b->cojob_name);
    return cmp ? cmp : a->rung < b->rung ? -1 : a->rung > b->rung;
}

/* Returns the running stages, the oldest first, in an array of '*np' that the
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

/* Returns "COJOB/RUNG"; the caller frees. */
char *
stage_name(const struct stage *stage)
{
    return xasprintf(STAGE_NAME_FMT, stage->cojob_name, stage->rung);
}

/* Returns the entry of 'host' in 'moved', of a stage or of a part of it. */
struct stage_bytes *
stage_get_bytes(struct shash *moved, struct host *host)
{
    struct stage_bytes *b = shash_find_data(moved, host->name);

    if (!b) {
        b = xzalloc(sizeof *b);
        b->host = host;
        shash_add(moved, host->name, b);
    }
    return b;
}

bool
stage_has_moved(const struct stage *stage)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &stage->moved) {
        const struct stage_bytes *b = node->data;

        if (b->bytes[DIR_TX] || b->bytes[DIR_RX]) {
            return true;
        }
    }
    return false;
}

struct stage_part *
stage_get_part(struct stage *stage, const char *job)
{
    struct stage_part *part = shash_find_data(&stage->parts, job);

    if (!part) {
        part = xzalloc(sizeof *part);
        shash_init(&part->moved);
        shash_add(&stage->parts, job, part);
    }
    return part;
}

/* The intent. */

static void
clear_workers(struct job *job)
{
    struct shash_node *node;

    memset(job->workers, 0, sizeof job->workers);
    job->n_ring = 0;
    SHASH_FOR_EACH (node, &job->traffic) {
        struct job_traffic *t = node->data;

        memset(t->workers, 0, sizeof t->workers);
    }
}

/* Starts a new copy of the whole intent. */
void
cluster_intent_begin(struct cluster *c)
{
    struct shash_node *node, *job_node;

    c->copied = instant_now();
    SHASH_FOR_EACH (node, &c->hosts) {
        struct host *host = node->data;

        host->named = false;
    }
    SHASH_FOR_EACH (node, &c->cojobs) {
        struct cojob *cojob = node->data;
        struct stage *stage;

        cojob->seen = false;
        SHASH_FOR_EACH (job_node, &cojob->jobs) {
            struct job *job = job_node->data;

            job->seen = false;
            if (job->live) {
                clear_workers(job);
            }
        }
        LIST_FOR_EACH (stage, node, &cojob->stages) {
            stage->seen = false;
        }
    }
}

struct cojob *
cluster_put_cojob(struct cluster *c, const char *name, double weight,
                  bool running)
{
    struct cojob *cojob = shash_find_data(&c->cojobs, name);

    if (!cojob) {
        cojob = xzalloc(sizeof *cojob);
        cojob->name = xstrdup(name);
        shash_init(&cojob->jobs);
        ovs_list_init(&cojob->stages);
        shash_add(&c->cojobs, name, cojob);
    }
    cojob->seen = true;
    cojob->running = running;
    cojob->done_at = (running ? 0
                      : cojob->done_at ? cojob->done_at : c->copied.msec);
    cojob->weight = weight;
    return cojob;
}

/* 'owner' is null or empty if it is unknown, 'uid' is then 0. */
void
cojob_set_owner(struct cluster *c, struct cojob *cojob, const char *owner,
                uint64_t uid)
{
    free(cojob->owner);
    cojob->owner = owner && *owner ? xstrdup(owner) : NULL;
    cojob->uid = uid;
    set_account(c, cojob, owners_get(&c->owners, owner, uid));
}

/* Returns the time_msec() at which a row that is new in this copy of the
 * intent began; 'began' is its stamp, epoch ms. */
static long long
began_msec(const struct cluster *c, int64_t began)
{
    return c->known ? c->copied.msec : instant_msec(&c->copied, began);
}

/* Resets the measurements of a job that began again. */
static void
restart_job(const struct cluster *c, struct job *job)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &job->traffic) {
        struct job_traffic *t = node->data;

        t->progress = PROGRESS_SOURCE_NONE;
        t->mark_iteration = t->estimated = -1;
        t->estimated_before = 0;
        t->measured = t->per_iteration[DIR_TX] = t->per_iteration[DIR_RX] = 0;
        t->standing = HOST_UNKNOWN;
        t->moved = 0;
        shash_clear_free_data(&t->sent_to);
    }
    job->rest = PROGRESS_SOURCE_NONE;
    job->iteration = -1;
    job->estimated = false;
    job_progress_uninit(&job->progress);
    job_progress_init(&job->progress, began_msec(c, job->began));
    progress_bound_init(&job->bound, began_msec(c, job->began));
    job->moved = 0;
    job->reports_refused = job->reports_refused_at = 0;
}

/* Adds or updates job 'name' of 'cojob', which began at 'began', epoch ms. */
struct job *
cojob_put_job(struct cluster *c, struct cojob *cojob, const char *name,
              bool running, int64_t began, int64_t model_bytes)
{
    struct job *job = shash_find_data(&cojob->jobs, name);

    if (!job) {
        job = xzalloc(sizeof *job);
        job->cojob = cojob;
        job->name = xstrdup(name);
        job->full_name = xasprintf("%s/%s", cojob->name, name);
        job->rest = PROGRESS_SOURCE_NONE;
        job->iteration = -1;
        job->level = -1;
        job->factor = 1;
        job_progress_init(&job->progress, began_msec(c, job->began));
        progress_bound_init(&job->bound, began_msec(c, job->began));
        shash_init(&job->traffic);
        shash_init(&job->refused);
        shash_add(&cojob->jobs, name, job);
        shash_add(&c->jobs, job->full_name, job);
    }
    if (job->began != began) {
        job->began = began;
        restart_job(c, job);
    }
    job->seen = true;
    if (job->live && !(running && cojob->running)) {
        job->stopped_at = time_msec();
    }
    job->live = running && cojob->running;
    job->model_bytes = model_bytes;
    return job;
}

static void
add_to_ring(struct job *job, struct host *host)
{
    if (job->n_ring >= job->allocated_ring) {
        job->ring = x2nrealloc(job->ring, &job->allocated_ring,
                               sizeof *job->ring);
    }
    job->ring[job->n_ring++] = host;
}

/* Adds a process of 'job' on 'host'; peers are added in the order of their
 * index.  Does nothing if the job has ended and its hosts are known: ended
 * cojobs stay in the intent for a while. */
void
job_put_worker(struct cluster *c, struct job *job, const char *host,
               enum role role)
{
    struct job_traffic *t;

    if (!job->live && job->placed) {
        return;
    }
    t = job_get_traffic(job, cluster_get_host(c, cluster_host_named(c, host)));
    if (job->live) {
        t->workers[role]++;
        job->workers[role]++;
        t->host->named = true;
        if (role == ROLE_PEER) {
            add_to_ring(job, t->host);
        }
    }
}

/* Returns the stage of 'cojob' that began at 'began', or NULL. */
struct stage *
cojob_find_stage(const struct cojob *cojob, int rung, int64_t began)
{
    struct stage *stage;

    LIST_FOR_EACH (stage, node, &cojob->stages) {
        if (stage->rung == rung && stage->began == began) {
            return stage;
        }
    }
    return NULL;
}

/* Adds or updates a stage of 'cojob', which is identified by its rung and
 * start time.  Returns NULL for an unknown stage that has ended. */
struct stage *
cojob_put_stage(struct cluster *c, struct cojob *cojob, int rung,
                int64_t began, int64_t ended, int64_t iterations)
{
    struct stage *stage = cojob_find_stage(cojob, rung, began);

    if (!stage) {
        if (ended || !cojob->running) {
            return NULL;
        }
        stage = stage_create(cojob->name, rung, began);
        stage->cojob = cojob;
        stage->begin_ms = began_msec(c, began);
        stage->known_at = c->copied.msec;
        stage->start.at = instant_msec(&c->copied, began);
        ovs_list_push_back(&cojob->stages, &stage->node);
        ovs_list_push_back(&c->starting, &stage->start.node);
    }
    stage->seen = true;
    stage->ended = ended;
    stage->end_ms = (!ended ? 0
                     : stage->end_ms ? stage->end_ms : c->copied.msec);
    stage->iterations = iterations;
    stage->n_jobs = 0;
    return stage;
}

/* Adds 'job' to 'stage', to which its traffic is attributed from now on. */
void
stage_put_job(struct stage *stage, struct job *job)
{
    if (stage->n_jobs >= stage->allocated_jobs) {
        stage->jobs = x2nrealloc(stage->jobs, &stage->allocated_jobs,
                                 sizeof *stage->jobs);
    }
    stage->jobs[stage->n_jobs++] = job;
    if (!stage->ended && job->stage != stage) {
        job->previous = job->stage;
        job->stage = stage;
        job->judged = 0;
        if (!stage->trials.n) {
            stage->first_iteration =
                MAX(stage->first_iteration, job->iteration);
        }
        job->sent = 0;
        job_progress_pause(&job->progress);
    }
}

/* Removes the references of jobs to 'stage'. */
static void
forget_stage(struct cluster *c, const struct stage *stage)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &c->jobs) {
        struct job *job = node->data;

        if (job->stage == stage) {
            job->stage = NULL;
        }
        if (job->previous == stage) {
            job->previous = NULL;
        }
    }
}

/* Counts what the jobs of 'stage', which ends, have done in it.  Returns the
 * iterations of all of them. */
static double
count_done(struct stage *stage)
{
    const struct shash_node *node;
    double all = 0;

    for (size_t i = 0; !stage->trials.n && i < stage->n_jobs; i++) {
        int64_t done = MIN(stage->jobs[i]->iteration, stage->iterations)
                       - stage->first_iteration;

        stage->done = MAX(stage->done, done);
        all += MAX(done, 0);
    }
    SHASH_FOR_EACH (node, &stage->cojob->jobs) {
        const struct job *job = node->data;

        if (stage->trials.n && job->stage == stage) {
            stage->done = MAX(stage->done, job->iteration);
            all += MAX(job->iteration, 0);
        }
    }
    return all;
}

/* Moves a stage that has ended to the cluster's 'ended'. */
static void
move_to_ended(struct cluster *c, struct stage *stage)
{
    double all = count_done(stage);

    stage->cojob->served += stage->work * all;
    ovs_list_remove(&stage->node);
    if (stage->plain.id) {
        double announced =
            (stage->trials.n ? all + stage_trials_left(stage)
                             : stage->iterations - stage->first_iteration);
        double done = stage->trials.n ? all : stage->done;

        stage->cojob->plain = stage->plain;
        plain_next(&stage->cojob->plain,
                   (stage->end_ms - stage->begin_ms) / 1000.0);
        if (done > 0 && done < announced) {
            stage->plain.end -=
                plain_stage(&stage->plain) * (announced - done) / announced;
        }
    }
    stage->cojob = NULL;
    stage->n_jobs = 0;
    ovs_list_remove(&stage->start.node);
    ovs_list_init(&stage->start.node);
    ovs_list_push_front(&c->ended, &stage->node);
    if (++c->n_ended > CLUSTER_MAX_ENDED) {
        struct stage *oldest = CONTAINER_OF(ovs_list_pop_back(&c->ended),
                                            struct stage, node);

        forget_stage(c, oldest);
        stage_destroy(oldest);
        c->n_ended--;
    }
}

/* Ends the copy of the intent: removes the cojobs, jobs and stages that were
 * not added since cluster_intent_begin().  Only a change of a running stage
 * is urgent. */
void
cluster_intent_end(struct cluster *c)
{
    struct shash_node *node, *job_node;
    uint32_t digest;

    SHASH_FOR_EACH_SAFE (node, &c->cojobs) {
        struct cojob *cojob = node->data;
        struct stage *stage;

        LIST_FOR_EACH_SAFE (stage, node, &cojob->stages) {
            if (!stage->seen) {
                forget_stage(c, stage);
                ovs_list_remove(&stage->node);
                stage_destroy(stage);
            } else if (stage->ended) {
                move_to_ended(c, stage);
            }
        }
        SHASH_FOR_EACH_SAFE (job_node, &cojob->jobs) {
            struct job *job = job_node->data;

            if (!job->seen || !cojob->seen) {
                shash_delete(&cojob->jobs, job_node);
                job_destroy(c, job);
            } else {
                job->placed = true;
            }
        }
        if (!cojob->running) {
            close_account(c, cojob);
        }
        if (!cojob->seen) {
            shash_delete(&c->cojobs, node);
            cojob_destroy(c, cojob);
        }
    }
    c->known = true;
    digest = intent_digest(c);
    if (digest != c->digest) {
        c->digest = digest;
        c->changes++;
    } else {
        c->minor++;
    }
}
