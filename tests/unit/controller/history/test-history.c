/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "controller/history/history.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

/* A folder of its own for each test, with the file of the history in it. */
struct place {
    char folder[32];
    char *file;
};

static int
set_up(void **state)
{
    struct place *p = xzalloc(sizeof *p);

    strcpy(p->folder, "/tmp/test-history.XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    p->file = xasprintf("%s/history.db", p->folder);
    *state = p;
    return 0;
}

static int
tear_down(void **state)
{
    static const char *const suffixes[] = {
        "", "-wal", "-shm", ".bad", ".bad-wal", ".bad-shm",
    };
    struct place *p = *state;

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        char *name = xasprintf("%s%s", p->file, suffixes[i]);

        unlink(name);
        free(name);
    }
    assert_int_equal(rmdir(p->folder), 0);
    free(p->file);
    free(p);
    return 0;
}

#define PLACE_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, set_up, tear_down, const struct place *p)

static struct history *
open_history(const struct place *p)
{
    struct history *h;

    assert_no_error(history_open(p->file, INT64_MAX, &h));
    return h;
}

static void
add_stage(struct history *h, int64_t ended)
{
    struct json *record = json_from_string(
        "{\"cojob\": \"a\", \"rung\": 0, \"demand\": {\"h0:tx\": 1.5}}");

    json_object_put(record, "ended", json_integer_create(ended));
    history_add_stage(h, &(struct history_stage){
                             .announced = true,
                             .began = ended - 1000,
                             .ended = ended,
                             .cojob = "a",
                             .rung = 0,
                             .policy = "stage",
                             .record = record,
                         });
    json_destroy(record);
}

/* Returns member 'name' of the first row, in an array 'array' of 'n', of
 * 'json', which is destroyed. */
static char *
first(struct json *json, const char *array, const char *name, size_t n)
{
    const struct json *rows = shash_find_data(json_object(json), array);
    char *text;

    assert_int_equal(rows->array.n, n);
    text = n ? json_to_string(shash_find_data(
                                  json_object(rows->array.elems[0]), name), 0)
           : NULL;
    json_destroy(json);
    return text;
}

static void
expect(struct json *json, const char *array, size_t n, const char *name,
       const char *value)
{
    char *text = first(json, array, name, n);

    if (n) {
        assert_string_equal(text, value);
    }
    free(text);
}

/* Rows are there before they are written, and after another start. */
PLACE_TEST(test_keeps)
{
    int64_t now = time_wall_msec();
    struct history *h = open_history(p);
    char *ended = xasprintf("%lld", (long long) now);

    add_stage(h, now);
    expect(history_to_json(h, "stages", 0, 10), "stages", 1, "ended", ended);
    expect(history_to_json(h, "stages", 0, 10), "stages", 1, "policy",
           "\"stage\"");
    history_close(h);

    h = open_history(p);
    expect(history_to_json(h, "stages", 0, 10), "stages", 1, "demand",
           "{\"h0:tx\":1.5}");
    history_close(h);
    free(ended);
}

PLACE_TEST(test_since_and_limit)
{
    int64_t now = time_wall_msec();
    struct history *h = open_history(p);
    char *middle = xasprintf("%lld", (long long) now + 2);

    for (int i = 0; i < 4; i++) {
        add_stage(h, now + i);
    }
    expect(history_to_json(h, "stages", now + 1, 10), "stages", 2, "ended",
           middle);
    expect(history_to_json(h, "stages", 0, 2), "stages", 2, "ended", middle);
    expect(history_to_json(h, "stages", now + 3, 10), "stages", 0, NULL, NULL);
    history_close(h);
    free(middle);
}

PLACE_TEST(test_ports)
{
    struct history *h = open_history(p);

    history_add_port(h, &(struct history_port){
                            .at = time_wall_msec(),
                            .port = "h1:rx",
                            .ms = 60000,
                            .bytes = 123,
                            .capacity_bps = 1e9,
                        });
    expect(history_to_json(h, "ports", 0, 10), "ports", 1, "port",
           "\"h1:rx\"");
    expect(history_to_json(h, "ports", 0, 10), "ports", 1, "bytes", "123");
    history_close(h);
}

