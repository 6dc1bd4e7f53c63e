/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/history/history.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/model/instant.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

VLOG_DEFINE_THIS_MODULE(history);

#define WRITE_MS 1000           /* Time between two transactions. */
#define PRUNE_MS 60000          /* Time between two deletions of old rows. */

/* Version of the tables.  A file with another version is renamed. */
#define USER_VERSION 2

/* Rows of each table that history_shrink() deletes at once, and keeps. */
#define SHRINK_ROWS 10000
#define SHRINK_KEPT 1000

/* Share of the limit that is left when it is exceeded. */
#define CUT_TO 0.9

static const char schema[] =
    "PRAGMA auto_vacuum = INCREMENTAL;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "CREATE TABLE IF NOT EXISTS stage (at INTEGER NOT NULL,"
    "  began INTEGER NOT NULL, cojob TEXT NOT NULL, rung INTEGER NOT NULL,"
    "  policy TEXT NOT NULL, record TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS stage_at ON stage (at);"
    "CREATE TABLE IF NOT EXISTS other (at INTEGER NOT NULL,"
    "  began INTEGER NOT NULL, cojob TEXT NOT NULL, rung INTEGER NOT NULL,"
    "  policy TEXT NOT NULL, record TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS other_at ON other (at);"
    "CREATE TABLE IF NOT EXISTS port (at INTEGER NOT NULL,"
    "  port TEXT NOT NULL, ms INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    "  capacity_bps REAL NOT NULL, all_bytes INTEGER NOT NULL);"
    "CREATE INDEX IF NOT EXISTS port_at ON port (at);"
    "CREATE TABLE IF NOT EXISTS cut (at INTEGER NOT NULL);"
    "PRAGMA user_version = " OVS_STRINGIZE(USER_VERSION) ";";

enum table { STAGE, OTHER, PORT, N_TABLES };

static const struct table_class {
    const char *name;
    const char *kind;           /* Of history_to_json(). */
    const char *columns;        /* Of history_to_json(). */
    const char *insert;
} tables[N_TABLES] = {
    [STAGE] = {
        "stage", "stages", "record, policy",
        "INSERT INTO stage VALUES (?, ?, ?, ?, ?, ?)",
    },
    [OTHER] = {
        "other", "others", "record, policy",
        "INSERT INTO other VALUES (?, ?, ?, ?, ?, ?)",
    },
    [PORT] = {
        "port", "ports", "at, port, ms, bytes, all_bytes, capacity_bps",
        "INSERT INTO port VALUES (?, ?, ?, ?, ?, ?)",
    },
};

struct history {
    sqlite3 *db;
    char *file;
    int64_t max_bytes; /* Of the file. */
    sqlite3_stmt *insert[N_TABLES];
    bool in_transaction;        /* Rows are to be committed. */
    long long next_write, next_prune;   /* time_msec(). */
    struct instant opened;      /* When the file was opened. */
};

static bool
check_status(struct history *h, int status)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 1);

    if (status != SQLITE_OK && status != SQLITE_DONE) {
        VLOG_WARN_RL(&rl, "%s: cannot write, rows are lost (%s)", h->file,
                     sqlite3_errmsg(h->db));
        return false;
    }
    return true;
}

static bool
execute(struct history *h, const char *sql)
{
    return check_status(h, sqlite3_exec(h->db, sql, NULL, NULL, NULL));
}

static int
user_version(sqlite3 *db)
{
    sqlite3_stmt *stmt;
    int version = -1;

    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL)
        == SQLITE_OK) {
        if (sqlite3_step(stmt) == SQLITE_ROW) {
            version = sqlite3_column_int(stmt, 0);
        }
        sqlite3_finalize(stmt);
    }
    return version;
}

/* Opens 'h->file' and creates the tables.  Returns a status of SQLite. */
static int
open_tables(struct history *h)
{
    int status = sqlite3_open_v2(h->file, &h->db,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                 | SQLITE_OPEN_NOMUTEX, NULL);

    if (status == SQLITE_OK) {
        int version = user_version(h->db);

        status = (version && version != USER_VERSION ? SQLITE_NOTADB
                  : sqlite3_exec(h->db, schema, NULL, NULL, NULL));
    }
    for (int t = 0; status == SQLITE_OK && t < N_TABLES; t++) {
        status = sqlite3_prepare_v2(h->db, tables[t].insert, -1,
                                    &h->insert[t], NULL);
    }
    return status;
}

static void
close_tables(struct history *h)
{
    for (int t = 0; t < N_TABLES; t++) {
        sqlite3_finalize(h->insert[t]);
        h->insert[t] = NULL;
    }
    sqlite3_close(h->db);
    h->db = NULL;
}

