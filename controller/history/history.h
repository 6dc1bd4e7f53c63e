/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HISTORY_H
#define HISTORY_H 1

/* What has been: stages, orders and the use of ports, in a file.
 *
 *
 * Motivation
 * ==========
 *
 * Whether another policy would have been better is asked of weeks, and a
 * controller's memory holds hours and ends with it.  The history is a SQLite
 * database of one writer: rows are gathered and written once a second, so that
 * an order never waits for a disk; what is older than it may be goes, as does
 * the oldest of more than there may be.
 *
 * History is of use and not of need.  A file that cannot be read is put aside
 * and a new one begun; a disk that is full loses rows and nothing else.
 *
 *
 * Usage
 * =====
 *
 *    error = history_open("/var/lib/stagecoach/history.db", &history);
 *    history_add_stage(history, &stage);
 *    for (;;) {
 *        history_run(history);
 *        history_wait(history);
 *        poll_block();
 *    }
 *    json = history_stages_to_json(history, since, 1000);
 *    history_close(history);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Copies what it is given.  Main thread only; any number of other processes
 * may read the file. */

#include <stddef.h>
#include <stdint.h>

struct history;
struct json;

/* The most rows of a table, and their greatest age. */
#define HISTORY_MAX_ROWS 200000
#define HISTORY_MAX_AGE_MS (90LL * 24 * 3600 * 1000)

/* A stage that has ended. */
struct history_stage {
    int64_t began, ended;       /* Epoch ms. */
    const char *cojob;
    int rung;
    const char *policy;         /* In force when it ended. */
    const struct json *record;  /* As in "controller/stages". */
};

/* An order that was another than the one before. */
struct history_order {
    int64_t at;                 /* Epoch ms. */
    const char *policy;
    int64_t version;
    int n_stages;
    double estimate_s, bound_s; /* Sums over stages, of completion. */
};

/* What one port carried in the 'ms' before 'at'. */
struct history_port {
    int64_t at;                 /* Epoch ms. */
    const char *port;           /* "h0:tx". */
    int ms;
    uint64_t bytes;             /* Of jobs. */
    double capacity_bps;
};

/* Returns NULL and stores the history, or returns an error message that the
 * caller frees and stores NULL. */
char *history_open(const char *file, struct history **);
void history_close(struct history *);

void history_add_stage(struct history *, const struct history_stage *);
void history_add_order(struct history *, const struct history_order *);
void history_add_port(struct history *, const struct history_port *);

void history_run(struct history *);
void history_wait(const struct history *);

/* The last 'limit' rows of what ended, or was, after 'since', epoch ms, oldest
 * first, what waits to be written included. */
struct json *history_stages_to_json(struct history *, int64_t since,
                                    size_t limit);
struct json *history_orders_to_json(struct history *, int64_t since,
                                    size_t limit);
struct json *history_ports_to_json(struct history *, int64_t since,
                                   size_t limit);

#endif /* controller/history/history.h */
