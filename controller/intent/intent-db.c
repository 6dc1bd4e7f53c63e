/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-db.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/intent/intent-events.h"
#include "wire/intent-idl.h"
#include "controller/intent/intent-gc.h"
#include "controller/ovsdb/leader-search.h"
#include "controller/intent/overrides-db.h"
#include "controller/model/overrides.h"
#include "controller/model/inactive.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(intent_db);

/* The name of the lock; of no meaning but to controllers. */
#define LOCK_NAME "stagecoach"

/* A peer that is silent for so long is probed. */
#define PROBE_MS 5000

/* Time between two transactions, so that a storm of events does not become
 * one of writes. */
#define WRITE_MS 200

/* Time between two looks for what nobody else ends or removes. */
#define TIDY_MS 1000

struct intent_db {
    struct ovsdb_idl_loop loop;
    struct leader_search search;
    struct ovsdb_idl_txn *txn;  /* Of this round, NULL if one is on its way. */
    struct cluster *cluster;
    struct overrides *overrides;
    struct decision_log *log;
    char *remote;
    char *address;              /* Where agents reach this controller. */
    unsigned int seqno;         /* Of the database, last taken in. */

    bool active;
    int64_t generation;         /* That we took, 0 if we never led. */
    int64_t newest;             /* The newest that has told hosts anything. */
    int64_t asked;              /* Generation of the transaction that takes
                                 * leadership, 0 if there is none. */

    struct intent_events *events;       /* That wait to be written. */
    char *policy_name, *policy_text, *policy_hash;      /* To be written. */
    bool policy_dirty;
    long long next_write;       /* time_msec() of the next transaction. */
    long long next_tidy;        /* time_msec() of the next look. */
};

/* Follows the database at 'remote' into 'cluster' and 'overrides'.  'address'
 * is written to the Leader table; events go to 'log' too. */
struct intent_db *
intent_db_create(const char *remote, const char *address,
                 struct cluster *cluster, struct overrides *overrides,
                 struct decision_log *log)
{
    struct intent_db *idb = xzalloc(sizeof *idb);

    idb->loop.idl = ovsdb_idl_create(remote, &intentrec_idl_class, true,
                                     true);
    ovsdb_idl_set_probe_interval(idb->loop.idl, PROBE_MS);
    ovsdb_idl_set_lock(idb->loop.idl, LOCK_NAME);
    leader_search_init(&idb->search, remote);
    idb->cluster = cluster;
    idb->overrides = overrides;
    idb->log = log;
    idb->remote = xstrdup(remote);
    idb->address = xstrdup(address);
    idb->events = intent_events_create();
    return idb;
}

void
intent_db_destroy(struct intent_db *idb)
{
    if (!idb) {
        return;
    }
    intent_events_destroy(idb->events);
    ovsdb_idl_loop_destroy(&idb->loop);
    leader_search_uninit(&idb->search);
    free(idb->policy_name);
    free(idb->policy_text);
    free(idb->policy_hash);
    free(idb->remote);
    free(idb->address);
    free(idb);
}

/* The database's members are at 'remote' now. */
void
intent_db_set_remote(struct intent_db *idb, const char *remote)
{
    leader_search_set_remote(&idb->search, remote);
}

static enum role
role_from_string(const char *s)
{
    return (!strcmp(s, "server") ? ROLE_SERVER
            : !strcmp(s, "peer") ? ROLE_PEER
            : ROLE_WORKER);
}

static void
take_in_stage(struct cojob *cojob, const struct intentrec_stage *row)
{
    bool running = !strcmp(row->state, "running");
    struct stage *stage;

    stage = cojob_put_stage(cojob, row->rung, row->began,
                            running ? 0 : MAX(row->ended, 1),
                            row->iterations);
    for (size_t i = 0; stage && i < row->n_jobs; i++) {
        struct job *job = shash_find_data(&cojob->jobs, row->jobs[i]->name);

        if (job) {
            stage_put_job(stage, job);
        }
    }
}

static void
take_in_cojob(struct cluster *c, const struct intentrec_cojob *row)
{
    struct cojob *cojob = cluster_put_cojob(c, row->name, row->weight,
                                            !strcmp(row->state, "running"));

    for (size_t i = 0; i < row->n_jobs; i++) {
        const struct intentrec_job *j = row->jobs[i];
        struct job *job = cojob_put_job(c, cojob, j->name,
                                        !strcmp(j->state, "running"),
                                        j->began, j->model_bytes);

        for (size_t k = 0; k < j->n_workers; k++) {
            job_put_worker(c, job, j->workers[k]->host,
                           role_from_string(j->workers[k]->role));
        }
    }
    for (size_t i = 0; i < row->n_stages; i++) {
        take_in_stage(cojob, row->stages[i]);
    }
}