static void
rename_file(const struct history *h)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        char *from = xasprintf("%s%s", h->file, suffixes[i]);
        char *to = xasprintf("%s.bad%s", h->file, suffixes[i]);

        if (rename(from, to) && errno != ENOENT) {
            VLOG_WARN("%s: cannot be renamed (%s)", from, ovs_strerror(errno));
        }
        free(from);
        free(to);
    }
}

char *
history_open(const char *file, int64_t max_bytes, struct history **hp)
{
    struct history *h = xzalloc(sizeof *h);
    char *error = NULL;
    int status;

    h->file = xstrdup(file);
    h->max_bytes = max_bytes;
    h->opened = instant_now();
    status = open_tables(h);
    if (status == SQLITE_NOTADB || status == SQLITE_CORRUPT) {
        VLOG_WARN("%s: not a history of this version, renamed to %s.bad",
                  file, file);
        close_tables(h);
        rename_file(h);
        status = open_tables(h);
    }
    if (status != SQLITE_OK) {
        error = xasprintf("%s: cannot be opened as history (%s)", file,
                          h->db ? sqlite3_errmsg(h->db)
                          : sqlite3_errstr(status));
        history_close(h);
        h = NULL;
    }
    *hp = h;
    return error;
}

static void
commit(struct history *h)
{
    if (h->in_transaction) {
        execute(h, "COMMIT");
        if (!sqlite3_get_autocommit(h->db)) {
            execute(h, "ROLLBACK");
        }
        h->in_transaction = false;
    }
}

void
history_close(struct history *h)
{
    if (h) {
        commit(h);
        close_tables(h);
        free(h->file);
        free(h);
    }
}

/* Returns the statement that inserts a row into 't'; the caller binds it. */
static sqlite3_stmt *
begin_row(struct history *h, enum table t)
{
    if (!h->in_transaction) {
        h->in_transaction = execute(h, "BEGIN");
    }
    return h->insert[t];
}

