/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-db.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/intent/intent-announcement.h"
#include "controller/model/cluster.h"
#include "controller/model/cooldown.h"
#include "controller/model/inactive.h"
#include "controller/model/overrides.h"
#include "controller/model/owners.h"
#include "controller/ovsdb/answers.h"
#include "controller/ovsdb/leader-search.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"
#include "wire/intent-idl.h"

VLOG_DEFINE_THIS_MODULE(intent_db);

/* Name of the OVSDB lock of controllers. */
#define LOCK_NAME "stagecoach"

/* An iteration that begins so long after the last one is late: the messages
 * that it reads are older than they seem by up to this.  An idle leader wakes
 * up twice in this time. */
#define LATE_MS 500

/* Shortest time between two transactions, except for overrides. */
#define WRITE_MS 200

/* Time between two garbage collections. */
#define GC_MS 1000

/* Events to be written; the oldest are dropped if there are more. */
#define MAX_PENDING 200

/* An event that is not in the database yet. */
struct event {
    struct ovs_list node;       /* In struct intent_db's 'events'. */
    int64_t at;                 /* Epoch ms. */
    char *actor, *what, *why;
    const char *role; /* Role of 'actor'. */
};

struct intent_db {
    struct ovsdb_idl_loop loop;
    struct leader_search search;
    struct answers answers;
    struct ovsdb_idl_txn *txn;  /* Of this iteration, NULL if the previous one
                                 * has not been acknowledged. */
    struct cluster *cluster;
    struct overrides *overrides;
    struct decision_log *log;
    char *remote;
    char *address;              /* Where agents reach this controller. */
    unsigned int seqno;         /* Of the database, last loaded. */
    int n_renamed;              /* 'n_renamed' of the cluster, at the last
                                 * load. */
    struct cooldown cooldown;   /* Delay after a load. */
    struct leadership leadership;

    struct ovs_list events;     /* Of struct event, oldest first. */
    size_t n_events;
    const struct policy *policy;        /* To be written, or NULL. */
    int64_t stored;             /* 'loop.cur_cfg' when owners were stored. */
    long long next_write;       /* time_msec() of the next transaction. */
    long long next_gc;          /* time_msec() of the next collection. */
};

struct intent_db *
intent_db_create(const char *remote, const char *address,
                 struct cluster *cluster, struct overrides *overrides,
                 struct decision_log *log)
{
    struct intent_db *idb = xzalloc(sizeof *idb);

    *idb = (struct intent_db) {
        .loop.idl = ovsdb_idl_create(remote, &intentrec_idl_class, true, true),
        .cluster = cluster, .overrides = overrides, .log = log,
        .remote = xstrdup(remote), .address = xstrdup(address),
    };
    ovsdb_idl_set_lock(idb->loop.idl, LOCK_NAME);
    for (size_t i = 0; i < INTENTREC_CONTROLLER_N_COLUMNS; i++) {
        ovsdb_idl_omit(idb->loop.idl, &intentrec_controller_columns[i]);
    }
    leader_search_init(&idb->search, idb->loop.idl, remote, ANSWERS_PROBE_MS);
    ovs_list_init(&idb->events);
    return idb;
}

/* Removes the oldest event from the queue. */
static void
drop_event(struct intent_db *idb)
{
    struct event *event = CONTAINER_OF(ovs_list_pop_front(&idb->events),
                                       struct event, node);

    idb->n_events--;
    free(event->actor);
    free(event->what);
    free(event->why);
    free(event);
}

void
intent_db_destroy(struct intent_db *idb)
{
    if (!idb) {
        return;
    }
    while (idb->n_events) {
        drop_event(idb);
    }
    ovsdb_idl_loop_destroy(&idb->loop);
    leader_search_uninit(&idb->search);
    free(idb->remote);
    free(idb->address);
    free(idb);
}

void
intent_db_set_remote(struct intent_db *idb, const char *remote)
{
    leader_search_set_remote(&idb->search, remote);
}

void
intent_db_accept_older(struct intent_db *idb)
{
    ovsdb_idl_reset_min_index(idb->loop.idl);
    ovsdb_idl_force_reconnect(idb->loop.idl);
}

static enum role
role_from_string(const char *s)
{
    return (!strcmp(s, "server") ? ROLE_SERVER
            : !strcmp(s, "peer") ? ROLE_PEER
            : ROLE_WORKER);
}

