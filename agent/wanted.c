/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/wanted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "util.h"
#include "wire/hosts-idl.h"

VLOG_DEFINE_THIS_MODULE(wanted);

void
lease_init(struct lease *lease)
{
    lease->newest = lease->row = lease->held = -1;
    lease->until = 0;
}

bool
lease_notify(struct lease *lease, int64_t generation, int64_t ms,
             long long now)
{
    if (generation < 0 || generation < lease->newest) {
        return false;
    }
    lease->newest = lease->held = generation;
    lease->until = now + MIN(MAX(ms, LEASE_MIN_MS), LEASE_MAX_MS);
    return true;
}

bool
lease_row(struct lease *lease, int64_t generation, int64_t ms, long long now)
{
    if (!lease_notify(lease, generation, ms, now)) {
        return false;
    }
    lease->row = generation;
    return true;
}

long long
lease_until(const struct lease *lease)
{
    return lease->row >= 0 && lease->row == lease->held ? lease->until : 0;
}

struct wanted_job {
    struct shim_slot row;
    bool named;                 /* The order has the job. */
    bool has_uid;               /* 'uid' is valid. */
    uint64_t uid;               /* User that owns the cojob. */
};

static void
set_dscps(struct wanted *w, const uint8_t dscps[SHIM_N_LEVELS])
{
    struct actuator_wanted *all = &w->all;

    memcpy(w->dscp, dscps, sizeof w->dscp);
    all->default_dscp = dscps[SHIM_LEVEL_DEFAULT];
    all->control = (struct shim_control){ .dscp = dscps[SHIM_LEVEL_CONTROL] };
    all->levels = 0;
    for (int i = 0; i < SHIM_N_LEVELS; i++) {
        if (dscps[i] != WANTED_NO_DSCP) {
            all->levels |= 1u << i;
            if (i != SHIM_LEVEL_CONTROL && i != SHIM_LEVEL_DEFAULT) {
                all->control.levels |= UINT64_C(1) << dscps[i];
            }
        }
    }
}

/* Prepares 'idl' to show the row of 'host' and no other. */
void
wanted_init(struct wanted *w, struct ovsdb_idl *idl, const char *host)
{
    static const uint8_t dscps[] = SHIM_LEVEL_DSCPS;
    struct ovsdb_idl_condition condition
        = OVSDB_IDL_CONDITION_INIT(&condition);

    memset(w, 0, sizeof *w);
    w->trusts_environment = true;
    w->all.min_share = SHIM_MIN_SHARE_DEFAULT;
    memset(&w->all.congestion, 0xff, sizeof w->all.congestion);
    set_dscps(w, dscps);
    shash_init(&w->jobs);

    ovsdb_idl_add_table(idl, &hostsrec_table_host_wanted);
    for (size_t i = 0; i < HOSTSREC_HOST_WANTED_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &hostsrec_host_wanted_columns[i]);
    }
    hostsrec_host_wanted_add_clause_host(&condition, OVSDB_F_EQ, host);
    ovsdb_idl_set_condition(idl, &hostsrec_table_host_wanted, &condition);
    ovsdb_idl_condition_destroy(&condition);
}

void
wanted_uninit(struct wanted *w)
{
    shash_destroy_free_data(&w->jobs);
}

/* Stores in '*row' what a job has that no order has. */
void
wanted_get_default(const struct wanted *w, struct shim_slot *row)
{
    memset(row, 0, sizeof *row);
    row->level = SHIM_LEVEL_DEFAULT;
    row->dscp = w->all.default_dscp;
    row->rank = UINT32_MAX;
    row->weight = 1000;
}

/* Returns the job called 'name', a new one if it is missing. */
static struct wanted_job *
get_job(struct wanted *w, const char *name)
{
    struct wanted_job *job = shash_find_data(&w->jobs, name);

    if (!job) {
        job = xzalloc(sizeof *job);
        wanted_get_default(w, &job->row);
        shash_add(&w->jobs, name, job);
    }
    return job;
}

/* The same for a job that the order has. */
static struct shim_slot *
get_row(struct wanted *w, const char *name)
{
    struct wanted_job *job = get_job(w, name);

    job->named = true;
    return &job->row;
}

static void
take_owners(struct wanted *w, const struct hostsrec_host_wanted *db)
{
    w->trusts_environment = !db->trust || strcmp(db->trust, "registered");
    for (size_t i = 0; i < db->n_owner_uid; i++) {
        struct wanted_job *job = get_job(w, db->key_owner_uid[i]);

        job->has_uid = true;
        job->uid = db->value_owner_uid[i];
    }
}