static void OVS_PRINTF_FORMAT(4, 5)
stage_event(struct intent_db *idb, const struct stage *stage,
            const char *what, const char *why, ...)
{
    char *name = xasprintf("%s/%d", stage->cojob_name, stage->rung);
    char *text;
    va_list args;

    va_start(args, why);
    text = xvasprintf(why, args);
    va_end(args);
    intent_db_event(idb, DECISION_STAGE, name, what, "%s", text);
    free(text);
    free(name);
}

/* Makes events of the stages that began or ended. */
static void
log_stages(struct intent_db *idb)
{
    struct stage **running, *stage;
    size_t n;

    running = cluster_running_stages(idb->cluster, &n);
    for (size_t i = 0; i < n; i++) {
        if (!running[i]->begin_logged) {
            running[i]->begin_logged = true;
            stage_event(idb, running[i], "stage-begin",
                        "%"PRIuSIZE" jobs to iteration %"PRId64,
                        running[i]->n_jobs, running[i]->iterations);
        }
    }
    free(running);
    LIST_FOR_EACH (stage, node, &idb->cluster->ended) {
        if (stage->end_logged) {
            break;
        }
        stage->end_logged = true;
        stage_event(idb, stage, "stage-end", "after %.3f s",
                    (stage->ended - stage->began) / 1000.0);
    }
}

static void
take_in(struct intent_db *idb)
{
    const struct intentrec_cojob *row;

    cluster_intent_begin(idb->cluster);
    INTENTREC_COJOB_FOR_EACH (row, idb->loop.idl) {
        take_in_cojob(idb->cluster, row);
    }
    cluster_intent_end(idb->cluster);
    overrides_db_read(idb->overrides, idb->loop.idl);
    overrides_apply(idb->overrides, idb->cluster);
    log_stages(idb);
}

static void
take_leadership(struct intent_db *idb, int64_t lease_ms)
{
    const struct intentrec_leader *leader
        = intentrec_leader_first(idb->loop.idl);

    if (leader && idb->asked && leader->generation == idb->asked
        && !strcmp(leader->address, idb->address)) {
        idb->active = true;
        idb->generation = idb->asked;
        idb->asked = 0;
        VLOG_INFO("%s: this controller leads, generation %"PRId64,
                  idb->remote, idb->generation);
        intent_db_event(idb, DECISION_LEAD, idb->address, "leader",
                        "leads, generation %"PRId64, idb->generation);
        return;
    }
    if (!leader) {
        leader = intentrec_leader_insert(idb->txn);
        idb->asked = idb->newest + 1;
    } else {
        intentrec_leader_verify_generation(leader);
        idb->asked = MAX(leader->generation, idb->newest) + 1;
    }
    intentrec_leader_set_generation(leader, idb->asked);
    intentrec_leader_set_address(leader, idb->address);
    intentrec_leader_set_since(leader, time_wall_msec());
    intentrec_leader_set_lease_ms(leader, lease_ms);
    ovsdb_idl_txn_add_comment(idb->txn, "stagecoach-controller: take the "
                              "lead");
}

/* This controller no longer leads. */
static void
step_down(struct intent_db *idb, const char *why)
{
    idb->active = false;
    overrides_forget_unstored(idb->overrides);
    VLOG_WARN("%s: %s, this one only follows", idb->remote, why);
}

static void
update_leadership(struct intent_db *idb, int64_t lease_ms)
{
    bool connected = ovsdb_idl_is_connected(idb->loop.idl);
    bool locked = ovsdb_idl_has_lock(idb->loop.idl);
    const struct intentrec_leader *leader;

    if (idb->active && idb->newest > idb->generation) {
        step_down(idb, "hosts have orders of a newer generation");
    } else if (idb->active && connected) {
        leader = intentrec_leader_first(idb->loop.idl);
        if (ovsdb_idl_is_lock_contended(idb->loop.idl)
            || (leader && leader->generation > idb->generation)) {
            step_down(idb, "another controller leads");
        }
    } else if (!idb->active && idb->txn && locked
               && ovsdb_idl_has_ever_connected(idb->loop.idl)) {
        take_leadership(idb, lease_ms);
    }
}

/* Takes in what changed and, if there is no other, the leadership.  'lease_ms'
 * is only for the Leader table. */
void
intent_db_run(struct intent_db *idb, int64_t lease_ms)
{
    idb->txn = ovsdb_idl_loop_run(&idb->loop);
    if (leader_search_run(&idb->search, idb->loop.idl)) {
        ovsdb_idl_set_probe_interval(idb->loop.idl, PROBE_MS);
    }
    if (idb->seqno != ovsdb_idl_get_seqno(idb->loop.idl)) {
        idb->seqno = ovsdb_idl_get_seqno(idb->loop.idl);
        if (ovsdb_idl_has_ever_connected(idb->loop.idl)) {
            take_in(idb);
        }
    }
    update_leadership(idb, lease_ms);
}

/* Hosts have been told something by 'generation', as the hosts database has
 * it: that goes before what this database says, which may be an older one that
 * was restored, or out of reach while somebody else leads.  Hosts obey nobody
 * who is older. */