/* Loads how a search judges the jobs of a stage. */
static void
load_trials(struct stage *stage, const struct intentrec_stage *row)
{
    struct stage_trials *t = &stage->trials;

    t->eta = row->eta;
    t->to_come = row->to_come;
    t->order = (!row->trials                        ? -1
                : !strcmp(row->trials, "promising") ? ORDER_TRIALS_PROMISING
                                                    : ORDER_TRIALS_NEUTRAL);
    stage_trials_set(t, row->key_rungs, row->eta >= 2 ? row->n_rungs : 0);
}

static void
load_stage(struct cluster *c, struct cojob *cojob,
           const struct intentrec_cojob *cojob_row,
           const struct intentrec_stage *row)
{
    bool running = !strcmp(row->state, "running");
    struct stage *stage;

    stage = cojob_put_stage(c, cojob, row->rung, row->began,
                            running ? 0 : MAX(row->ended, 1), row->iterations);
    if (stage) {
        double understated = stage->announcement.understated;

        load_trials(stage, row);
        stage->announcement = intent_announcement(cojob_row, row);
        stage->announcement.understated = understated; /* Counted, not in the
                                                        * row. */
        free(stage->later);
        stage->n_later = intent_later_rungs(row, &stage->later);
        stage->claim.bytes = row->bytes_per_iteration;
        stage->claim.compute = row->compute_s;
    }
    for (size_t i = 0; stage && i < row->n_jobs; i++) {
        struct job *job = shash_find_data(&cojob->jobs, row->jobs[i]->name);

        if (job) {
            stage_put_job(stage, job);
        }
    }
    if (stage) {
        stage_trials_announced(stage);
    }
}

static int
compare_indexes(const void *a_, const void *b_)
{
    const struct intentrec_worker *const *a = a_;
    const struct intentrec_worker *const *b = b_;

    return (*a)->index < (*b)->index ? -1 : (*a)->index > (*b)->index;
}

static void
load_workers(struct cluster *c, struct job *job,
             const struct intentrec_job *row)
{
    const struct intentrec_worker **workers
        = xcalloc(row->n_workers + 1, sizeof *workers);

    for (size_t i = 0; i < row->n_workers; i++) {
        workers[i] = row->workers[i];
    }
    qsort(workers, row->n_workers, sizeof *workers, compare_indexes);
    for (size_t i = 0; i < row->n_workers; i++) {
        job_put_worker(c, job, workers[i]->host,
                       role_from_string(workers[i]->role));
    }
    free(workers);
}

static void
load_cojob(struct cluster *c, const struct intentrec_cojob *row)
{
    struct cojob *cojob = cluster_put_cojob(c, row->name, row->weight,
                                            !strcmp(row->state, "running"));

    cojob_set_owner(c, cojob, row->owner,
                    row->n_owner_uid ? row->owner_uid[0] : 0);
    for (size_t i = 0; i < row->n_jobs; i++) {
        const struct intentrec_job *j = row->jobs[i];
        struct job *job = cojob_put_job(c, cojob, j->name,
                                        !strcmp(j->state, "running"),
                                        j->began, j->model_bytes);

        load_workers(c, job, j);
    }
    for (size_t i = 0; i < row->n_stages; i++) {
        load_stage(c, cojob, row, row->stages[i]);
    }
}

/* Adds events of the stages that began or ended. */
static void
log_stages(struct intent_db *idb)
{
    struct stage **running, *stage;
    size_t n;

    running = cluster_running_stages(idb->cluster, &n);
    for (size_t i = 0; i < n; i++) {
        if (!running[i]->begin_logged) {
            char *name = stage_name(running[i]);

            running[i]->begin_logged = true;
            intent_db_event(idb, DECISION_STAGE, NULL, name, "stage-begin",
                            "%"PRIuSIZE" jobs to iteration %"PRId64,
                            running[i]->n_jobs, running[i]->iterations);
            free(name);
        }
    }
    free(running);
    LIST_FOR_EACH (stage, node, &idb->cluster->ended) {
        char *name;

        if (stage->end_logged) {
            break;
        }
        stage->end_logged = true;
        name = stage_name(stage);
        intent_db_event(idb, DECISION_STAGE, NULL, name, "stage-end",
                        "after %.3f s",
                        (stage->ended - stage->began) / 1000.0);
        free(name);
    }
}

