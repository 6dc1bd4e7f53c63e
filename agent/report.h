/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_REPORT_H
#define AGENT_REPORT_H 1

/* State of this host in the database.
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
 *    shim_NAME            NAME of shim/about.h, while the shim is connected.
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

#include "smap.h"

struct agent_config;
struct ovsdb_idl;
struct ovsdb_idl_txn;

struct report_facts {
    const char *state; /* "ordered" or "fair". */
    int64_t applied;
    uint64_t capacity_bps;      /* 0 if unknown. */
    const struct smap *health;  /* Facts, and what is connected. */
};

/* Shortest window, and default. */
#define REPORT_MIN_MS 1000

struct report {
    const char *host;
    int64_t window;             /* In ms, 0 before the first one is
                                 * received. */
    long long next;             /* Earliest time of the next write. */
    bool pending;               /* 'next' has been set for the pending
                                 * change. */
    bool waiting;               /* A change waits for 'next'. */
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

#endif /* agent/report.h */
