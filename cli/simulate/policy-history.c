/* SPDX-License-Identifier: Apache-2.0 */

/* Histories of a controller as input of "stagecoach policy". */

#include <config.h>

#include "cli/simulate/policy.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "cli/duration.h"
#include "cli/operator/controller-query.h"
#include "openvswitch/dynamic-string.h"
#include "sim/workload/workload-recording.h"
#include "timeval.h"
#include "util.h"

#define HISTORY_TIMEOUT_MS 20000
#define MAX_STAGES "20000"

/* Reads the stages of the controller's history that ended within 'age' ms. */
static char *
read_history(int64_t age, char **textp)
{
    char *since = xasprintf("%"PRId64, (int64_t) time_wall_msec() - age);
    const char *args[] = { "stages", since, MAX_STAGES };
    int errnum;
    char *error = controller_call("controller/history", 3, args,
                                  HISTORY_TIMEOUT_MS, textp, &errnum);

    free(since);
    return error;
}

/* Appends the records of 'stmt' as elements of an array. */
static int
put_records(sqlite3_stmt *stmt, struct ds *text)
{
    const char *comma = "";
    int status;

    while ((status = sqlite3_step(stmt)) == SQLITE_ROW) {
        const unsigned char *record = sqlite3_column_text(stmt, 0);

        ds_put_format(text, "%s%s", comma,
                      record ? (const char *) record : "null");
        comma = ",\n";
    }
    return status == SQLITE_DONE ? SQLITE_OK : status;
}

char *
policy_history_read(const char *file, int64_t since, bool all, char **textp)
{
    char *sql =
        xasprintf("SELECT record FROM (SELECT at, record FROM %s WHERE at > ?"
                  " ORDER BY at DESC LIMIT " MAX_STAGES ") ORDER BY at",
                  all ? "(SELECT at, record FROM stage UNION ALL"
                        " SELECT at, record FROM other)"
                      : "stage");
    struct ds text = DS_EMPTY_INITIALIZER;
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = NULL;
    char *error = NULL;
    int status;

    status = sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL);
    if (status == SQLITE_OK) {
        status = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    }
    ds_put_cstr(&text, "{\"stages\": [");
    if (status == SQLITE_OK) {
        sqlite3_bind_int64(stmt, 1, since);
        status = put_records(stmt, &text);
    }
    ds_put_cstr(&text, "]}");
    if (status != SQLITE_OK) {
        error = xasprintf(
            "%s: not a controller's history (%s); expected the file of "
            "its --history",
            file, db ? sqlite3_errmsg(db) : "no memory");
        ds_clear(&text);
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    free(sql);
    *textp = ds_steal_cstr(&text);
    return error;
}

char *
policy_history_open(const char *what, int64_t since, struct workload **wp)
{
    char *text = NULL, *error;
    int64_t age;

    *wp = NULL;
    if (!since && duration_parse(what, &age)) {
        error = read_history(age, &text);
    } else {
        error = policy_history_read(what, since ? time_wall_msec() - since : 0,
                                    false, &text);
        if (error && !since) {
            char *hint = xasprintf("%s, or an age such as 24h", error);

            free(error);
            error = hint;
        }
    }
    if (!error) {
        error = workload_recording_from_string(what, text, wp);
    }
    free(text);
    return error;
}