static enum override_kind
kind_from_string(const char *s)
{
    for (int kind = OVERRIDE_PIN; kind < N_OVERRIDE_KINDS; kind++) {
        if (!strcmp(s, override_names[kind])) {
            return kind;
        }
    }
    return OVERRIDE_NONE;       /* A newer controller's: ignored. */
}

static void
load_overrides(struct overrides *o, const struct ovsdb_idl *idl)
{
    const struct intentrec_override *row;
    struct instant now = instant_now();

    overrides_begin_rows(o, &now);
    INTENTREC_OVERRIDE_FOR_EACH (row, idl) {
        overrides_put_row(o, &(struct override){
                                 .id = row->id,
                                 .kind = kind_from_string(row->kind),
                                 .target = row->target,
                                 .actor = row->actor,
                                 .reason = row->reason,
                                 .at = row->at,
                                 .until = row->until,
                                 .ended = row->ended,
                             });
    }
    overrides_end_rows(o);
}

/* Loads the accounts that the last leader has stored. */
static void
load_owners(struct cluster *c, const struct ovsdb_idl *idl)
{
    const struct intentrec_owner *row;

    INTENTREC_OWNER_FOR_EACH(row, idl)
    {
        struct owner *owner = owners_find(&c->owners, row->name);

        owner->account = (struct account){
            .total = row->total,
            .count = row->count,
            .first = row->first,
            .second = row->second,
            .at = instant_msec(&c->copied, row->at) / 1000.0,
        };
        owner->stored = true;
    }
}

static void
load_rows(struct intent_db *idb)
{
    const struct intentrec_cojob *row;

    cluster_intent_begin(idb->cluster);
    INTENTREC_COJOB_FOR_EACH (row, idb->loop.idl) {
        load_cojob(idb->cluster, row);
    }
    cluster_intent_end(idb->cluster);
    if (!idb->leadership.active) {
        load_owners(idb->cluster, idb->loop.idl);
    }
    load_overrides(idb->overrides, idb->loop.idl);
    overrides_apply(idb->overrides, idb->cluster);
    log_stages(idb);
}

static struct leadership_view
get_view(const struct intent_db *idb)
{
    const struct ovsdb_idl *idl = idb->loop.idl;
    const struct intentrec_leader *leader = intentrec_leader_first(idl);

    return (struct leadership_view){
        .connected = ovsdb_idl_is_connected(idl),
        .loaded = ovsdb_idl_has_ever_connected(idl),
        .has_lock = ovsdb_idl_has_lock(idl),
        .lock_contended = ovsdb_idl_is_lock_contended(idl),
        .has_txn = idb->txn != NULL,
        .generation = leader ? leader->generation : 0,
        .is_own_row = leader && !strcmp(leader->address, idb->address),
        .now = time_wall_msec(),
        .answers = idb->answers.now,
        .msec = time_msec(),
    };
}

/* Writes the Leader row that takes the leadership.  The library adds an assert
 * of the lock to the transaction. */
static void
write_leader(struct intent_db *idb, int64_t lease_ms)
{
    const struct intentrec_leader *leader
        = intentrec_leader_first(idb->loop.idl);

    if (leader) {
        intentrec_leader_verify_generation(leader);
    } else {
        leader = intentrec_leader_insert(idb->txn);
    }
    intentrec_leader_set_generation(leader, idb->leadership.requested);
    intentrec_leader_set_address(leader, idb->address);
    intentrec_leader_set_since(leader, time_wall_msec());
    intentrec_leader_set_lease_ms(leader, lease_ms);
    ovsdb_idl_txn_add_comment(idb->txn, "stagecoach-controller: take the "
                              "lead");
}

/* A program that was stopped finds the connection as it was before; one that
 * has begun has no connection yet. */
static void
confirm(struct leadership *l, const struct leadership_view *view)
{
    if (l->ran_at && view->msec > l->ran_at + LATE_MS) {
        l->doubted_until = view->msec + ANSWERS_MS;
    }
    l->ran_at = view->msec;
    l->confirmed = view->answers && view->msec >= l->doubted_until;
    if (l->active) {
        poll_timer_wait_until(view->msec + LATE_MS / 2);
    }
}