/* What is older than it may be goes with the next that is written. */
PLACE_TEST(test_forgets)
{
    int64_t now = time_wall_msec();
    struct history *h = open_history(p);
    char *ended = xasprintf("%lld", (long long) now);

    add_stage(h, now - HISTORY_MAX_AGE_MS - 1000);
    add_stage(h, now);
    history_run(h);
    expect(history_to_json(h, "stages", 0, 10), "stages", 1, "ended", ended);
    history_close(h);
    free(ended);
}

static off_t
size_of(const char *file)
{
    struct stat st;

    assert_int_equal(stat(file, &st), 0);
    return st.st_size;
}

/* A nearly full disk: the oldest rows go, their space is the disk's again, and
 * the last thousand stay. */
PLACE_TEST(test_shrinks)
{
    int64_t now = time_wall_msec();
    struct history *h = open_history(p);
    char *oldest = xasprintf("%lld", (long long) now + 2001);
    off_t before;

    for (int i = 1; i <= 3000; i++) {
        add_stage(h, now + i);
    }
    history_close(h);
    before = size_of(p->file);
    h = open_history(p);
    history_shrink(h);
    expect(history_to_json(h, "stages", 0, 5000), "stages", 1000, "ended",
           oldest);
    add_stage(h, now);
    history_shrink(h);
    expect(history_to_json(h, "stages", 0, 5000), "stages", 1000, "rung",
           "0");
    history_close(h);
    assert_true(size_of(p->file) < before / 2);
    free(oldest);
}

static int64_t
query(const struct place *p, const char *sql)
{
    sqlite3_stmt *stmt;
    int64_t x = 0;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(p->file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        x = sqlite3_column_int64(stmt, 0);
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return x;
}

/* Of 80 days of rows, the last ones stay that have place, and the file has the
 * time from which on it is complete. */
PLACE_TEST(test_keeps_its_limit)
{
    int64_t now = time_wall_msec(), day = 24 * 3600 * 1000, first, cut;
    struct history *h = open_history(p);
    char *error;

    for (int i = 0; i < 8000; i++) {
        add_stage(h, now - 80 * day + i * day / 100);
    }
    history_close(h);
    assert_true(size_of(p->file) > 768 << 10);
    assert_int_equal(query(p, "SELECT max(at) FROM cut"), 0);

    error = history_open(p->file, 512 << 10, &h);
    assert_null(error);
    add_stage(h, now);
    history_run(h);
    history_close(h);
    first = query(p, "SELECT min(at) FROM stage");
    cut = query(p, "SELECT max(at) FROM cut");
    assert_in_range(cut, now - 79 * day, now - 20 * day);
    assert_in_range(first, cut + 1, cut + day / 100);
    assert_true(
        (query(p, "PRAGMA page_count") - query(p, "PRAGMA freelist_count"))
            * query(p, "PRAGMA page_size")
        <= 512 << 10);
}

static void
expect_put_aside(const struct place *p)
{
    char *aside = xasprintf("%s.bad", p->file);
    struct history *h = open_history(p);

    assert_int_equal(access(aside, F_OK), 0);
    add_stage(h, time_wall_msec());
    expect(history_to_json(h, "stages", 0, 10), "stages", 1, "rung", "0");
    history_close(h);
    free(aside);
}

PLACE_TEST(test_garbage_is_put_aside)
{
    FILE *stream = fopen(p->file, "w");

    for (int i = 0; i < 10000; i++) {
        fprintf(stream, "not a database %d\n", i);
    }
    fclose(stream);
    expect_put_aside(p);
}

PLACE_TEST(test_other_programs_is_put_aside)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(p->file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE stage (x);"
                                  "PRAGMA user_version = 77;", NULL, NULL,
                                  NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_put_aside(p);
}

PLACE_TEST(test_no_folder)
{
    char *file = xasprintf("%s/none/history.db", p->folder);
    struct history *h;
    char *error = history_open(file, INT64_MAX, &h);

    assert_null(h);
    assert_says(error, "/none/history.db: cannot be opened as "
                       "history (");
    free(file);
}
