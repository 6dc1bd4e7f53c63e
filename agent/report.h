/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPORT_H
#define REPORT_H 1

/* What this host tells through the database.
 *
 *
 * Motivation
 * ==========
 *
 * Host_Reported holds what must be seen without the telemetry stream: that the
 * host exists, what its port can do, which order it has applied.  A database
 * cluster takes few writes, whatever the number of hosts, so the controller,
 * which knows that, says how often each may write: the window.  A host writes
 * only what has changed, at most once a window.  In a window of more than a
 * second the first write waits for a time of its own, because what changed
 * here has mostly changed everywhere.
 *
 *
 * Usage
 * =====
 *
 *    report_init(&report, idl, host, now);       // Before the IDL runs.
 *    report_set_window(&report, ms, now);        // With each lease.
 *    report_run(&report, idl, txn, &facts, now);
 *    report_wait(&report);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct ovsdb_idl;
struct ovsdb_idl_txn;

struct report_facts {
    const char *state;          /* "ordered" or "fair". */
    const char *actuator;       /* Its name. */
    bool connected;             /* The actuator is there. */
    bool bypass;                /* The kernel forwards in its place. */
    bool telemetry;             /* The controller's stream is there. */
    int64_t applied;
    uint64_t capacity_bps;      /* 0 if nobody knows. */
};

/* The least window, and that of who was told none. */
#define REPORT_MIN_MS 1000

struct report {
    char *host;
    int64_t window;             /* ms, 0 before the first is told. */
    long long next;             /* Time of the next write, at the earliest. */
    bool pending;               /* 'next' is that of what is to be written. */
    bool waiting;               /* There is something to write at 'next'. */
};

void report_init(struct report *, struct ovsdb_idl *, const char *host,
                 long long now);
void report_uninit(struct report *);

void report_set_window(struct report *, int64_t ms, long long now);
bool report_is_due(struct report *, bool news, long long now);
void report_run(struct report *, const struct ovsdb_idl *,
                struct ovsdb_idl_txn *, const struct report_facts *,
                long long now);
void report_wait(const struct report *);

#endif /* agent/report.h */