void
intent_db_note_generation(struct intent_db *idb, int64_t generation)
{
    idb->newest = MAX(idb->newest, generation);
}

static void
write_policy(struct intent_db *idb)
{
    const struct intentrec_policy *row
        = intentrec_policy_first(idb->loop.idl);

    if (row && !strcmp(row->hash, idb->policy_hash)
        && !strcmp(row->name, idb->policy_name)) {
        idb->policy_dirty = false;
        return;
    }
    if (!row) {
        row = intentrec_policy_insert(idb->txn);
    }
    intentrec_policy_set_name(row, idb->policy_name);
    intentrec_policy_set_text(row, idb->policy_text);
    intentrec_policy_set_hash(row, idb->policy_hash);
    intentrec_policy_set_since(row, time_wall_msec());
}

static void
tidy(struct intent_db *idb)
{
    int64_t now = time_wall_msec();

    if (time_msec() >= idb->next_tidy) {
        inactive_run(idb->cluster, now);
        intent_gc(idb, idb->loop.idl, idb->cluster, now);
        intent_events_prune(idb->loop.idl);
        idb->next_tidy = time_msec() + TIDY_MS;
    }
    poll_timer_wait_until(idb->next_tidy);
}

/* Writes what is to be written and arranges to be woken. */
void
intent_db_commit(struct intent_db *idb)
{
    bool connected = ovsdb_idl_is_connected(idb->loop.idl);
    bool wished = overrides_db_is_behind(idb->overrides);
    bool pending;

    if (connected && idb->active && idb->txn) {
        tidy(idb);
    }
    pending = connected && (intent_events_waiting(idb->events)
                            || wished || idb->policy_dirty);
    if (pending && idb->active && idb->txn) {
        /* Who wished something was told that it is so. */
        if (wished || time_msec() >= idb->next_write) {
            intent_events_write(idb->events, idb->loop.idl, idb->txn);
            overrides_db_write(idb->overrides, idb->loop.idl, idb->txn,
                               time_wall_msec());
            if (idb->policy_dirty) {
                write_policy(idb);
            }
            idb->next_write = time_msec() + WRITE_MS;
        } else {
            poll_timer_wait_until(idb->next_write);
        }
    }
    leader_search_wait(&idb->search);
    ovsdb_idl_loop_commit_and_wait(&idb->loop);
    idb->txn = NULL;
}

/* True while the database answers. */
bool
intent_db_is_connected(const struct intent_db *idb)
{
    return ovsdb_idl_is_connected(idb->loop.idl);
}

/* True while this controller is the one that writes. */
bool
intent_db_is_active(const struct intent_db *idb)
{
    return idb->active;
}

/* The generation of this controller's leadership, 0 if it never led. */
int64_t
intent_db_generation(const struct intent_db *idb)
{
    return idb->generation;
}

/* "active", "standby" (another controller leads), "starting" or
 * "disconnected". */
const char *
intent_db_state(const struct intent_db *idb)
{
    return (idb->active ? "active"
            : !ovsdb_idl_is_connected(idb->loop.idl) ? "disconnected"
            : ovsdb_idl_is_lock_contended(idb->loop.idl) ? "standby"
            : "starting");
}

/* Lets the database say which policy is in force. */
void
intent_db_set_policy(struct intent_db *idb, const struct policy *policy)
{
    free(idb->policy_name);
    free(idb->policy_text);
    free(idb->policy_hash);
    idb->policy_name = xstrdup(policy->name);
    idb->policy_text = xstrdup(policy->text);
    idb->policy_hash = xstrdup(policy->hash);
    idb->policy_dirty = true;
}

/* Notes 'text', which is taken over, wherever it belongs. */
static void
note(struct intent_db *idb, enum decision_kind kind, const char *actor,
     const char *who, const char *subject, const char *what, char *text)
{
    VLOG_INFO("%s: %s: %s", what, subject, text);
    decision_log_append(idb->log, kind, subject, actor, "%s: %s", what,
                        text);
    intent_events_add(idb->events, who, what,
                      xasprintf("%s: %s", subject, text));
    free(text);
}

/* Notes that 'what' happened to 'subject', and why, for the Event table and
 * the log.  A follower notes nothing, because the leader does. */
void
intent_db_event(struct intent_db *idb, enum decision_kind kind,
                const char *subject, const char *what, const char *why, ...)
{
    va_list args;

    if (idb->active) {
        va_start(args, why);
        note(idb, kind, program_name, "controller", subject, what,
             xvasprintf(why, args));
        va_end(args);
    }
}

/* The same of what a person, 'who', wanted. */
void
intent_db_operator_event(struct intent_db *idb, const char *who, const char *subject,
               const char *what, const char *why, ...)
{
    va_list args;

    if (idb->active) {
        va_start(args, why);
        note(idb, DECISION_OPERATOR, who, who, subject, what,
             xvasprintf(why, args));
        va_end(args);
    }
}