enum leadership_action
leadership_run(struct leadership *l, const struct leadership_view *view)
{
    confirm(l, view);
    if (l->active) {
        if (l->newest > l->generation) {
            l->active = false;
            return LEADERSHIP_END_FENCED;
        } else if (view->connected && (view->lock_contended
                                       || view->generation > l->generation)) {
            l->active = false;
            return LEADERSHIP_END_REPLACED;
        }
    } else if (view->has_txn && view->has_lock && view->loaded) {
        if (l->requested && view->generation == l->requested
            && view->is_own_row) {
            l->active = true;
            l->generation = l->requested;
            l->requested = 0;
            return LEADERSHIP_BEGIN;
        }
        l->requested = MAX(view->generation, l->newest) + 1;
        l->requested = MAX(l->requested, view->now);
        return LEADERSHIP_REQUEST;
    }
    return LEADERSHIP_KEEP;
}

bool
leadership_may_write(const struct leadership *l,
                     const struct leadership_view *view)
{
    return l->active && view->connected && view->has_txn;
}

static void
update_leadership(struct intent_db *idb, int64_t lease_ms)
{
    const struct leadership_view view = get_view(idb);
    enum leadership_action action = leadership_run(&idb->leadership, &view);

    switch (action) {
    case LEADERSHIP_REQUEST:
        write_leader(idb, lease_ms);
        break;
    case LEADERSHIP_BEGIN:
        VLOG_INFO("%s: this controller leads, generation %"PRId64,
                  idb->remote, idb->leadership.generation);
        intent_db_event(idb, DECISION_LEAD, NULL, idb->address, "leader",
                        "leads, generation %"PRId64,
                        idb->leadership.generation);
        break;
    case LEADERSHIP_END_REPLACED:
    case LEADERSHIP_END_FENCED:
        overrides_forget_unstored(idb->overrides);
        VLOG_WARN("%s: %s, stepping down to standby", idb->remote,
                  action == LEADERSHIP_END_FENCED
                  ? "hosts have orders of a newer generation"
                  : "another controller leads");
        break;
    case LEADERSHIP_KEEP:
    default:
        break;
    }
}

/* Notes that the last transaction with accounts has succeeded. */
static void
note_stored(struct intent_db *idb)
{
    struct shash_node *node;

    if (idb->stored != idb->loop.cur_cfg) {
        idb->stored = idb->loop.cur_cfg;
        SHASH_FOR_EACH (node, &idb->cluster->owners) {
            struct owner *owner = node->data;

            owner->stored |= owner->written;
        }
    }
}

/* Returns true if the database has changed since it was loaded, or a new host
 * may match the host in a worker's row. */
static bool
is_stale(const struct intent_db *idb)
{
    return (idb->seqno != ovsdb_idl_get_seqno(idb->loop.idl)
            || idb->n_renamed != idb->cluster->n_renamed);
}

void
intent_db_run(struct intent_db *idb, int64_t lease_ms, int64_t generation)
{
    idb->txn = ovsdb_idl_loop_run(&idb->loop);
    note_stored(idb);
    answers_run(&idb->answers, ovsdb_idl_is_connected(idb->loop.idl),
                ovsdb_idl_get_seqno(idb->loop.idl));
    leader_search_run(&idb->search);
    if (is_stale(idb) && time_msec() >= idb->cooldown.until) {
        idb->seqno = ovsdb_idl_get_seqno(idb->loop.idl);
        idb->n_renamed = idb->cluster->n_renamed;
        if (ovsdb_idl_has_ever_connected(idb->loop.idl)) {
            long long now = time_msec(), began = time_usec();

            load_rows(idb);
            cooldown_after(&idb->cooldown, now, time_usec() - began);
        }
    }
    idb->leadership.newest = MAX(idb->leadership.newest, generation);
    update_leadership(idb, lease_ms);
    idb->cluster->generation =
        (idb->leadership.active ? idb->leadership.generation : 0);
}

/* Returns true if an override differs from the database. */
static bool
overrides_are_pending(const struct overrides *o)
{
    const struct override *ov;

    LIST_FOR_EACH (ov, node, &o->all) {
        if (!ov->stored) {
            return true;
        }
    }
    return false;
}

static const struct intentrec_override *
find_override_row(const struct ovsdb_idl *idl, int64_t id)
{
    const struct intentrec_override *row;

    INTENTREC_OVERRIDE_FOR_EACH (row, idl) {
        if (row->id == id) {
            return row;
        }
    }
    return NULL;
}