static uint32_t
get_congestion_share(const struct hostsrec_host_wanted *db, const char *key)
{
    for (size_t i = 0; i < db->n_congestion; i++) {
        if (!strcmp(db->key_congestion[i], key)) {
            return round(MIN(MAX(db->value_congestion[i], 0), 1)
                         * SHIM_CONGESTION_UNIT);
        }
    }
    return SHIM_CONGESTION_DEFAULT;
}

static struct shim_congestion
get_congestion(const struct hostsrec_host_wanted *db)
{
    return (struct shim_congestion) {
        .gamma = MAX(get_congestion_share(db, "gamma"),
                     SHIM_CONGESTION_UNIT / 2),
        .beta = get_congestion_share(db, "beta"),
        .floor = get_congestion_share(db, "floor"),
    };
}

static void
take_dscps(struct wanted *w, const struct hostsrec_host_wanted *db)
{
    uint8_t dscps[SHIM_N_LEVELS];

    memset(dscps, WANTED_NO_DSCP, sizeof dscps);
    dscps[SHIM_LEVEL_DEFAULT] = 0;
    dscps[SHIM_LEVEL_CONTROL] = SHIM_CONTROL_DSCP;
    for (size_t i = 0; i < db->n_level_dscp; i++) {
        int64_t level = db->key_level_dscp[i];

        if (level != SHIM_LEVEL_CONTROL || db->value_level_dscp[i]) {
            dscps[level] = db->value_level_dscp[i];
        }
    }
    set_dscps(w, dscps);
}

static void
take_row(struct wanted *w, const struct hostsrec_host_wanted *db)
{
    shash_clear_free_data(&w->jobs);
    w->present = true;
    w->version = db->version;
    w->generation = db->generation;
    take_dscps(w, db);
    w->all.min_share =
        db->n_min_share
            ? round(MIN(MAX(db->min_share[0], 0), 1) * SHIM_MIN_SHARE_UNIT)
            : SHIM_MIN_SHARE_DEFAULT;
    w->all.congestion = get_congestion(db);
    take_owners(w, db);
    for (size_t i = 0; i < db->n_level; i++) {
        struct shim_slot *row = get_row(w, db->key_level[i]);

        /* Order level 0 is the first queue after that for control. */
        row->level = MIN(db->value_level[i] + 1, SHIM_LEVEL_DEFAULT);
        row->dscp =
            (w->dscp[row->level] == WANTED_NO_DSCP ? w->all.default_dscp
                                                   : w->dscp[row->level]);
    }
    for (size_t i = 0; i < db->n_rank; i++) {
        get_row(w, db->key_rank[i])->rank = MIN(db->value_rank[i], UINT32_MAX);
    }
    for (size_t i = 0; i < db->n_weight; i++) {
        double weight = db->value_weight[i] * 1000;

        get_row(w, db->key_weight[i])->weight =
            weight >= 1 ? MIN(round(weight), 1e9) : 1;
    }
}

/* Looks at the row in 'idl'.  If it has changed since the last look, restarts
 * 'lease' and takes the row over, unless it is of an older generation than has
 * been seen.  Returns true if it was taken over. */
bool
wanted_run(struct wanted *w, const struct ovsdb_idl *idl, struct lease *lease,
           long long now)
{
    unsigned int seqno = ovsdb_idl_get_seqno(idl);
    const struct hostsrec_host_wanted *db;

    if (seqno == w->idl_seqno) {
        return false;
    }
    w->idl_seqno = seqno;
    db = hostsrec_host_wanted_first(idl); /* It has no other. */
    if (!db
        || (w->present && db->version == w->version
            && db->generation == w->generation)) {
        return false;           /* Its order holds until its lease ends. */
    }
    if (!lease_row(lease, db->generation, db->lease_ms, now)) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "ignoring order %"PRId64" of generation %"PRId64", "
                     "older than %"PRId64, db->version, db->generation,
                     lease->newest);
        return false;
    }
    take_row(w, db);
    return true;
}

/* Stores in '*row' what is wanted for 'job'.  Returns false if the controller
 * does not name it, in which case that is the default. */
bool
wanted_get(const struct wanted *w, const char *name, struct shim_slot *row)
{
    const struct wanted_job *job = shash_find_data(&w->jobs, name);

    if (job) {
        *row = job->row;
    } else {
        wanted_get_default(w, row);
    }
    return job && job->named;
}

void
wanted_get_owner(const struct wanted *w, const char *name,
                 struct membership_owner *owner)
{
    const struct wanted_job *job = shash_find_data(&w->jobs, name);

    *owner = (struct membership_owner) {
        .trusts_environment = w->trusts_environment,
        .has_uid = job && job->has_uid, .uid = job ? job->uid : 0,
    };
}