static void
end_row(struct history *h, sqlite3_stmt *stmt)
{
    check_status(h, sqlite3_step(stmt));
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

void
history_add_stage(struct history *h, const struct history_stage *s)
{
    sqlite3_stmt *stmt = begin_row(h, s->announced ? STAGE : OTHER);
    char *record = json_to_string(s->record, JSSF_SORT);

    sqlite3_bind_int64(stmt, 1, s->ended);
    sqlite3_bind_int64(stmt, 2, s->began);
    sqlite3_bind_text(stmt, 3, s->cojob, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int(stmt, 4, s->rung);
    sqlite3_bind_text(stmt, 5, s->policy, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(stmt, 6, record, -1, SQLITE_TRANSIENT);
    end_row(h, stmt);
    free(record);
}

void
history_add_port(struct history *h, const struct history_port *p)
{
    sqlite3_stmt *stmt = begin_row(h, PORT);

    sqlite3_bind_int64(stmt, 1, p->at);
    sqlite3_bind_text(stmt, 2, p->port, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int(stmt, 3, p->ms);
    sqlite3_bind_int64(stmt, 4, p->bytes);
    sqlite3_bind_double(stmt, 5, p->capacity_bps);
    sqlite3_bind_int64(stmt, 6, p->all_bytes);
    end_row(h, stmt);
}

/* Returns the epoch ms by which rows age.  A wall clock that is set forward
 * while the program runs does not make rows older. */
static int64_t
age_clock(const struct history *h)
{
    struct instant now = instant_now();

    return MIN(now.epoch_ms, h->opened.epoch_ms + (now.msec - h->opened.msec));
}

static int64_t
query_integer(const struct history *h, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t x = 0;

    if (sqlite3_prepare_v2(h->db, sql, -1, &stmt, NULL) == SQLITE_OK
        && sqlite3_step(stmt) == SQLITE_ROW) {
        x = sqlite3_column_int64(stmt, 0);
    }
    sqlite3_finalize(stmt);
    return x;
}

/* Deletes all rows up to 'at'. */
static void
delete_until(struct history *h, int64_t at)
{
    for (int t = 0; t < N_TABLES; t++) {
        char *sql = xasprintf("DELETE FROM %s WHERE at <= %" PRId64,
                              tables[t].name, at);

        execute(h, sql);
        free(sql);
    }
}

/* Notes that rows up to 'at' may be missing. */
static void
note_cut(struct history *h, int64_t at)
{
    char *sql = xasprintf("DELETE FROM cut; INSERT INTO cut "
                          "VALUES (%" PRId64 ")",
                          at);

    execute(h, sql);
    free(sql);
}

/* Deletes the oldest part of the time that the rows cover if the file has more
 * than its limit. */
static void
cut(struct history *h)
{
    int64_t pages = query_integer(h, "PRAGMA page_count")
                    - query_integer(h, "PRAGMA freelist_count");
    int64_t bytes = pages * query_integer(h, "PRAGMA page_size");

    if (bytes > h->max_bytes) {
        int64_t first = query_integer(
            h, "SELECT min(at) FROM (SELECT min(at) AS at FROM stage"
               " UNION ALL SELECT min(at) FROM other"
               " UNION ALL SELECT min(at) FROM port)");
        double share = 1 - CUT_TO * h->max_bytes / bytes;
        int64_t at = first + (age_clock(h) - first) * share;

        delete_until(h, at);
        note_cut(h, at);
    }
}

static void
prune(struct history *h)
{
    delete_until(h, age_clock(h) - HISTORY_MAX_AGE_MS);
    cut(h);
}

/* Returns since when all tables have rows. */
static int64_t
complete_since(const struct history *h)
{
    return query_integer(h, "SELECT max(at) FROM (SELECT min(at) AS at"
                            " FROM stage UNION ALL SELECT min(at) FROM other"
                            " UNION ALL SELECT min(at) FROM port)");
}

void
history_shrink(struct history *h)
{
    int before = sqlite3_total_changes(h->db);

    commit(h);
    for (int t = 0; t < N_TABLES; t++) {
        char *sql = xasprintf(
            "DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %s"
            " ORDER BY rowid LIMIT max(0, min(%d,"
            " (SELECT count(*) FROM %s) - %d)))",
            tables[t].name, tables[t].name, SHRINK_ROWS, tables[t].name,
            SHRINK_KEPT);

        execute(h, sql);
        free(sql);
    }
    if (sqlite3_total_changes(h->db) != before) {
        note_cut(h, complete_since(h) - 1);
    }
    execute(h, "PRAGMA incremental_vacuum");
    execute(h, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* Commits the rows, at most every WRITE_MS. */
void
history_run(struct history *h)
{
    long long now = time_msec();

    if (!h->in_transaction || now < h->next_write) {
        return;
    }
    if (now >= h->next_prune) {
        prune(h);
        h->next_prune = now + PRUNE_MS;
    }
    commit(h);
    h->next_write = time_msec() + WRITE_MS;
}

void
history_wait(const struct history *h)
{
    if (h->in_transaction) {
        poll_timer_wait_until(h->next_write);
    }
}

static const char *
column_text(sqlite3_stmt *stmt, int column)
{
    const unsigned char *s = sqlite3_column_text(stmt, column);

    return s ? (const char *) s : "";
}

/* Returns the columns of a row, by name.  The column "record" must be a JSON
 * object; the other columns become its members.  Otherwise returns NULL. */
static struct json *
row_to_json(sqlite3_stmt *stmt)
{
    struct json *json = json_object_create();

    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *name = sqlite3_column_name(stmt, i);

        if (!strcmp(name, "record")) {
            json_destroy(json);
            json = json_from_string(column_text(stmt, i));
            if (json->type != JSON_OBJECT) {
                json_destroy(json);
                return NULL;
            }
        } else if (sqlite3_column_type(stmt, i) == SQLITE_INTEGER) {
            json_put_integer(json, name, sqlite3_column_int64(stmt, i));
        } else if (sqlite3_column_type(stmt, i) == SQLITE_FLOAT) {
            json_put_real(json, name, sqlite3_column_double(stmt, i));
        } else {
            json_object_put_string(json, name, column_text(stmt, i));
        }
    }
    return json;
}

static struct json *
query_rows(struct history *h, const struct table_class *table, int64_t since,
           size_t limit)
{
    struct json *array = json_array_create_empty();
    char *sql = xasprintf(
        "SELECT %s FROM (SELECT rowid AS id, * FROM %s WHERE at > ?"
        " ORDER BY rowid DESC LIMIT ?) ORDER BY at, id",
        table->columns, table->name);
    sqlite3_stmt *stmt = NULL;

    if (check_status(h, sqlite3_prepare_v2(h->db, sql, -1, &stmt, NULL))) {
        sqlite3_bind_int64(stmt, 1, since);
        sqlite3_bind_int64(stmt, 2, MIN(limit, HISTORY_MAX_ROWS));
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            struct json *json = row_to_json(stmt);

            if (json) {
                json_array_add(array, json);
            }
        }
        sqlite3_finalize(stmt);
    }
    free(sql);
    return array;
}

struct json *
history_to_json(struct history *h, const char *kind, int64_t since,
                size_t limit)
{
    for (int t = 0; t < N_TABLES; t++) {
        if (!strcmp(kind, tables[t].kind)) {
            struct json *json = json_object_create();

            json_object_put(json, kind,
                            query_rows(h, &tables[t], since, limit));
            return json;
        }
    }
    return NULL;
}