static void
write_override(const struct override *ov, struct ovsdb_idl *idl,
               struct ovsdb_idl_txn *txn)
{
    const struct intentrec_override *row = find_override_row(idl, ov->id);

    if (!row) {
        row = intentrec_override_insert(txn);
        intentrec_override_set_id(row, ov->id);
        intentrec_override_set_kind(row, override_names[ov->kind]);
        intentrec_override_set_target(row, ov->target);
        intentrec_override_set_actor(row, ov->actor);
        intentrec_override_set_reason(row, ov->reason);
        intentrec_override_set_at(row, ov->at);
        intentrec_override_set_until(row, ov->until);
    }
    intentrec_override_set_ended(row, ov->ended);
}

static void
delete_old_overrides(const struct overrides *o, struct ovsdb_idl *idl)
{
    const struct intentrec_override *row;
    int64_t last = 0;

    INTENTREC_OVERRIDE_FOR_EACH (row, idl) {
        last = MAX(last, row->id);
    }
    INTENTREC_OVERRIDE_FOR_EACH_SAFE (row, idl) {
        const struct override *ov = overrides_find(o, row->id);

        if (ov && override_is_expired(ov, last, time_msec())) {
            intentrec_override_delete(row);
        }
    }
}

/* Writes the overrides that differ from the database and deletes expired
 * ones. */
static void
write_overrides(const struct overrides *o, struct ovsdb_idl *idl,
                struct ovsdb_idl_txn *txn)
{
    const struct override *ov;

    LIST_FOR_EACH (ov, node, &o->all) {
        if (!ov->stored) {
            write_override(ov, idl, txn);
        }
    }
    delete_old_overrides(o, idl);
}

static bool
owners_are_pending(const struct cluster *c)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->owners) {
        if (!((const struct owner *) node->data)->stored) {
            return true;
        }
    }
    return false;
}

/* Writes the accounts that have changed, and deletes those of forgotten
 * owners. */
static void
write_owners(struct intent_db *idb)
{
    const struct instant now = instant_now();
    const struct intentrec_owner *row;
    struct shash_node *node;
    struct shash rows;

    owners_forget(&idb->cluster->owners, idb->cluster->owner_memory_s);
    shash_init(&rows);
    INTENTREC_OWNER_FOR_EACH_SAFE(row, idb->loop.idl)
    {
        if (shash_find(&idb->cluster->owners, row->name)) {
            shash_add(&rows, row->name, row);
        } else {
            intentrec_owner_delete(row);
        }
    }
    SHASH_FOR_EACH (node, &idb->cluster->owners) {
        struct owner *owner = node->data;

        if (owner->stored) {
            continue;
        }
        row = shash_find_data(&rows, node->name);
        if (!row) {
            row = intentrec_owner_insert(idb->txn);
            intentrec_owner_set_name(row, node->name);
        }
        intentrec_owner_set_at(row, now.epoch_ms - now.msec
                                        + owner->account.at * 1000);
        intentrec_owner_set_total(row, owner->account.total);
        intentrec_owner_set_count(row, owner->account.count);
        intentrec_owner_set_first(row, owner->account.first);
        intentrec_owner_set_second(row, owner->account.second);
        owner->written = true;
    }
    idb->loop.next_cfg++;
    shash_destroy(&rows);
}

static void
write_events(struct intent_db *idb)
{
    struct event *event;

    LIST_FOR_EACH (event, node, &idb->events) {
        const struct intentrec_event *row = intentrec_event_insert(idb->txn);

        intentrec_event_set_at(row, event->at);
        intentrec_event_set_actor(row, event->actor);
        intentrec_event_set_role(row, event->role);
        intentrec_event_set_what(row, event->what);
        intentrec_event_set_why(row, event->why);
    }
    while (idb->n_events) {
        drop_event(idb);
    }
}

static void
write_policy(struct intent_db *idb)
{
    const struct intentrec_policy *row = intentrec_policy_first(idb->loop.idl);

    if (row && !strcmp(row->hash, idb->policy->hash)
        && !strcmp(row->name, idb->policy->name)) {
        idb->policy = NULL;
        return;
    }
    if (!row) {
        row = intentrec_policy_insert(idb->txn);
    }
    intentrec_policy_set_name(row, idb->policy->name);
    intentrec_policy_set_text(row, idb->policy->text);
    intentrec_policy_set_hash(row, idb->policy->hash);
    intentrec_policy_set_since(row, time_wall_msec());
}

