/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/host-rows.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/agent.h"
#include "agent/doctor/doctor.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "random.h"
#include "smap.h"
#include "timeval.h"
#include "util.h"
#include "wire/certificate.h"
#include "wire/daemon-options.h"
#include "wire/host-order.h"
#include "wire/json-get.h"

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
    bool named;   /* The order has the job. */
    bool has_uid; /* 'uid' is valid. */
    uint64_t uid; /* User that owns the cojob. */
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
    struct ovsdb_idl_condition condition =
        OVSDB_IDL_CONDITION_INIT(&condition);

    memset(w, 0, sizeof *w);
    w->host = host;
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

/* Stores in '*row' the defaults of a job that the order does not name. */
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

/* Returns the row of the job called 'name', which the order names. */
static struct shim_slot *
get_row(struct wanted *w, const char *name)
{
    struct wanted_job *job = get_job(w, name);

    job->named = true;
    return &job->row;
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
    w->all.congestion = (struct shim_congestion){
        .gamma =
            MAX(get_congestion_share(db, "gamma"), SHIM_CONGESTION_UNIT / 2),
        .beta = get_congestion_share(db, "beta"),
        .floor = get_congestion_share(db, "floor"),
    };
    w->trusts_environment = !db->trust || strcmp(db->trust, "registered");
    for (size_t i = 0; i < db->n_owner_uid; i++) {
        struct wanted_job *job = get_job(w, db->key_owner_uid[i]);

        job->has_uid = true;
        job->uid = db->value_owner_uid[i];
    }
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

/* Takes 'db' over and restarts 'lease', unless a newer order is there or a
 * newer generation has been seen. */
static void
offer_row(struct wanted *w, const struct hostsrec_host_wanted *db,
          struct lease *lease, long long now)
{
    if (w->present && db->generation == w->generation
        && db->version <= w->version) {
        return; /* Its order holds until its lease ends. */
    }
    if (lease_row(lease, db->generation, db->lease_ms, now)) {
        take_row(w, db);
        w->taken = true;
    } else {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl,
                     "ignoring order %" PRId64 " of generation %" PRId64 ", "
                     "older than %" PRId64,
                     db->version, db->generation, lease->newest);
    }
}

char *
wanted_push(struct wanted *w, const struct json *json, struct lease *lease,
            long long now)
{
    const struct json *version = json_get(json, "version", JSON_INTEGER);
    struct ovsdb_datum data[HOSTSREC_HOST_WANTED_N_COLUMNS];
    struct hostsrec_host_wanted row;
    char *error;

    if (!version || version->integer != HOST_ORDER_VERSION) {
        return xasprintf("order: version %lld of the message; expected %d; "
                         "the hosts database has the order, too",
                         version ? version->integer : 0, HOST_ORDER_VERSION);
    }
    error = host_order_read(json_get(json, "row", JSON_OBJECT), data);
    if (error) {
        return error;
    }
    for (size_t i = 0; i < HOSTSREC_HOST_WANTED_N_COLUMNS; i++) {
        hostsrec_host_wanted_columns[i].parse(&row.header_, &data[i]);
    }
    if (strcmp(row.host, w->host)) {
        error =
            xasprintf("order: for host %s; expected %s", row.host, w->host);
    } else {
        offer_row(w, &row, lease, now);
    }
    for (size_t i = 0; i < HOSTSREC_HOST_WANTED_N_COLUMNS; i++) {
        hostsrec_host_wanted_columns[i].unparse(&row.header_);
    }
    host_order_free(data);
    return error;
}

/* Reads the row in 'idl', if it has changed since the last time.  Returns
 * true if an order was taken over since then, pushed or from there. */
bool
wanted_run(struct wanted *w, const struct ovsdb_idl *idl, struct lease *lease,
           long long now)
{
    unsigned int seqno = ovsdb_idl_get_seqno(idl);
    const struct hostsrec_host_wanted *db;
    bool taken;

    if (seqno != w->idl_seqno) {
        w->idl_seqno = seqno;
        db = hostsrec_host_wanted_first(idl); /* It has no other. */
        if (db) {
            offer_row(w, db, lease, now);
        }
    }
    taken = w->taken;
    w->taken = false;
    return taken;
}

/* Stores the desired row of the job in '*row'.  Returns false if the
 * controller does not name the job; then the row is the default one. */
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

    *owner = (struct membership_owner){
        .trusts_environment = w->trusts_environment,
        .has_uid = job && job->has_uid,
        .uid = job ? job->uid : 0,
    };
}

/* Reports. */

#define JITTER_MS                                \
    250 /* Random addition, so that hosts do not \
         * write together. */
#define MAX_WINDOW_MS                               \
    600000 /* Longest window, whatever a controller \
            * requests. */

/* Time after the start that an agent waits for a controller's window. */
#define NO_WINDOW_MS 2000

/* Monitors only the row of 'host' in 'idl'. */
void
report_init(struct report *r, struct ovsdb_idl *idl, const char *host,
            long long now)
{
    struct ovsdb_idl_condition condition =
        OVSDB_IDL_CONDITION_INIT(&condition);

    memset(r, 0, sizeof *r);
    r->host = host;
    r->next = now + NO_WINDOW_MS;
    ovsdb_idl_add_table(idl, &hostsrec_table_host_reported);
    for (size_t i = 0; i < HOSTSREC_HOST_REPORTED_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &hostsrec_host_reported_columns[i]);
        if (&hostsrec_host_reported_columns[i]
            != &hostsrec_host_reported_col_host) {
            ovsdb_idl_omit_alert(idl, &hostsrec_host_reported_columns[i]);
        }
    }
    hostsrec_host_reported_add_clause_host(&condition, OVSDB_F_EQ, host);
    ovsdb_idl_set_condition(idl, &hostsrec_table_host_reported, &condition);
    ovsdb_idl_condition_destroy(&condition);
}

