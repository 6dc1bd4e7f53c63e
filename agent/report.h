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
 * cluster takes few writes, so a host writes at most once a second, at a time
 * of its own, and only what has changed.
 *
 *
 * Usage
 * =====
 *
 *    report_init(&report, idl, host);            // Before the IDL runs.
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

struct report {
    char *host;
    long long next;             /* Time of the next write, at the earliest. */
    bool waiting;               /* There is something to write then. */
};

void report_init(struct report *, struct ovsdb_idl *, const char *host);
void report_uninit(struct report *);

void report_run(struct report *, const struct ovsdb_idl *,
                struct ovsdb_idl_txn *, const struct report_facts *,
                long long now);
void report_wait(const struct report *);

#endif /* agent/report.h */
