/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_ROWS_H
#define HOST_ROWS_H 1

/* Rows of this host in the database: what is desired, the time for which it is
 * valid, and what it reports.
 *
 * A copy of the host's row of Host_Wanted: the order must survive a loss of
 * the database connection, and a row of a controller that has been replaced
 * must be ignored.  The controller pushes the row on the telemetry stream, and
 * writes it to the database later, for agents that start without a controller.
 *
 * A host follows an order only while a controller confirms it: by another row,
 * or by a notification on the telemetry stream.  These arrive on different
 * connections, possibly from a controller that has not noticed its
 * replacement.  All therefore carry the generation of their controller.
 * The agent ignores generations older than the newest one seen, and a
 * notification extends only the order of its own generation.  Of a generation,
 * the agent takes rows of larger versions only, whichever way they come.
 *
 *    wanted_init(&wanted, idl, host);            // Before the IDL runs.
 *    error = wanted_push(&wanted, json, &lease, now);
 *    if (wanted_run(&wanted, idl, &lease, now)) {
 *        ...wanted_get(&wanted, name, &row) for each job...
 *    }
 *    lease_notify(&lease, generation, lease_ms, now);
 *    state = lease_until(&lease) > now ? "ordered" : "fair";
 *
 * Host_Reported has what must be visible without the telemetry stream: that
 * the host exists, the capacity of its port, and the version that it has
 * applied.  A database cluster takes few writes, whatever the number of hosts,
 * so the controller sets how often each host may write: the window.  A host
 * writes only changes, at most once per window.  In a window of more than a
 * second, the first write is delayed by a random time, because a change here
 * usually means a change on all hosts.
 *
 * "health" has facts about this host for "stagecoach doctor", which seldom
 * change:
 *
 *    kernel               Release of the running kernel.
 *    shim_NAME            NAME of SHIM_ABOUT, while the shim is connected.
 *    certificate          Common name of the agent's certificate.
 *    certificate_expires  Milliseconds since the epoch.
 *    tc                   Number of interfaces of --tc.
 *    check_NAME           Result of a check of doctor.h, unless it is "ok".
 *    what_NAME            The finding, a sentence.
 *    remedy_NAME          How to correct it.
 *
 * They are collected at the start, when the shim's facts change, and once a
 * minute.  This takes less than a millisecond: the agent must never be late.
 *
 *    report_init(&report, idl, host, now);       // Before the IDL runs.
 *    report_set_window(&report, ms, now);        // With each lease.
 *    host_facts_run(&facts, config, about, now);
 *    report_run(&report, idl, txn, &report_facts, now);
 *    report_wait(&report);
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "agent/actuate/actuator.h"
#include "openvswitch/shash.h"
#include "smap.h"
#include "wire/membership.h"
#include "wire/shim-protocol.h"

struct agent_config;
struct json;
struct ovsdb_idl;
struct ovsdb_idl_txn;

/* Limits of a lease, whatever a controller requests. */
#define LEASE_MIN_MS 100
#define LEASE_MAX_MS 600000

struct lease {
    int64_t newest;  /* Highest generation seen. */
    int64_t row;     /* Generation of the row, -1 without one. */
    int64_t held;    /* Generation to which 'until' applies. */
    long long until; /* End of the lease, on the clock of 'now'. */
};

void lease_init(struct lease *);

/* Handle a new or changed row, and a notification: the order of 'generation'
 * is valid for 'ms'.  Return false if they must be ignored, because a newer
 * generation has been seen. */
bool lease_row(struct lease *, int64_t generation, int64_t ms, long long now);
bool lease_notify(struct lease *, int64_t generation, int64_t ms,
                  long long now);

/* Returns the end of the lease, or 0. */
long long lease_until(const struct lease *);

#define WANTED_NO_DSCP UINT8_MAX

struct wanted {
    const char *host;
    unsigned int idl_seqno; /* Sequence number of the last check. */
    bool taken;             /* There is another row since then. */

    /* Values of the row that was applied last. */
    bool present; /* False before the first one. */
    int64_t version;
    int64_t generation;
    uint8_t dscp[SHIM_N_LEVELS]; /* DSCP of each level of the policy,
                                  * WANTED_NO_DSCP where it has none;
                                  * SHIM_LEVEL_DSCPS before the first
                                  * row. */
    struct actuator_wanted all;  /* Without 'until'; a value that the
                                  * controller does not set is the default. */
    bool trusts_environment;     /* Processes that are known by their
                                  * environment or ports only may have
                                  * priority: the policy's trust, true if the
                                  * database has no such column. */
    struct shash jobs;           /* Contains struct wanted_job, by name. */
};

/* 'host' must outlive it. */
void wanted_init(struct wanted *, struct ovsdb_idl *, const char *host);
void wanted_uninit(struct wanted *);

/* Takes the parameter of a notification "order".  Returns NULL, also if the
 * order is not newer than the one that is there, or a message that the caller
 * frees. */
char *wanted_push(struct wanted *, const struct json *, struct lease *,
                  long long now);
bool wanted_run(struct wanted *, const struct ovsdb_idl *, struct lease *,
                long long now);
bool wanted_get(const struct wanted *, const char *job, struct shim_slot *);

void wanted_get_default(const struct wanted *, struct shim_slot *);

/* Stores the owner of the job's cojob. */
void wanted_get_owner(const struct wanted *, const char *job,
                      struct membership_owner *);

struct report_facts {
    const char *state; /* "ordered" or "fair". */
    int64_t applied;
    uint64_t capacity_bps;     /* 0 if unknown. */
    const struct smap *health; /* Facts, and what is connected. */
};

/* Shortest window, and default. */
#define REPORT_MIN_MS 1000

struct report {
    const char *host;
    int64_t window; /* In ms, 0 before the first one is
                     * received. */
    long long next; /* Earliest time of the next write. */
    bool pending;   /* 'next' has been set for the pending
                     * change. */
    bool waiting;   /* A change waits for 'next'. */
};

/* 'host' must outlive the report. */
void report_init(struct report *, struct ovsdb_idl *, const char *host,
                 long long now);

void report_set_window(struct report *, int64_t ms, long long now);
bool report_is_due(struct report *, bool news, long long now);
void report_run(struct report *, const struct ovsdb_idl *,
                struct ovsdb_idl_txn *, const struct report_facts *,
                long long now);
void report_wait(const struct report *);

struct host_facts {
    struct smap map;
    char *about;    /* As of the last collection, or NULL. */
    long long next; /* time_msec() of the next collection. */
};

void host_facts_init(struct host_facts *);
void host_facts_uninit(struct host_facts *);

/* 'about' has the shim's lines, "" if they are unknown. */
void host_facts_run(struct host_facts *, const struct agent_config *,
                    const char *about, long long now);

#endif /* agent/host-rows.h */
