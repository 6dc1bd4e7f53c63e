/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HISTORY_H
#define HISTORY_H 1

/* History of stages and the use of ports, in a file.
 *
 * To compare policies, weeks of stages are needed; the controller's memory has
 * hours of them and ends with the process.  The history is a SQLite database
 * with one writer.  Rows are written once a second, so that an order never
 * waits for a disk.  Rows that are too old are deleted, and the oldest ones
 * while the file would be larger than its limit; until when that has removed
 * some is kept, since what is left does not begin where a reader may expect.
 *
 * The controller works without a history.  A file that cannot be read is
 * renamed and replaced; a full disk only loses rows.
 *
 *    error = history_open("/var/lib/stagecoach/history.db", 256 << 20,
 *                         &history);
 *    history_add_stage(history, &stage);
 *    for (;;) {
 *        history_run(history);
 *        history_wait(history);
 *        poll_block();
 *    }
 *    json = history_to_json(history, "stages", since, 1000);
 *    history_close(history);
 *
 * Copies its input.  Main thread only; other processes may read the file. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history;
struct json;

#define HISTORY_MAX_ROWS 200000 /* Of a reply. */
#define HISTORY_MAX_AGE_MS (90LL * 24 * 3600 * 1000)

/* A stage that has ended. */
struct history_stage {
    bool announced;             /* Otherwise of controller/model/unannounced.h.
                                 */
    int64_t began, ended;       /* Epoch ms. */
    const char *cojob;
    int rung;
    const char *policy;         /* In force when it ended. */
    const struct json *record;  /* As in "controller/stages". */
};

/* Traffic of one port in the 'ms' before 'at'. */
struct history_port {
    int64_t at;                 /* Epoch ms. */
    const char *port;           /* "h0:tx". */
    int ms;
    uint64_t bytes;             /* Of jobs. */
    uint64_t all_bytes;         /* Of all, by the card; 0 if unknown. */
    double capacity_bps;
};

/* 'max_bytes' is the limit of the file without its log of about 4 MiB.
 * Returns NULL and stores the history, or returns an error message that the
 * caller frees and stores NULL. */
char *history_open(const char *file, int64_t max_bytes, struct history **);
void history_close(struct history *);

void history_add_stage(struct history *, const struct history_stage *);
void history_add_port(struct history *, const struct history_port *);

/* Deletes old rows and returns their space to the file system: up to 10,000 of
 * each table, but not the last 1,000. */
void history_shrink(struct history *);

void history_run(struct history *);
void history_wait(const struct history *);

/* Returns {KIND: [...]}: the last 'limit' rows after 'since', epoch ms, oldest
 * first.  'kind' is "stages", those that were announced, "others" or "ports";
 * returns NULL for others.  Includes rows that have not been written yet. */
struct json *history_to_json(struct history *, const char *kind, int64_t since,
                             size_t limit);

#endif /* controller/history/history.h */
