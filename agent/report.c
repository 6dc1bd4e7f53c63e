/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/report.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/agent.h"
#include "agent/doctor/doctor.h"
#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "random.h"
#include "smap.h"
#include "timeval.h"
#include "util.h"
#include "wire/certificate.h"
#include "wire/daemon-options.h"
#include "wire/hosts-idl.h"

#define JITTER_MS 250           /* Random addition, so that hosts do not
                                 * write together. */
#define MAX_WINDOW_MS 600000    /* Longest window, whatever a controller
                                 * requests. */

/* Time after the start that an agent waits for a controller's window. */
#define NO_WINDOW_MS 2000

/* Monitors only the row of 'host' in 'idl'. */
void
report_init(struct report *r, struct ovsdb_idl *idl, const char *host,
            long long now)
{
    struct ovsdb_idl_condition condition
        = OVSDB_IDL_CONDITION_INIT(&condition);

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
        r->next = now;          /* The first write waited for this. */
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
        ovsdb_idl_txn_add_comment(txn, "agent %s: %s, applied %"PRId64,
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