static bool
is_written(const struct hostsrec_host_reported *row,
           const struct report_facts *facts)
{
    int64_t port = row->n_ports ? row->value_ports[0] : 0;

    return row->applied == facts->applied && port == facts->capacity_bps
           && !strcmp(row->state, facts->state)
           && !strcmp(row->agent, STAGECOACH_VERSION)
           && smap_equal(&row->health, facts->health);
}

static void
write_row(const struct hostsrec_host_reported *row,
          const struct report_facts *facts)
{
    const char *port = "uplink";
    int64_t capacity = facts->capacity_bps;

    if (row->applied != facts->applied) {
        hostsrec_host_reported_set_applied(row, facts->applied);
        hostsrec_host_reported_set_applied_at(row, time_wall_msec());
    }
    hostsrec_host_reported_set_agent(row, STAGECOACH_VERSION);
    hostsrec_host_reported_set_state(row, facts->state);
    hostsrec_host_reported_set_ports(row, &port, &capacity, capacity > 0);
    hostsrec_host_reported_set_health(row, facts->health);
}

/* Limits writes to one per 'ms' or REPORT_MIN_MS, whichever is longer, from
 * 'now' on. */
void
report_set_window(struct report *r, int64_t ms, long long now)
{
    ms = MIN(MAX(ms, REPORT_MIN_MS), MAX_WINDOW_MS);
    if (r->window == ms) {
        return;
    }
    if (!r->window) {
        r->next = now; /* The first write waited for this. */
    }
    r->window = ms;
    r->pending = false;
}

/* Returns true if the row must be written at 'now'.  'news' is true if it has
 * changed. */
bool
report_is_due(struct report *r, bool news, long long now)
{
    if (news && !r->pending && r->window > REPORT_MIN_MS) {
        r->next = MAX(r->next, now + random_range(r->window));
    }
    r->pending = news;
    if (!news || now < r->next) {
        return false;
    }
    r->next = now + MAX(r->window, REPORT_MIN_MS) + random_range(JITTER_MS);
    r->pending = false;
    return true;
}

/* Writes 'facts' to the host's row in 'idl' with 'txn', which may be NULL.
 * The controller creates the row: the certificate of an agent allows it to
 * change its own row only. */
void
report_run(struct report *r, const struct ovsdb_idl *idl,
           struct ovsdb_idl_txn *txn, const struct report_facts *facts,
           long long now)
{
    const struct hostsrec_host_reported *row;

    r->waiting = false;
    if (!txn || !ovsdb_idl_has_ever_connected(idl)) {
        return;
    }
    row = hostsrec_host_reported_first(idl); /* It has no other. */
    if (report_is_due(r, row && !is_written(row, facts), now)) {
        write_row(row, facts);
        ovsdb_idl_txn_add_comment(txn, "agent %s: %s, applied %" PRId64,
                                  r->host, facts->state, facts->applied);
    }
    r->waiting = r->pending;
}

void
report_wait(const struct report *r)
{
    if (r->waiting) {
        poll_timer_wait_until(r->next);
    }
}

/* Facts about the host. */

#define COLLECT_MS 60000 /* Between collections of facts. */

void
host_facts_init(struct host_facts *f)
{
    *f = (struct host_facts){ .next = LLONG_MIN };
    smap_init(&f->map);
}

void
host_facts_uninit(struct host_facts *f)
{
    smap_destroy(&f->map);
    free(f->about);
}

static void
add_fact(struct smap *map, const char *kind, const char *name,
         const char *value)
{
    char *key = xasprintf("%s_%s", kind, name);

    smap_replace(map, key, value);
    free(key);
}

/* Adds each line "NAME VALUE" of the shim. */
static void
add_shim(struct smap *map, const char *about)
{
    char *text = xstrdup(about), *rest = text, *line;

    while ((line = strsep(&rest, "\n"))) {
        char *value = strchr(line, ' ');

        if (value) {
            *value++ = '\0';
            add_fact(map, "shim", line, value);
        }
    }
    free(text);
}

static void
add_certificate(struct smap *map)
{
    const char *file = tls_file('c');
    struct certificate cert;

    if (file) {
        char *error = certificate_read(file, &cert);

        if (!error) {
            smap_replace(map, "certificate", cert.name);
            smap_add_format(map, "certificate_expires", "%" PRId64,
                            cert.expires * 1000);
        }
        free(error);
        free(cert.name);
    }
}

static void
add_findings(struct smap *map, const struct agent_config *c)
{
    const struct doctor_config config = {
        .root = "",
        .rundir = c->rundir,
        .cgroup = c->cgroup,
        .quick = true,
    };
    struct doctor *d = doctor_examine(&config);

    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];

        if (f->result != DOCTOR_OK) {
            add_fact(map, "check", f->check, doctor_result_names[f->result]);
            add_fact(map, "what", f->check, f->what);
            add_fact(map, "remedy", f->check, f->mend ? f->mend : "");
        }
    }
    doctor_destroy(d);
}

void
host_facts_run(struct host_facts *f, const struct agent_config *c,
               const char *about, long long now)
{
    struct utsname uts;

    if (now < f->next && f->about && !strcmp(f->about, about)) {
        return;
    }
    f->next = now + COLLECT_MS;
    free(f->about);
    f->about = xstrdup(about);
    smap_clear(&f->map);
    if (!uname(&uts)) {
        smap_add(&f->map, "kernel", uts.release);
    }
    if (c->n_tc) {
        smap_add_format(&f->map, "tc", "%" PRIuSIZE, c->n_tc);
    }
    add_shim(&f->map, about);
    add_certificate(&f->map);
    add_findings(&f->map, c);
}