int64_t
intent_gc_end_time(const struct intentrec_cojob *row)
{
    int64_t at = row->began;

    for (size_t i = 0; i < row->n_jobs; i++) {
        at = MAX(at, row->jobs[i]->ended);
    }
    for (size_t i = 0; i < row->n_stages; i++) {
        at = MAX(at, row->stages[i]->ended);
    }
    return at;
}

static int
compare_ends(const void *a_, const void *b_)
{
    const struct intent_gc_cojob *a = a_, *b = b_;

    return (a->done_at != b->done_at ? (a->done_at > b->done_at ? -1 : 1)
            : a->ended > b->ended ? -1 : a->ended < b->ended);
}

size_t
intent_gc_keep(struct intent_gc_cojob *cojobs, size_t n, long long now)
{
    size_t keep = 0;

    if (n) {
        qsort(cojobs, n, sizeof *cojobs, compare_ends);
    }
    while (keep < MIN(n, INTENT_GC_MAX)
           && now <= cojobs[keep].done_at + INTENT_GC_MS) {
        keep++;
    }
    return keep;
}

static void
delete_finished(const struct intent_db *idb)
{
    const struct intentrec_cojob *row;
    struct intent_gc_cojob *cojobs = NULL;
    size_t n = 0, allocated = 0;

    INTENTREC_COJOB_FOR_EACH (row, idb->loop.idl) {
        const struct cojob *cojob = shash_find_data(&idb->cluster->cojobs,
                                                    row->name);

        if (!strcmp(row->state, "done") && cojob && cojob->done_at) {
            if (n >= allocated) {
                cojobs = x2nrealloc(cojobs, &allocated, sizeof *cojobs);
            }
            cojobs[n++] = (struct intent_gc_cojob){ row, cojob->done_at,
                                                    intent_gc_end_time(row) };
        }
    }
    for (size_t i = intent_gc_keep(cojobs, n, time_msec()); i < n; i++) {
        intentrec_cojob_delete(cojobs[i].row);
    }
    free(cojobs);
}

static void
end_inactive_stages(struct intent_db *idb, const struct cojob *cojob,
                    const struct intentrec_cojob *row, int64_t now)
{
    for (size_t i = 0; i < row->n_stages; i++) {
        const struct intentrec_stage *s = row->stages[i];
        const struct stage *stage = cojob_find_stage(cojob, s->rung, s->began);

        if (!strcmp(s->state, "running") && stage && stage->inactive) {
            char *name = stage_name(stage);

            intentrec_stage_set_state(s, "done");
            intentrec_stage_set_ended(s, now);
            intent_db_event(idb, DECISION_STAGE, NULL, name, "stage-inactive",
                            "none of its %" PRIuSIZE " jobs has had a process "
                            "for %d s",
                            stage->n_jobs, INACTIVE_MS / 1000);
            free(name);
        }
    }
}

static void
end_cojob(const struct intentrec_cojob *row, int64_t now)
{
    for (size_t i = 0; i < row->n_jobs; i++) {
        if (!strcmp(row->jobs[i]->state, "running")) {
            intentrec_job_set_state(row->jobs[i], "failed");
            intentrec_job_set_ended(row->jobs[i], now);
        }
    }
    intentrec_cojob_set_state(row, "done");
}

static int
compare_events(const void *a_, const void *b_)
{
    const struct intentrec_event *a = *(struct intentrec_event *const *) a_;
    const struct intentrec_event *b = *(struct intentrec_event *const *) b_;

    return a->at < b->at ? -1 : a->at > b->at;
}

/* Deletes the oldest events if there are too many, down to 90 %. */
static void
delete_events(const struct intent_db *idb)
{
    const struct intentrec_event *row, **rows;
    size_t n = 0, i = 0;

    INTENTREC_EVENT_FOR_EACH (row, idb->loop.idl) {
        n++;
    }
    if (n <= INTENT_GC_EVENTS) {
        return;
    }
    rows = xcalloc(n, sizeof *rows);
    INTENTREC_EVENT_FOR_EACH (row, idb->loop.idl) {
        rows[i++] = row;
    }
    qsort(rows, n, sizeof *rows, compare_events);
    for (i = 0; i < n - INTENT_GC_EVENTS * 9 / 10; i++) {
        intentrec_event_delete(rows[i]);
    }
    free(rows);
}

static void
collect_garbage(struct intent_db *idb, int64_t now)
{
    const struct intentrec_cojob *row;

    inactive_run(idb->cluster, time_msec());
    INTENTREC_COJOB_FOR_EACH (row, idb->loop.idl) {
        const struct cojob *cojob = shash_find_data(&idb->cluster->cojobs,
                                                    row->name);

        if (!cojob || strcmp(row->state, "running")) {
            continue;
        }
        end_inactive_stages(idb, cojob, row, now);
        if (cojob->inactive) {
            end_cojob(row, now);
            intent_db_event(idb, DECISION_STAGE, NULL, row->name,
                            "cojob-inactive",
                            "neither a stage nor a process for %d s",
                            INACTIVE_COJOB_MS / 1000);
        }
    }
    delete_finished(idb);
    delete_events(idb);
}

/* Writes what is pending and arranges to be woken up.  Overrides are written
 * at once, because the operator has already got a reply. */
void
intent_db_commit(struct intent_db *idb)
{
    const struct leadership_view view = get_view(idb);
    bool overrides = overrides_are_pending(idb->overrides);
    bool others =
        (idb->n_events || idb->policy || owners_are_pending(idb->cluster));

    if (leadership_may_write(&idb->leadership, &view)) {
        if (time_msec() >= idb->next_gc) {
            collect_garbage(idb, time_wall_msec());
            idb->next_gc = time_msec() + GC_MS;
        }
        poll_timer_wait_until(idb->next_gc);
        if (overrides || (others && time_msec() >= idb->next_write)) {
            write_events(idb);
            write_owners(idb);
            write_overrides(idb->overrides, idb->loop.idl, idb->txn);
            if (idb->policy) {
                write_policy(idb);
            }
            idb->next_write = time_msec() + WRITE_MS;
        } else if (others) {
            poll_timer_wait_until(idb->next_write);
        }
    }
    leader_search_wait(&idb->search);
    if (is_stale(idb)) {
        poll_timer_wait_until(idb->cooldown.until);
    }
    ovsdb_idl_loop_commit_and_wait(&idb->loop);
    idb->txn = NULL;
}

bool
intent_db_answers(const struct intent_db *idb)
{
    return idb->answers.now;
}

bool
intent_db_is_active(const struct intent_db *idb)
{
    return idb->leadership.active;
}

/* Returns true if this controller leads, and the database has confirmed it
 * lately. */
bool
intent_db_may_push(const struct intent_db *idb)
{
    return idb->leadership.active && idb->leadership.confirmed;
}

/* Returns the generation of this controller's leadership, 0 if it never
 * led. */
int64_t
intent_db_generation(const struct intent_db *idb)
{
    return idb->leadership.generation;
}

void
intent_db_raise(struct intent_db *idb, int64_t newest)
{
    idb->leadership.newest = MAX(idb->leadership.newest, newest);
}

const char *
intent_db_state(const struct intent_db *idb)
{
    return (idb->leadership.active ? "active"
            : !idb->answers.now ? "disconnected"
            : ovsdb_idl_is_lock_contended(idb->loop.idl) ? "standby"
            : "starting");
}

void
intent_db_set_policy(struct intent_db *idb, const struct policy *policy)
{
    idb->policy = policy;
}

void
intent_db_event(struct intent_db *idb, enum decision_kind kind,
                const char *operator, const char *subject, const char *what,
                const char *why, ...)
{
    struct event *event;
    va_list args;
    char *text;

    if (!idb->leadership.active) {
        return;
    }
    va_start(args, why);
    text = xvasprintf(why, args);
    va_end(args);
    VLOG_INFO("%s: %s: %s", what, subject, text);
    decision_log_append(idb->log, kind, subject,
                        operator ? operator : program_name, "%s: %s", what,
                        text);
    if (idb->n_events >= MAX_PENDING) {
        drop_event(idb);
    }
    event = xmalloc(sizeof *event);
    *event = (struct event) {
        .at = time_wall_msec(), .what = xstrdup(what),
        .actor = xstrdup(operator ? operator : "controller"),
        .role = operator ? "operator" : "controller",
        .why = xasprintf("%s: %s", subject, text),
    };
    ovs_list_push_back(&idb->events, &event->node);
    idb->n_events++;
    free(text);
}
